package port

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestTurn_Groups: what a function on an InfiniBand wire sends to a group leaves, and comes back to the function if it is attached to
// the group (IBA 10.5.3.2: switches do not send it back to its source).
func TestTurn_Groups(t *testing.T) {
	gid, mgid := ib.GID{0xfe, 0x80, 15: 0xa}, ib.GID{0xff, 0x12, 0x40, 0x1b, 15: 1}
	other := mgid
	other[15] = 2
	cable := link.Capabilities{Raw: true, InfiniBand: true, MaxSegments: 1, MTU: 2048}
	e, err := encap.New(encap.InfiniBand, []netip.Addr{gid.Addr()}, cable, 0)
	if err != nil {
		t.Fatal(err)
	}
	e.SetPort(&link.Port{LID: 4})
	var p Port
	q := &queues{due: clock.Never}
	w := &Wire{InfiniBand: true}
	p.Attach(q, Station{Attached: func(group netip.Addr) bool { return group == mgid.Addr() }}).Plug(w, netip.Addr{}, e)
	var routes []*frame.Route
	for _, g := range []ib.GID{mgid, other} {
		to := frame.InfiniBand{DLID: 0xc001, Global: true, SGID: gid, DGID: g}
		routes = append(routes, &frame.Route{Src: gid.Addr(), Dst: g.Addr(), IB: to})
	}
	out := make([]frame.Out, 4)
	if q.out[0] = routes; p.Transmit(0, out) != 2 || out[0].Inside || out[1].Inside {
		t.Error("packets to groups do not leave")
	}
	if p.Deadline() != 0 {
		t.Error("the packet that is to come back waits for longer than a turn")
	}
	p.Advance(0)
	if len(q.got) != 1 || q.got[0] != "data" || p.Counters().Turned != 1 {
		t.Errorf("%q come back, counters %+v", q.got, *p.Counters())
	}
	p.Transmit(0, out) // nobody uses it any more
	if p.turned.waiting() || p.turned.n != 0 {
		t.Errorf("%d packets are kept", p.turned.n)
	}
}
