package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestProbeOfSlowPeer: before the first round trip has been measured, the acknowledgement of a part of what was sent
// says that the peer is slow, not that the rest is lost: it is not sent again, and the window stays as large as it was.
// If no more than the probe arrived, the rest is sent again.
func TestProbeOfSlowPeer(t *testing.T) {
	for _, c := range []struct {
		name           string
		arrive, resent int // packets
	}{
		{"half of the packets", 16, 1},
		{"only the probe", 0, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFlow(t, 1024, 64<<10, ring.OpWrite)
			f.a.q.attr.Timeout = 14
			f.a.post(f.wr)
			n := f.a.e.Transmit(f.now, 0, f.w.out)
			window := f.a.q.win.size
			if n != window || window != 32 {
				t.Fatalf("%d packets in a window of %d, want 32", n, window)
			}
			in := arrivals(f.w.out[:n])
			for range 2 { // it looks, and looks again
				f.now = f.a.e.Deadline()
				f.a.e.Advance(f.now)
			}
			probe := arrivals(f.w.out[:f.a.e.Transmit(f.now, 0, f.w.out)])
			if len(probe) != 1 {
				t.Fatalf("the probe has %d packets", len(probe))
			}
			if in = in[:c.arrive]; c.arrive == 0 {
				in = probe
			}
			f.b.e.Receive(f.now, in)
			f.a.e.Receive(f.now, arrivals(f.w.out[:f.b.e.Transmit(f.now, 0, f.w.out)]))
			for f.a.e.Transmit(f.now, 0, f.w.out) > 0 {
			}
			if k := int(f.a.e.Counters().RetransmittedPackets); k != c.resent {
				t.Errorf("%d packets sent again, want %d", k, c.resent)
			}
			if c.arrive > 0 && f.a.q.win.size < window {
				t.Errorf("window of %d, was %d", f.a.q.win.size, window)
			}
		})
	}
}

// arrivals returns packets as they arrive.
func arrivals(out []frame.Out) (in []frame.In) {
	for i := range out {
		in = append(in, frame.In{Data: flat(&out[i]), Src: out[i].Route.Src, Dst: out[i].Route.Dst})
	}
	return in
}

// TestProbe_OutstandingReadsStayOutstanding: the acknowledgement of a probe that shows that a read has arrived too lets
// nothing begin that would exceed the initiator depth: the responder keeps no more responses than that, and could not give
// the lost one again (IBA 9.7.5.1.2).
func TestProbe_OutstandingReadsStayOutstanding(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	c := defaultConnection()
	c.depth, c.timeout = 1, 14
	connect(a, b, c)
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	writes, answered := 0, false
	n.Filter = func(from, _ *sim.Port, p []byte) bool {
		switch op := ib.BTH(p).Opcode(); {
		case from == b.port && writes < 3: // what the responder sends is lost until the probe
			return false
		case op.IsWrite():
			writes++
		case op == ib.RCReadResponseOnly:
			answered = true
		case op.IsAtomic() && !answered:
			t.Error("an atomic was sent while the only read allowed was outstanding")
		}
		return true
	}
	a.do(ring.OpWrite, 16)
	a.do(ring.OpWrite, 16)
	a.do(ring.OpRead, 16)
	a.do(ring.OpFetchAdd, 8)
	n.Run(10*second, nil)
	if len(a.comps) != 4 || a.comps[3].Status != ring.Success {
		t.Errorf("completions %+v, want four of success", a.comps)
	}
	if a.e.Counters().Probes == 0 {
		t.Error("the lost response was found without a probe")
	}
}
