package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/wire/ib"
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

// settled reports that no copy of the responder is under way.
func (q *QP) settled() bool { return true }

func (q *QP) settleEffect() {}

func (q *QP) dropEffects() {}

// acknowledged is the PSN and MSN that an ACK may show.
func (q *QP) acknowledged() (ib.PSN, uint32) { return q.resp.psn.Prev(), q.resp.msn }

// deliver queues a completion of the receiving side.
func (q *QP) deliver(c Completion) { *q.eng.completions.push() = c }

func (q *QP) placeIn(b *buffers, off uint64, data []byte, last bool) error {
	return b.write(off, data, last)
}

func (q *QP) placeAt(s memory.Span, data []byte, last bool) error {
	if last {
		return s.Region.WriteLast(s.Addr, data)
	}
	return s.Region.Write(s.Addr, data)
}

func (q *QP) atomic(r *result, s memory.Span, op ib.Opcode, h ib.AtomicETH) (err error) {
	if op == ib.RCCompareSwap {
		r.value, err = s.Region.CompareSwap(s.Addr, h.Compare(), h.SwapAdd())
		return err
	}
	r.value, err = s.Region.FetchAdd(s.Addr, h.SwapAdd())
	return err
}

func (q *QP) fetchedAt(f *fetch, s memory.Span, n, left uint64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if s.Region.Mapped() {
		if s.Region.Dead() {
			return nil, memory.ErrGone
		}
		return s.Region.Slice(s.Addr, n), nil
	}
	if q.eng.scratch.full() {
		return nil, nil
	}
	buf := q.eng.scratch.take(int(n))
	if err := s.Region.Read(buf, s.Addr); err != nil {
		return nil, err
	}
	return buf, nil
}
