package port

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// steerer takes frames to one MAC, and those that are left if it says so.
type steerer struct {
	card
	dst        eth.MAC
	rest, sees bool
	seen       int
	straight   int // frames that came straight from who sent them
	carried    *Carried
}

func (s *steerer) Steers(head []byte) bool      { return eth.MAC(head) == s.dst }
func (s *steerer) Names(head []byte) bool       { return s.Steers(head) }
func (s *steerer) SentBy(*frame.Route)          {}
func (s *steerer) TakesRest() bool              { return s.rest }
func (s *steerer) Sniffs() bool                 { return s.sees }
func (s *steerer) Sniff(_ clock.Time, _ []byte) { s.seen++ }

func (s *steerer) Turn(_ clock.Time, out []frame.Out) (n int) {
	for ; n < len(out) && s.Steers(out[n].Head[out[n].HeadStart:]); n++ {
		o := &out[n]
		b := append([]byte(nil), o.Head[o.HeadStart:o.HeadEnd]...)
		s.in = append(s.in, frame.In{Data: append(b, o.Payload...)})
	}
	s.straight += n
	return n
}

// TestStraight: frames from one Steered station to the MAC of another go to its rules without waiting, in the order in which they
// were sent, but those behind one that waits; RoCE, groups, what no rule takes and MACs of nobody take the usual way.
func TestStraight(t *testing.T) {
	var p, far Port
	w := &Wire{}
	mac, own, away := eth.MAC{2, 0, 0, 0, 0, 3}, eth.MAC{2, 0, 0, 0, 0, 5}, eth.MAC{2, 0, 0, 0, 0, 9}
	rdma := stationOn(t, &p, w, 3, 0)
	x := stationOn(t, &far, &Wire{}, 9, 0)
	steer := func(mac, dst eth.MAC) *steerer {
		s := &steerer{card: card{queues: queues{due: clock.Never}, head: 128}, dst: dst}
		s.carried = &Carried{}
		p.Attach(s, Station{MAC: mac, Kind: Steered, Carried: s.carried}).Plug(w, netip.Addr{}, nil)
		return s
	}
	to, from := steer(mac, mac), steer(own, eth.MAC{})
	frames := func(dst eth.MAC, sizes ...int) (list []frame.In) {
		for _, n := range sizes {
			list = append(list, frame.In{Data: ethernetTo(dst, 0, n)})
		}
		return list
	}
	var out [16]frame.Out
	sends := func(what string, list []frame.In, straight, waiting, leave int) {
		t.Helper()
		before, turned := to.straight, p.Counters().Turned
		from.send = list
		n := p.Transmit(0, out[:])
		for i := range out[:n] {
			if !out[i].Inside {
				leave--
			}
		}
		got := to.straight - before
		if n != len(list) || got != straight || int(p.Counters().Turned-turned)-got != waiting || leave != 0 {
			t.Errorf("%s: of %d frames %d go straight and %d wait, want %d and %d; %d too few leave", what, n, got,
				int(p.Counters().Turned-turned)-got, straight, waiting, leave)
		}
		p.Advance(0)
		p.Transmit(0, out[:])
	}
	sends("to the rule", frames(mac, 46, 200, 50), 3, 0, 0)
	roce := frame.In{Data: sealed(x.e, x.to(rdma), "roce")}
	mixed := append(append(frames(mac, 51), roce), frames(mac, 52, 53)...)
	sends("RoCE between", mixed, 1, 3, 0)
	sends("a group", frames(eth.Broadcast, 46), 0, 1, 1)
	sends("nobody's", frames(away, 46), 0, 0, 1)
	var got []int
	for _, f := range to.in {
		got = append(got, len(f.Data)-eth.EthernetLen)
	}
	if want := []int{46, 200, 50, 51, 52, 53, 46}; !slices.Equal(got, want) || len(rdma.got) != 1 {
		t.Errorf("the rule gets frames of %v bytes, want %v; %d packets for RDMA, want 1", got, want, len(rdma.got))
	}
	// Each is 14 bytes longer; a datagram of RoCE, and a frame to everybody, which leaves too, are among those sent.
	roceBytes := uint64(len(roce.Data))
	if c := from.carried.Inside; c.SentFrames != 7 || c.SentBytes != 46+200+50+51+52+53+6*14+roceBytes {
		t.Errorf("the sender counts %+v", c)
	}
	if c := to.carried.Inside; c.ReceivedFrames != 7 || c.ReceivedBytes != 46+200+50+51+52+53+46+7*14 {
		t.Errorf("the receiver counts %+v", c)
	}
	to.dst = eth.MAC{}
	sends("no rule", frames(mac, 46), 0, 1, 0)
}

// TestSteered: what a rule takes is not for the Ethernet function of the MAC, except frames to groups; RoCE to an RDMA function is
// for that alone; what nobody takes is for a default; a sniffer sees all, and frames are not sent large any more.
func TestSteered(t *testing.T) {
	var p, far Port
	w := &Wire{Large: true}
	mac := eth.MAC{2, 0, 0, 0, 0, 3}
	rdma := stationOn(t, &p, w, 3, 0)
	host, at := cardOn(&p, w, Station{MAC: mac})
	if !at.TakesLarge(eth.MAC{2, 0, 0, 0, 0, 9}, 0) {
		t.Fatal("the wire takes large frames")
	}
	s := &steerer{card: card{queues: queues{due: clock.Never}}, dst: mac}
	own := p.Attach(s, Station{MAC: mac, Kind: Steered})
	own.Plug(w, netip.Addr{}, nil)
	if at.TakesLarge(eth.MAC{2, 0, 0, 0, 0, 9}, 0) {
		t.Error("frames that rules may look at are sent large")
	}
	want := func(what string, rule, function, roce int) {
		t.Helper()
		if len(s.in) != rule || len(host.in) != function || len(rdma.got) != roce {
			t.Errorf("%s: %d frames for the rule, %d for the Ethernet function, %d for RDMA; want %d, %d and %d", what, len(s.in),
				len(host.in), len(rdma.got), rule, function, roce)
		}
	}
	arrives := func(dst eth.MAC) { p.Receive(0, w, []frame.In{{Data: ethernetTo(dst, 0, 46), Raw: true}}) }
	arrives(mac)
	want("a rule", 1, 0, 0)
	x := stationOn(t, &far, &Wire{}, 9, 0)
	arrive(&p, w, x.e, x.to(rdma), "roce")
	want("RoCE", 1, 0, 1)
	arrives(eth.Broadcast)
	want("everybody", 2, 1, 1)
	s.dst = eth.MAC{}
	arrives(mac)
	want("no rule", 2, 2, 1)
	arrives(eth.MAC{2, 0, 0, 0, 0, 9})
	want("nobody's", 2, 2, 1)
	s.rest, s.sees = true, true
	arrives(eth.MAC{2, 0, 0, 0, 0, 9})
	want("nobody's, with a default", 3, 2, 1)
	arrives(mac)
	want("the function's, with a default", 3, 3, 1)
	if s.seen != 2 {
		t.Errorf("the sniffer has seen %d frames, want 2", s.seen)
	}
	p.Detach(own)
	if w.steered != 0 || !at.TakesLarge(eth.MAC{2, 0, 0, 0, 0, 9}, 0) {
		t.Error("the wire does not forget a station that is gone")
	}
}
