package team

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/eth"
)

// exchange sends packets of several flows both ways, and checks that each arrives once, at the other's station.
func exchange(b *bed, from, to byte) {
	b.Helper()
	const flows = 16
	for _, way := range [2][4]int{{1, 0, int(to), int(from)}, {0, 1, int(from), int(to)}} {
		l := b.links[way[0]]
		var want []byte
		for p := range byte(flows) {
			r := b.route(l, byte(way[2]), byte(way[3]), uint16(p)+1000)
			b.turn() // its neighbour answers
			frames := []frame.Out{packet(r, p)}
			if n, err := l.Send(frames); n != 1 || err != nil {
				b.Fatalf("sent %d: %v", n, err)
			}
			r.Release()
			want = append(want, p)
		}
		b.turn()
		if got := b.numbers(way[1]); !slices.Equal(got, want) {
			b.Fatalf("from %d to %d: packets %v arrive, want %v", way[2], way[3], got, want)
		}
	}
}

// TestTeam_AtASwitch: a team at a switch that knows nothing of it reaches its peer and is reached, whichever of its members fail and come
// back.
func TestTeam_AtASwitch(t *testing.T) {
	const peers = 4 // which are stations of one link
	for _, kind := range []team.Type{team.AFT, team.SFT, team.SLB, team.RLB, team.ALB} {
		t.Run(kind.String(), func(t *testing.T) {
			b, s := newBed(t), newSwitch(t)
			plugs := []*plug{plugInto(t, s), plugInto(t, s)}
			l := b.team(kind, plugs...)
			peer := plugInto(t, s)
			b.add(peer)
			b.serve(l, 1)
			for n := range byte(peers) {
				b.serve(peer, 2+n)
			}
			for _, out := range [][2]bool{{false, false}, {true, false}, {false, false}, {false, true}, {true, false}, {false, false}} {
				for i, p := range plugs {
					p.out.Store(out[i])
				}
				b.turn()
				for n := range byte(peers) {
					exchange(b, 1, 2+n)
				}
				b.pass(time.Second)
				for n := range byte(peers) {
					exchange(b, 1, 2+n)
				}
			}
			if n := len(plugs[0].sent) * len(plugs[1].sent); n == 0 {
				t.Error("one of the members has sent nothing")
			}
		})
	}
}

// TestTeam_Down: without a member that sends, the wire is down, and what is sent is counted as lost.
func TestTeam_Down(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	p := plugInto(t, s)
	l := b.team(team.AFT, p)
	b.serve(l, 1)
	if !l.WireState().Up {
		t.Error("it is down at the start")
	}
	p.out.Store(true)
	b.turn()
	r := b.route(l, 1, 2, 1000)
	defer r.Release()
	r.DstMAC, r.Path = [6]byte{2, 0, 0, 0, 9, 2}, nil // as if the neighbour were known
	frames := []frame.Out{packet(r, 1), packet(r, 2)}
	if n, err := l.Send(frames); n != 2 || err != nil || l.Stats().SendErrors != 2 || l.WireState().Up {
		t.Errorf("sent %d, %v, with %d errors, up: %v", n, err, l.Stats().SendErrors, l.WireState().Up)
	}
}

// TestSend_Blocked: what a member has no room for is not sent, and is what it was: another member may send it next time, from another
// address.
func TestSend_Blocked(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	plugs := []*plug{plugInto(t, s), plugInto(t, s)}
	l := b.team(team.SLB, plugs...)
	b.serve(l, 1)
	b.turn()
	var frames []frame.Out
	for p := range byte(32) {
		r := &frame.Route{Src: addr(1), Dst: addr(2), SrcPort: uint16(p), DstPort: 4791, SrcMAC: host(1).MAC, DstMAC: host(2).MAC}
		frames = append(frames, packet(r, p))
	}
	plugs[1].room = 3
	n, err := l.Send(frames)
	if n == len(frames) || err != nil {
		t.Fatalf("%d sent: %v", n, err)
	}
	for i := range frames[n:] {
		o := &frames[n+i]
		if mac := eth.MAC(o.Head[o.HeadStart+source:]); mac != host(1).MAC {
			t.Errorf("frame %d, which was not sent, is from %v", n+i, mac)
		}
	}
	plugs[1].out.Store(true)
	plugs[1].sent = nil
	b.turn()
	if n, err := l.Send(frames[n:]); n == 0 || err != nil || len(plugs[1].sent) != 0 {
		t.Errorf("%d sent: %v, %d of them by the member that failed", n, err, len(plugs[1].sent))
	}
	for _, f := range plugs[0].sent[len(plugs[0].sent)-n:] {
		if eth.MAC(f[source:]) != host(1).MAC {
			t.Errorf("the active member sends from %v", eth.MAC(f[source:]))
		}
	}
}

