package transport

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestSplitTakesTurns: a pair that leaves the local path in the middle of a long message finishes it in turns, among
// those of other pairs, and begins nothing else before it is on the wire; Join in the meantime keeps it where it is.
func TestSplitTakesTurns(t *testing.T) {
	const long = 8 << 20
	for _, stays := range []bool{false, true} {
		_, a, b := newPair(t, 1, command.RC)
		c, d := a.host.qp(command.RC, QPConfig{Context: 3}), b.host.qp(command.RC, QPConfig{Context: 4})
		connect(a, b, defaultConnection())
		connect(c, d, defaultConnection())
		from, to := pattern(long, 1), make([]byte, long)
		ra, rb := a.region(regionAt, from, allowAll), b.region(regionAt, to, allowAll)
		for _, p := range [2][2]*end{{a, b}, {c, d}} {
			if err := p[0].e.Join(0, p[0].q, p[1].q); err != nil {
				t.Fatal(err)
			}
		}
		write := func(x *end, n uint32) {
			x.posted++
			x.post(ring.SendWR{ID: x.posted, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: regionAt, RKey: rb.Key,
				SGE: x.sges(regionAt, int(n), ra.Key)})
		}
		write(a, long)
		write(a, 64)
		var out [16]frame.Out
		a.turn(0, out[:])
		a.e.Split(a.q)
		if n := a.e.counters.LocalMessages; n != 0 || !a.q.Local() || !a.q.Parting() {
			t.Fatalf("after Split: %d messages moved, local %v, parting %v; want 0, true, true", n, a.q.Local(), a.q.Parting())
		}
		write(c, 64)
		a.turn(0, out[:])
		if n := a.e.counters.LocalMessages; n != 1 {
			t.Fatalf("%d messages moved in the first Transmit, want the other pair's", n)
		}
		if stays {
			if err := a.e.Join(0, a.q, b.q); err != nil {
				t.Fatal(err)
			}
		}
		packets := 0
		for turn := 0; (a.e.Pending() != 0 || a.e.PendingLocal() || b.e.PendingLocal()) && packets == 0; turn++ {
			if packets += a.turn(0, out[:]); turn > 2*long/localBudget {
				t.Fatal("the long message does not end")
			}
		}
		if !bytes.Equal(from, to) {
			t.Error("the data differs")
		}
		if want := map[bool]int{false: 1}[stays]; packets != want || a.q.Local() != stays || a.q.Parting() {
			t.Errorf("%d packets, want %d; local %v, parting %v", packets, want, a.q.Local(), a.q.Parting())
		}
	}
}
