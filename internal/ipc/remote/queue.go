package remote

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// Words of the header of a ring (docs/spec/ipc.md, Rings).
const (
	producerAt = 0
	consumerAt = 64
)

// queue is a ring of requests: at the agent one that a program fills, at the relay the driver's, which is filled with the same entries.
// Its owner's lock protects it.
type queue struct {
	mem    []byte
	count  uint32
	stride uint32
	next   uint32 // index behind the entries that were carried
	given  uint32 // index up to which they were given back, as far as the other side knows
}

// newQueue opens the ring that an answer names.
func newQueue(arenas [][]byte, at command.Ring, entries, stride uint32) (*queue, error) {
	b, err := within(arenas, at)
	if err != nil {
		return nil, err
	}
	g := ring.Geometry{Entries: int(entries), Stride: int(stride)}
	if entries == 0 || entries > ring.MaxEntries || entries&(entries-1) != 0 || stride == 0 || stride%8 != 0 ||
		stride > maxPosted || g.Size() > len(b) {
		return nil, fmt.Errorf("%w: a ring of %d entries of %d bytes in %d", errMessage, entries, stride, len(b))
	}
	return &queue{mem: b, count: entries, stride: stride}, nil
}

// resume continues in the ring that an SRQ was moved to, whose entries from first on are the program's to post. The driver has those
// before, and has given none of them back as far as this side knows.
func (q *queue) resume(first uint32) error {
	if first > q.count {
		return fmt.Errorf("%w: %d entries were moved to a ring of %d", errMessage, first, q.count)
	}
	q.next, q.given = first, 0
	return nil
}

// within returns the memory of a ring.
func within(arenas [][]byte, at command.Ring) ([]byte, error) {
	if uint64(at.Arena) >= uint64(len(arenas)) {
		return nil, fmt.Errorf("%w: arena %d of %d", errMessage, at.Arena, len(arenas))
	}
	b := arenas[at.Arena]
	if at.Size < ring.HeaderSize || at.Offset%64 != 0 || at.Offset > uint64(len(b)) || at.Size > uint64(len(b))-at.Offset {
		return nil, fmt.Errorf("%w: a ring of %d bytes at %d of an arena of %d", errMessage, at.Size, at.Offset, len(b))
	}
	return b[at.Offset : at.Offset+at.Size : at.Offset+at.Size], nil
}

func (q *queue) word(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&q.mem[at])) }

func (q *queue) entry(index uint32) []byte {
	i := ring.HeaderSize + int(index&(q.count-1))*int(q.stride)
	return q.mem[i : i+int(q.stride)]
}

// collect returns entries that the program has published and that were not carried, as many as a message holds. It is the agent's.
func (q *queue) collect(buf []byte) (start, n uint32, entries []byte, err error) {
	p := q.word(producerAt).Load()
	if p-q.given > q.count || p-q.given < q.next-q.given {
		return 0, 0, nil, fmt.Errorf("producer %d of a ring of %d entries, of which %d are in use", p, q.count, q.next-q.given)
	}
	start, n = q.next, min(p-q.next, maxPosted/q.stride)
	for i := range n {
		buf = append(buf, q.entry(start+i)...)
	}
	q.next += n
	return start, n, buf, nil
}

// giveBack gives entries back to the program up to an index. It is the agent's.
func (q *queue) giveBack(index uint32) error {
	if index-q.given > q.next-q.given {
		return fmt.Errorf("%w: entries up to %d were taken, of %d", errMessage, index, q.next)
	}
	q.given = index
	q.word(consumerAt).Store(index)
	return nil
}

// put publishes entries in the driver's ring. It is the relay's.
func (q *queue) put(start, n uint32, entries []byte) error {
	switch used := q.next - q.word(consumerAt).Load(); {
	case start != q.next || n == 0 || uint64(len(entries)) != uint64(n)*uint64(q.stride):
		return fmt.Errorf("%w: %d entries from %d with %d bytes; the next is %d", errMessage, n, start, len(entries), q.next)
	case used > q.count || n > q.count-used:
		return fmt.Errorf("%w: %d entries in a ring of %d, of which %d are in use", errMessage, n, q.count, used)
	}
	for i := range n {
		copy(q.entry(start+i), entries[i*q.stride:(i+1)*q.stride])
	}
	q.next += n
	q.word(producerAt).Store(q.next)
	return nil
}

// progress returns up to which index entries were given back by the driver, if that is news. It is the relay's.
func (q *queue) progress() (index uint32, news bool) {
	index = q.word(consumerAt).Load()
	news, q.given = index != q.given, index
	return index, news
}

// appendCQE appends a completion as it lies in a ring.
func appendCQE(b []byte, e *ring.CQE) []byte {
	at := len(b)
	b = append(b, make([]byte, ring.CQESize)...)
	e.Put(b[at:])
	return b
}

// cqeAt returns a completion.
func cqeAt(b []byte, i int) (e ring.CQE) {
	e.Get(b[i*ring.CQESize:])
	return e
}