// TestSend_Staged: a frame that a host has made in one piece leaves from its pieces, if it comes from another address.
func TestSend_Staged(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	plugs := []*plug{plugInto(t, s), plugInto(t, s)}
	l := b.team(team.SLB, plugs...)
	b.serve(l, 1)
	for p := range byte(16) {
		r := &frame.Route{Src: addr(1), Dst: addr(2), SrcPort: uint16(p), DstPort: 4791, SrcMAC: host(1).MAC, DstMAC: host(2).MAC}
		o := packet(r, p)
		o.Staged = append(append([]byte(nil), o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...)
		staged := bytes.Clone(o.Staged)
		frames := []frame.Out{o}
		if n, err := l.Send(frames); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		mac := eth.MAC(frames[0].Head[o.HeadStart+source:])
		if (frames[0].Staged == nil) != (mac != host(1).MAC) || !bytes.Equal(o.Staged, staged) {
			t.Errorf("from %v, staged: %v", mac, frames[0].Staged != nil)
		}
	}
}

// TestSend_Answers: what the host of a station says of its address goes through the team too: peers are told the members in turn.
func TestSend_Answers(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	plugs := []*plug{plugInto(t, s), plugInto(t, s)}
	l := b.team(team.RLB, plugs...)
	b.serve(l, 1)
	b.turn()
	for _, p := range plugs {
		p.sent = nil
	}
	mac := eth.MAC(host(1).MAC)
	for n := range byte(4) {
		a := eth.ARP{Operation: eth.ARPReply, SenderMAC: mac, SenderIP: addr(1), TargetMAC: host(9).MAC, TargetIP: addr(20 + n)}
		h := eth.Ethernet{Dst: a.TargetMAC, Src: mac, Type: eth.TypeARP}
		frames := make([]frame.Out, 1)
		frames[0].Reset(nil)
		frames[0].HeadEnd += eth.EthernetLen
		h.Put(frames[0].Head[frames[0].HeadStart:])
		frames[0].Payload = a.Append(nil)
		if sent, err := l.Send(frames); sent != 1 || err != nil {
			t.Fatal(sent, err)
		}
		if p, _ := eth.ParseARP(frames[0].Payload); p.SenderMAC != mac {
			t.Error("the host's memory was written to")
		}
	}
	for i, want := range []eth.MAC{mac, {2, 0, 0, 0, 1, 1}} {
		if len(plugs[i].sent) != 2 {
			t.Errorf("member %d has sent %d answers, want 2 of 4", i, len(plugs[i].sent))
		}
		for _, f := range plugs[i].sent {
			if a, err := eth.ParseARP(f[eth.EthernetLen:]); err != nil || a.SenderMAC != want || eth.MAC(f[source:]) != want {
				t.Errorf("member %d tells %v from %v, want %v: %v", i, a.SenderMAC, eth.MAC(f[source:]), want, err)
			}
		}
	}
}

// TestOpen_Refused: a team takes links of whole frames alone, one for each member.
func TestOpen_Refused(t *testing.T) {
	m, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: addr(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	one := []team.Member{{MAC: eth.MAC{2, 0, 0, 0, 0, 1}}}
	for _, cfg := range []Config{{}, {Team: team.Config{Type: team.AFT}}, {Team: team.Config{Type: team.AFT, Members: one}},
		{Team: team.Config{Type: team.AFT, Members: one}, Links: []link.Link{m}}} {
		var e *station.FieldError
		if l, err := Open(cfg); !errors.As(err, &e) || l != nil {
			t.Errorf("error %v", err)
		}
	}
	var e *team.Error
	if _, err := Open(Config{Team: team.Config{Members: one}, Links: []link.Link{m}}); !errors.As(err, &e) || e.Field != "Type" {
		t.Errorf("error %v, want one about the type", err)
	}
}

// TestClose: members are closed with it, and it does nothing any more.
func TestClose(t *testing.T) {
	b, s := newBed(t), newSwitch(t)
	p := plugInto(t, s)
	l := b.team(team.AFT, p)
	b.serve(l, 1)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.Send(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("send: %v", err)
	}
	if _, err := l.Receive(b.in); !errors.Is(err, net.ErrClosed) {
		t.Errorf("receive: %v", err)
	}
	if _, err := p.Link.Receive(b.in); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a member: %v", err)
	}
	if err := l.SetStation(host(2)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a station: %v", err)
	}
	l.Errors(nil)
	b.links = nil
}
