package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// TestUCPrograms runs random programs on an unreliable connection: every request completes, and what arrives is whole
// messages in the order in which they were sent, each at most once (IBA 9.8.3). Reordered packets count as lost.
func TestUCPrograms(t *testing.T) {
	runPrograms(t, func(seed uint64) error { return ucProgram(t, seed) })
}

func ucProgram(t testing.TB, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 4))
	n := sim.New(seed)
	n.Default = impairments(rng)
	n.Default.Duplicate = 0 // a duplicate of a single-packet message would be a message of its own
	a := newHost(t, n, "10.0.0.1", Config{}).qp(command.UC, QPConfig{})
	b := newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.UC, QPConfig{})
	c := defaultConnection()
	c.mtu = 256 << rng.IntN(5)
	connect(a, b, c)
	const count, slot = 40, 4096
	from, to := make([]byte, count*slot), make([]byte, count*slot)
	a.region(regionAt, from, allowAll)
	b.region(regionAt, to, allowAll)
	sizes := make([]int, count)
	for i := range count {
		b.postRecv(ring.RecvWR{ID: uint64(i), NumSGE: 1, SGE: b.sges(regionAt+uint64(i*slot), slot, b.key())})
		sizes[i] = rng.IntN(slot + 1)
		copy(from[i*slot:], pattern(sizes[i], byte(i*37)))
	}
	for i := range count {
		a.doWith(ring.OpSendImm, sizes[i], func(w *ring.SendWR) { w.SGE[0].Addr += uint64(i * slot); w.Imm = uint32(i) })
		if rng.IntN(3) == 0 {
			n.Pass(time.Duration(rng.IntN(30)) * time.Microsecond)
		}
	}
	n.Pass(time.Second)
	if len(a.comps) != count {
		return fmt.Errorf("%d of %d requests completed", len(a.comps), count)
	}
	last := -1
	for k, r := range b.comps {
		i := int(r.Imm)
		if r.Status != ring.Success || r.ID != uint64(k) || n.Stats.Reordered == 0 && i <= last {
			return fmt.Errorf("receive %d: %+v after message %d", k, r.CQE, last)
		}
		last = i
		if int(r.ByteLen) != sizes[i] || !bytes.Equal(to[k*slot:k*slot+sizes[i]], from[i*slot:i*slot+sizes[i]]) {
			return fmt.Errorf("message %d differs", i)
		}
	}
	if n.Stats.Lost+n.Stats.Corrupted+n.Stats.Reordered == 0 && len(b.comps) != count {
		return fmt.Errorf("without faults %d of %d messages arrived, want all", len(b.comps), count)
	}
	return nil
}
