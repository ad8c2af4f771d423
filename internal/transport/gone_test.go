package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// failCopies ends every waiting copy with an error, as when the owner of the memory has died.
func (x *end) failCopies(n *sim.Network) {
	var c [16]Copy
	for k := x.e.Copies(c[:]); k > 0; k = x.e.Copies(c[:]) {
		for i := range c[:k] {
			x.e.Copied(n.Now(), []CopyResult{{Tag: c[i].Tag, Err: memory.ErrGone}})
		}
		x.port.Wake()
	}
}

// TestMemoryGone: memory that can no longer be reached ends its QP alone, with the error that fits the end it belongs
// to. Nothing that depends on a copy is acknowledged or completed before the copy has ended (IBA 9.7.5.2.7).
func TestMemoryGone(t *testing.T) {
	for _, c := range []struct {
		name         string
		slowA        bool // the requester's memory is gone, else the responder's
		op           ring.WROp
		size         int
		status, recv ring.Status
	}{
		{"target of a write", false, ring.OpWrite, 5000, ring.RemoteOperation, 0},
		{"source of a read", false, ring.OpRead, 5000, ring.RemoteOperation, 0},
		{"operand of an atomic", false, ring.OpFetchAdd, 8, ring.RemoteOperation, 0},
		{"receive", false, ring.OpSend, 100, ring.RemoteOperation, ring.LocalProtection},
		{"source of a write", true, ring.OpWrite, 5000, ring.LocalProtection, 0},
		{"sink of a read", true, ring.OpRead, 5000, ring.LocalProtection, 0},
		{"sink of an atomic", true, ring.OpFetchAdd, 8, ring.LocalProtection, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, a, b := newPair(t, 1, command.RC)
			p := defaultConnection()
			p.timeout = 16
			connect(a, b, p)
			for _, x := range []*end{a, b} {
				r := memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll}
				if (x == a) == c.slowA {
					r.Remote = &owner{regionAt, make([]byte, regionSize), true}
				} else {
					r.Bytes = make([]byte, regionSize)
				}
				if _, err := x.mem.Register(r); err != nil {
					t.Fatal(err)
				}
			}
			b.give(1000, 1)
			a.do(c.op, c.size)
			a.do(c.op, c.size)
			for range 20 {
				n.Pass(20_000)
				if len(a.comps) > 0 || !c.slowA && a.q.una() {
					t.Fatalf("completions %+v before the copies ended, want none", a.comps)
				}
			}
			for range 20 {
				a.failCopies(n)
				b.failCopies(n)
				n.Pass(20_000)
			}
			if len(a.comps) != 2 || a.comps[0].Status != c.status || a.comps[1].Status != ring.WRFlush {
				t.Errorf("requester: completions %+v, want %v and a flush", a.comps, c.status)
			}
			if c.slowA {
				return
			}
			if len(b.events) != 1 || b.events[0].Type != command.EventQPFatal || b.q.state != command.Err {
				t.Errorf("responder: state %s, events %+v; want the error state and one fatal event", stateName(b.q.state), b.events)
			}
			if len(b.comps) != 1 || c.recv != 0 && b.comps[0].Status != c.recv {
				t.Errorf("responder: completions %+v, want one", b.comps)
			}
		})
	}
}

// TestMemoryGoneInABurst deregisters memory while a message is being sent: the QP ends in the middle of a burst, and
// no timer runs for it after that.
func TestMemoryGoneInABurst(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	b.region(regionAt, make([]byte, regionSize), allowAll)
	const mtu, window, other = 1024, 32, 0x9000000
	first := a.region(regionAt, make([]byte, regionSize), allowAll)
	second := a.region(other, make([]byte, mtu), allowAll)
	a.doWith(ring.OpWrite, (window+4)*mtu, func(w *ring.SendWR) {
		w.SGE[0] = ring.SGE{Addr: regionAt, Length: (window + 3) * mtu, LKey: first.Key}
		w.SGE[1] = ring.SGE{Addr: other, Length: mtu, LKey: second.Key}
		w.NumSGE = 2
	})
	n.Filter = func(from, _ *sim.Port, _ []byte) bool {
		if from == b.port { // the first window has been sent and is acknowledged
			if err := a.mem.Deregister(second.Key); err != nil && !second.Dead() {
				t.Error(err)
			}
		}
		return true
	}
	n.Run(clock.Time(time.Second), func() bool { return len(a.comps) > 0 })
	if len(a.comps) != 1 || a.comps[0].Status != ring.LocalProtection || a.q.state != command.Err {
		t.Fatalf("state %s, completions %+v; want the error state and one local protection error", stateName(a.q.state), a.comps)
	}
	if at := a.e.Deadline(); at != clock.Never {
		t.Errorf("a timer of the ended QP runs until %v", at)
	}
}

// una reports whether any packet of q has been acknowledged.
func (q *QP) una() bool { return uint32(q.req.una) != q.attr.SQPSN }
