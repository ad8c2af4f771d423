package device

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
)

// TestLargeMessages: large writes and reads, one behind the other, are copied to their place in the same pass that
// checks their ICRC. All bytes arrive, and none beside them changes.
func TestLargeMessages(t *testing.T) {
	const size, rounds, together = 4 << 20, 12, 4
	c := pairs(t, networks[0], AdapterConfig{Path: PathWire})
	rng := rand.New(rand.NewPCG(1, 2))
	near, far := c.a.p.buffer(size), c.b.p.buffer(size)
	fill(near.b, 1)
	fill(far.b, 2)
	for round := range rounds {
		op, done := ring.OpWrite, ring.CQWrite
		if round%2 != 0 {
			op, done = ring.OpRead, ring.CQRead
		}
		wantNear, wantFar := bytes.Clone(near.b), bytes.Clone(far.b)
		for i := range together { // each in a quarter of its own
			n := 1 + rng.IntN(size/together)
			from, to := i*size/together+rng.IntN(size/together-n+1), i*size/together+rng.IntN(size/together-n+1)
			c.a.post(ring.SendWR{ID: uint64(i), Op: op, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: far.addr(to), RKey: far.mem.RKey,
				SGE: [ring.MaxSGE]ring.SGE{near.sge(from, n)}})
			if op == ring.OpWrite {
				copy(wantFar[to:to+n], near.b[from:])
			} else {
				copy(wantNear[from:from+n], far.b[to:])
			}
		}
		for i := range together {
			wantSuccess(t, c.a.cq.next(), uint64(i), done)
		}
		if !bytes.Equal(near.b, wantNear) || !bytes.Equal(far.b, wantFar) {
			t.Fatalf("round %d, %v: bytes differ", round, op)
		}
	}
	for _, q := range []*pair{c.a, c.b} {
		if c := q.p.host.Counters()[q.p.adapter]; c.Encap.Placed == 0 {
			t.Errorf("%v placed none of %d packets while checking the ICRC", q.p.addr, c.Link.ReceivedPackets)
		}
	}
}
