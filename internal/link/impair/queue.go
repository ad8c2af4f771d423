package impair

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// packet is a copy of a frame with buffers for its route and payload, which are reused.
type packet struct {
	out     *frame.Out
	route   *frame.Route
	payload *[]byte
}

// held is a bounded queue of packets in the order in which they leave.
type held struct {
	outs     []frame.Out // contiguous, as the inner link sends them from here
	routes   []frame.Route
	payloads [][]byte
	due      []clock.Time
	head     int
	len      int
}

func (q *held) init() {
	if q.outs != nil {
		return
	}
	q.outs = make([]frame.Out, queueSlots)
	q.routes = make([]frame.Route, queueSlots)
	q.payloads = make([][]byte, queueSlots)
	q.due = make([]clock.Time, queueSlots)
}

func (q *held) free() int { return len(q.outs) - q.len }

// push takes the next slot; there must be a free one.
func (q *held) push(due clock.Time) packet {
	i := (q.head + q.len) % len(q.outs)
	q.len++
	q.due[i] = due
	return packet{&q.outs[i], &q.routes[i], &q.payloads[i]}
}

// ready returns the packets at the front that are due and contiguous.
func (q *held) ready(now clock.Time) []frame.Out {
	n := 0
	for n < q.len && q.head+n < len(q.outs) && q.due[q.head+n] <= now {
		n++
	}
	return q.outs[q.head : q.head+n]
}

func (q *held) drop(n int) {
	if n == 0 {
		return
	}
	q.head = (q.head + n) % len(q.outs)
	q.len -= n
}

// newLate allocates the buffers of packets that are held back.
func newLate() []packet {
	spare := make([]packet, lateSlots)
	for i := range spare {
		spare[i] = packet{new(frame.Out), new(frame.Route), new([]byte)}
	}
	return spare
}
