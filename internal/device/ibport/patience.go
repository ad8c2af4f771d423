package ibport

import (
	ordered "container/heap"

	"github.com/softvpi/softvpi/internal/clock"
)

// Wait is a question to the fabric whose answer somebody waits for, until it is due.
type Wait struct {
	due  clock.Time
	over func(now clock.Time) // that time is over
	at   int                  // place in the heap plus one; 0 for none
}

// Await begins a wait until due; then over is called, unless End was before. It is called at most once.
func (p *Port) Await(due clock.Time, over func(now clock.Time)) *Wait {
	w := &Wait{due: due, over: over}
	p.waits.begin(w)
	return w
}

// End ends a wait, which may be over already.
func (p *Port) End(w *Wait) { p.waits.end(w) }

// waits are the questions that wait, the one that is due first at the front.
type waits struct{ heap questions }

func (w *waits) begin(x *Wait) { ordered.Push(&w.heap, x) }

// end forgets a question; it may be over already.
func (w *waits) end(x *Wait) {
	if x.at != 0 {
		ordered.Remove(&w.heap, x.at-1)
	}
}

// deadline is when expire is wanted next.
func (w *waits) deadline() clock.Time {
	if len(w.heap) == 0 {
		return clock.Never
	}
	return w.heap[0].due
}

// expire ends what has waited for too long, and reports whether there was anything.
func (w *waits) expire(now clock.Time) (any bool) {
	for w.deadline() <= now {
		ordered.Pop(&w.heap).(*Wait).over(now)
		any = true
	}
	return any
}

// questions implements heap.Interface.
type questions []*Wait

func (h questions) Len() int           { return len(h) }
func (h questions) Less(i, j int) bool { return h[i].due < h[j].due }
func (h questions) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i+1, j+1
}

func (h *questions) Push(x any) {
	w := x.(*Wait)
	*h = append(*h, w)
	w.at = len(*h)
}

func (h *questions) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.at = 0
	return w
}
