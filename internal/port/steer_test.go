package port

import (
	"net/netip"
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
}

func (s *steerer) Steers(head []byte) bool      { return eth.MAC(head) == s.dst }
func (s *steerer) Names(head []byte) bool       { return s.Steers(head) }
func (s *steerer) TakesRest() bool              { return s.rest }
func (s *steerer) Sniffs() bool                 { return s.sees }
func (s *steerer) Sniff(_ clock.Time, _ []byte) { s.seen++ }

// TestSteered: what a rule takes is not for the Ethernet function of the MAC, except frames to groups; RoCE to an RDMA function is
// for that alone; what nobody takes is for a default; a sniffer sees all, and frames are not sent large any more.
func TestSteered(t *testing.T) {
	var p, far Port
	w := &Wire{Large: true}
	mac := eth.MAC{2, 0, 0, 0, 0, 3}
	rdma := stationOn(t, &p, w, 3, 0)
	host, at := cardOn(&p, w, Station{MAC: mac})
	if !at.TakesLarge(eth.MAC{2, 0, 0, 0, 0, 9}) {
		t.Fatal("the wire takes large frames")
	}
	s := &steerer{card: card{queues: queues{due: clock.Never}}, dst: mac}
	own := p.Attach(s, Station{MAC: mac, Kind: Steered})
	own.Plug(w, netip.Addr{}, nil)
	if at.TakesLarge(eth.MAC{2, 0, 0, 0, 0, 9}) {
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
	if w.steered != 0 || !at.TakesLarge(eth.MAC{2, 0, 0, 0, 0, 9}) {
		t.Error("the wire does not forget a station that is gone")
	}
}
