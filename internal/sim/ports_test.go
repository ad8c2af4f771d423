package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/sim"
)

// onPort puts a peer behind a port of its own.
func onPort(n *sim.Network, x *peer) *port.Port {
	p, w := new(port.Port), new(port.Wire)
	p.Attach(x.e, port.Station{}).Plug(w, netip.Addr{}, nil)
	x.port = n.Add(x.addr, sim.Drive(p, w))
	x.port.Settle = x.settle
	return p
}

// TestPort_PausedPriority: while a port may not send at a priority, what its function has there waits as long as it takes
// without being retransmitted or failing, and acknowledgements and messages of another priority of the same engine are not
// held up. Afterwards it is sent.
func TestPort_PausedPriority(t *testing.T) {
	n := sim.New(1)
	n.Default.Delay = 2 * time.Microsecond
	a, b := newPeer(t, netip.MustParseAddr("10.0.0.1")), newPeer(t, netip.MustParseAddr("10.0.0.2"))
	onPort(n, a)
	paused := onPort(n, b)
	route := func(from, to *peer, priority uint8) frame.Route {
		return frame.Route{Src: from.addr, Dst: to.addr, Priority: priority}
	}
	a.connect(b, route(a, b, 0), route(b, a, 0))
	b.connect(a, route(b, a, 3), route(a, b, 3))
	paused.Scheduler.Pause(1 << 3)
	const writes = 100
	a.most, b.most = writes, writes
	for range deep {
		a.post()
		b.post()
	}
	n.Pass(10 * time.Second)
	if a.completed != writes || b.completed != 0 {
		t.Errorf("%d writes completed at priority 0 and %d at the paused one, want %d and 0", a.completed, b.completed, writes)
	}
	if due := paused.Deadline(); due != clock.Never {
		t.Errorf("the port wants to run at %v for what it may not send", due)
	}
	paused.Scheduler.Pause(0)
	b.port.Wake()
	n.Pass(10 * time.Second)
	if b.completed != writes || a.completed != writes {
		t.Errorf("%d writes completed after the pause, want %d", b.completed, writes)
	}
	if r := b.e.Counters().RetransmittedPackets; r != 0 {
		t.Errorf("%d packets were retransmitted", r)
	}
}

// TestPort_Rate: a class whose rate is limited sends at that rate, by the port's own deadlines.
func TestPort_Rate(t *testing.T) {
	n := sim.New(1)
	n.Default.Delay = 2 * time.Microsecond
	a, b := newPeer(t, netip.MustParseAddr("10.0.0.1")), newPeer(t, netip.MustParseAddr("10.0.0.2"))
	limited := onPort(n, a)
	onPort(n, b)
	const rate = 10e6 // bytes in a second
	if err := limited.Scheduler.SetTraffic(0, port.Traffic{Rate: [8]uint64{rate}}); err != nil {
		t.Fatal(err)
	}
	a.connect(b, frame.Route{Src: a.addr, Dst: b.addr}, frame.Route{Src: b.addr, Dst: a.addr})
	for range deep {
		a.post()
	}
	n.Pass(2 * time.Second)
	sent := float64(limited.Counters().Sent[port.Untagged].Bytes) / 2
	if sent < 0.98*rate || sent > 1.02*rate {
		t.Errorf("%.0f bytes in a second, want %.0f", sent, rate)
	}
}
