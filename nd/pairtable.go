package nd

import (
	"sync"
	"sync/atomic"
)

// pairTable looks up a queue pair, without a lock, by the number that its completions carry. A number is
// an index into the table with a count of the index's uses above it, so that a completion of a closed
// queue pair does not match the next user of the index.
type pairTable struct {
	mu     sync.Mutex
	free   []uint32
	count  uint32
	uses   []uint32
	chunks atomic.Pointer[[]*pairChunk]
}

const chunkSize = 256

type pairChunk [chunkSize]atomic.Pointer[QueuePair]

// reserve returns a number for a new queue pair.
func (t *pairTable) reserve() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var place uint32
	if n := len(t.free); n > 0 {
		place, t.free = t.free[n-1], t.free[:n-1]
	} else {
		place = t.count
		t.count++
		t.uses = append(t.uses, 0)
		if place%chunkSize == 0 {
			t.grow()
		}
	}
	t.uses[place]++
	return uint64(t.uses[place])<<32 | uint64(place)
}

func (t *pairTable) grow() {
	var chunks []*pairChunk
	if old := t.chunks.Load(); old != nil {
		chunks = append(chunks, *old...)
	}
	chunks = append(chunks, new(pairChunk))
	t.chunks.Store(&chunks)
}

func (t *pairTable) cell(number uint64) *atomic.Pointer[QueuePair] {
	chunks := t.chunks.Load()
	place := uint32(number)
	if chunks == nil || uint64(place/chunkSize) >= uint64(len(*chunks)) {
		return nil
	}
	return &(*chunks)[place/chunkSize][place%chunkSize]
}

func (t *pairTable) put(number uint64, qp *QueuePair) { t.cell(number).Store(qp) }

// release gives the number back.
func (t *pairTable) release(number uint64) {
	t.cell(number).Store(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, uint32(number))
}

// context returns the context of the queue pair with this number.
func (t *pairTable) context(number uint64) any {
	c := t.cell(number)
	if c == nil {
		return nil
	}
	if qp := c.Load(); qp != nil && qp.number == number {
		return qp.context
	}
	return nil
}
