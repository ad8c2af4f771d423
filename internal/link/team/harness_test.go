package team

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/vswitch"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/eth"
)

// plug is a link that can be pulled.
type plug struct {
	link.Link
	out  atomic.Bool
	room int      // how many frames it takes, unless negative
	sent [][]byte // that it took
}

func (p *plug) Capabilities() link.Capabilities {
	c := p.Link.Capabilities()
	c.Carrier = p
	return c
}

func (p *plug) WireState() link.State { return link.State{Up: !p.out.Load(), Speed: 1e9} }

func (p *plug) Send(frames []frame.Out) (int, error) {
	n := len(frames)
	if p.room >= 0 {
		n = min(n, p.room)
		p.room -= n
	}
	for i := range frames[:n] {
		o := &frames[i]
		p.sent = append(p.sent, append(append([]byte(nil), o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...))
	}
	if p.out.Load() {
		return n, nil
	}
	return p.Link.Send(frames[:n])
}

func (p *plug) Receive(in []frame.In) (int, error) {
	n, err := p.Link.Receive(in)
	if p.out.Load() {
		n = 0
	}
	return n, err
}

func plugInto(t testing.TB, s *vswitch.Switch) *plug {
	t.Helper()
	p, err := s.Open(vswitch.PortConfig{PortConfig: bridge.PortConfig{PVID: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return &plug{Link: p, room: -1}
}

func newSwitch(t testing.TB) *vswitch.Switch {
	t.Helper()
	s, err := vswitch.New(bridge.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bed is links that somebody owns, in virtual time.
type bed struct {
	testing.TB
	now   clock.Time
	links []link.Link
	got   [][][]byte // by link: what was handed up
	in    []frame.In
}

func newBed(t testing.TB) *bed { return &bed{TB: t, now: 1, in: make([]frame.In, 64)} }

func (b *bed) add(l link.Link) {
	b.links, b.got = append(b.links, l), append(b.got, nil)
	b.Cleanup(func() { _ = l.Close() })
}

// team makes a link of plugs, and adds it.
func (b *bed) team(kind team.Type, plugs ...*plug) *Link {
	b.Helper()
	cfg := Config{Team: team.Config{Type: kind, Fast: kind == team.LACP}, Now: func() clock.Time { return b.now }}
	for i, p := range plugs {
		cfg.Team.Members = append(cfg.Team.Members, team.Member{MAC: eth.MAC{2, 0, 0, byte(len(b.links)), 1, byte(i)}})
		cfg.Links = append(cfg.Links, p)
	}
	l, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.add(l)
	return l
}

// turn lets everybody do what there is to do, until nothing arrives any more: a question, its answer and what has waited for that are
// three rounds, of which only the last hands something up.
func (b *bed) turn() {
	for quiet := 0; quiet < 4; quiet++ {
		for i, l := range b.links {
			l.Errors(nil)
			n, err := l.Receive(b.in)
			if err != nil {
				b.Fatal(err)
			}
			for k := range b.in[:n] {
				b.got[i] = append(b.got[i], append([]byte(nil), b.in[k].Data...))
				quiet = -1
			}
		}
	}
}

// pass lets time go by.
func (b *bed) pass(d time.Duration) {
	for end := b.now.Add(d); b.now < end; b.now = b.now.Add(10 * time.Millisecond) {
		b.turn()
	}
}

// host is a station with an address of 10.0.0.0/24.
func host(n byte) link.Station {
	return link.Station{MAC: [6]byte{2, 0, 0, 0, 9, n}, Prefixes: []netip.Prefix{netip.PrefixFrom(addr(n), 24)}}
}

func addr(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }

func (b *bed) serve(l link.Link, n byte) {
	b.Helper()
	if err := l.Capabilities().Stations.SetStation(host(n)); err != nil {
		b.Fatal(err)
	}
}

// route prepares one from a station to another.
func (b *bed) route(l link.Link, from, to byte, port uint16) *frame.Route {
	b.Helper()
	r := &frame.Route{Src: addr(from), Dst: addr(to), SrcPort: port}
	if err := l.Prepare(r); err != nil {
		b.Fatal(err)
	}
	return r
}

// packet is a UDP packet on a route, with a number in its payload.
func packet(r *frame.Route, n byte) (o frame.Out) {
	d := eth.Datagram{Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, DstPort: r.DstPort, HopLimit: 64}
	h := eth.Ethernet{Dst: r.DstMAC, Src: r.SrcMAC, Type: d.Type()}
	o.Reset(r)
	o.HeadStart -= uint16(h.Len() + d.HeaderLen())
	h.Put(o.Head[o.HeadStart:])
	d.Put(o.Head[o.HeadStart+eth.EthernetLen:], 64)
	o.Payload = make([]byte, 64)
	o.Payload[0] = n
	return o
}

// numbers are those of the packets that a link has handed up since the last look.
func (b *bed) numbers(i int) (n []byte) {
	const payload = eth.EthernetLen + eth.IPv4Len + eth.UDPLen
	for _, f := range b.got[i] {
		if len(f) > payload {
			n = append(n, f[payload])
		}
	}
	b.got[i] = nil
	return n
}
