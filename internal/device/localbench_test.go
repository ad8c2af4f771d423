package device

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// localPair is a pair of connected queue pairs on the local path.
func localPair(b *testing.B) *connected {
	x, y := networks[1].make(b, AdapterConfig{})
	q := command.CreateQP{SendDepth: 64, RecvDepth: 64, SendSGE: 1, RecvSGE: 1, Inline: 64}
	c := connect(x.qp(q, x.cq(256)), y.qp(q, y.cq(256)))
	if p := c.a.info().Path; p != 2 {
		b.Fatalf("path %d, want 2, the local one", p)
	}
	return c
}

// BenchmarkLocalWrite writes messages of one size on the local path, with one doorbell for as many as a queue of 64 holds,
// or one for each.
func BenchmarkLocalWrite(b *testing.B) {
	for _, size := range []int{64, 4096, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchWrites(b, localPair(b), size, false) })
	}
	b.Run("64/singly", func(b *testing.B) { benchWrites(b, localPair(b), 64, true) })
}

// BenchmarkLocalRoundTrip sends 32 bytes to and fro between two programs of one thread, on the local path.
func BenchmarkLocalRoundTrip(b *testing.B) {
	c := localPair(b)
	ends := [2]*pair{c.a, c.b}
	var bufs [2]*buffer
	for i, q := range ends {
		bufs[i] = q.p.buffer(64)
		q.postRecv(0, bufs[i].sge(0, 32))
	}
	receive := func(q *pair) {
		for q.cq.next().Op != ring.CQRecv {
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for i, q := range ends {
			peer := 1 - i
			q.postSend(0, ring.OpSend, bufs[i].sge(32, 32))
			receive(ends[peer])
			ends[peer].postRecv(0, bufs[peer].sge(0, 32))
		}
	}
}
