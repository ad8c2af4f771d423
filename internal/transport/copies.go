package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/memory"
)

// Copy is a copy that the engine cannot make itself, because the Accessor of
// Region does not finish within the call. The driver starts it (memory.Deferred)
// and reports its end with Copied, in the order in which the copies of a region
// were handed out. Transfer.Data stays valid until then.
type Copy struct {
	Region *memory.Region
	memory.Transfer
}

// CopyResult is the end of a Copy: its Tag, what stood at an atomic's operand,
// and the error if it failed.
type CopyResult = memory.Finished

type fetch struct{}

type copies struct{ queue queue[Copy] }

// Copies moves copies to start out and returns their number.
func (e *Engine) Copies(out []Copy) int { return e.copies.queue.take(out) }

// Copied takes the ends of copies. Until then no ACK, completion, packet or read
// response depends on them.
func (e *Engine) Copied(now clock.Time, done []CopyResult) { e.now = now }

func (e *Engine) dropFetch(*fetch) {}

func (q *QP) fetched(f *fetch, b *buffers, off, n uint64) ([]byte, error) {
	if v := b.view(off, n); v != nil {
		return v, nil
	}
	if q.eng.scratch.full() {
		return nil, nil
	}
	buf := q.eng.scratch.take(int(n))
	if err := b.read(buf, off); err != nil {
		return nil, err
	}
	return buf, nil
}

func (q *QP) place(b *buffers, off uint64, data []byte, last bool, r *request) error {
	return b.write(off, data, last)
}
