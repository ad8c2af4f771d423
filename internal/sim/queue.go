package sim

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
)

// lane is packets that arrive at a port in the order in which they are in it, such as those of one link.
type lane struct {
	packets
	to   *Port
	from *Port // nil: a switch, or Inject
	rank uint64
}

// lanes is where the ranks of lanes begin.
const lanes = 1 << 39

// rank returns the order of a lane among those whose packets arrive at the same instant: by their ports, so that each gets
// its packets together, and there by where they come from, which does not depend on who sends first.
func rank(to *Port, from uint64) uint64 { return uint64(to.number)<<40 | from }

// foresight is how many of the lanes that are next are in order, so that the memory of each can be asked for
// in steps while those before it have their turns.
const foresight = PrefetchSteps + 3

// arrivals is the lanes that are not empty, by when their first packets arrive, and among equals by
// rank. The next ones are in order, all others in a heap. As the packets of a lane are in order
// too, there are as many as busy links, and not as packets.
type arrivals struct {
	next  [foresight]arrival
	count int // of next; less than foresight only if heap is empty
	heap  []arrival
}

type arrival struct {
	at   clock.Time
	rank uint64
	lane *lane
}

func (x *arrival) before(y *arrival) bool {
	return x.at < y.at || x.at == y.at && x.rank < y.rank
}

// precedes is before as a number, 1 or 0: the subtraction of both together borrows. In a heap a branch on it would be
// predicted wrong half of the time.
func (x *arrival) precedes(y *arrival) uint64 {
	_, borrow := bits.Sub64(x.rank, y.rank, 0)
	_, borrow = bits.Sub64(uint64(x.at), uint64(y.at), borrow)
	return borrow
}

// deadline returns when the first packet arrives.
func (h *arrivals) deadline() clock.Time {
	if h.count == 0 {
		return clock.Never
	}
	return h.next[0].at
}

// push adds a packet to a lane, in which none arrives later.
func (h *arrivals) push(l *lane, p *packet) {
	l.add(p)
	if l.count > 1 {
		return
	}
	x := arrival{p.at, l.rank, l}
	switch {
	case h.count < foresight:
		h.count++
	case x.before(&h.next[foresight-1]):
		h.add(h.next[foresight-1])
	default:
		h.add(x)
		return
	}
	i := h.count - 1
	for ; i > 0 && x.before(&h.next[i-1]); i-- {
		h.next[i] = h.next[i-1]
	}
	h.next[i] = x
}

// pop removes the packet that arrives first; there must be one.
func (h *arrivals) pop() *packet {
	l := h.next[0].lane
	p := l.remove()
	if l.count == 0 {
		h.leave()
		return p
	}
	q := l.first()
	x := arrival{q.at, l.rank, l}
	i := 0
	for ; i+1 < h.count && h.next[i+1].before(&x); i++ {
		h.next[i] = h.next[i+1]
	}
	if i == foresight-1 && len(h.heap) > 0 && h.heap[0].before(&x) {
		x, h.heap[0] = h.heap[0], x
		h.down()
	}
	h.next[i] = x
	return p
}

// leave removes the first lane.
func (h *arrivals) leave() {
	copy(h.next[:], h.next[1:h.count])
	last := len(h.heap) - 1
	if last < 0 {
		h.count--
		h.next[h.count] = arrival{}
		return
	}
	h.next[foresight-1] = h.heap[0]
	h.heap[0], h.heap[last] = h.heap[last], arrival{}
	h.heap = h.heap[:last]
	h.down()
}

// children is how many each place of a heap has, which least knows: it is flatter than a binary one, and the children of a
// place are next to each other.
const children = 4

// add adds a lane to the heap.
func (h *arrivals) add(x arrival) {
	h.heap = append(h.heap, x)
	i := len(h.heap) - 1
	for i > 0 {
		above := (i - 1) / children
		if !x.before(&h.heap[above]) {
			break
		}
		h.heap[i] = h.heap[above]
		i = above
	}
	h.heap[i] = x
}

// down restores the order of the heap after a change of its first place.
func (h *arrivals) down() {
	if len(h.heap) == 0 {
		return
	}
	x, i := h.heap[0], 0
	for low := 1; low < len(h.heap); low = children*i + 1 {
		low += least(h.heap[low:])
		if !h.heap[low].before(&x) {
			break
		}
		h.heap[i] = h.heap[low]
		i = low
	}
	h.heap[i] = x
}

// least returns which of the first children is the first.
func least(h []arrival) int {
	if len(h) < children {
		low := 0
		for i := range h {
			if h[i].before(&h[low]) {
				low = i
			}
		}
		return low
	}
	c := (*[children]arrival)(h)
	a := c[1].precedes(&c[0])
	b := 2 + c[3].precedes(&c[2])
	return int(a + (b-a)*c[b%children].precedes(&c[a%children]))
}
