package raw

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	// mostLate is how many frames wait for receives of one queue pair at most; more are lost.
	mostLate = 1024
	// askFirst is after what time a queue pair without a receive is looked at again, and askLast the longest such time: it doubles.
	askFirst = 10 * time.Microsecond
	askLast  = 500 * time.Microsecond
)

// late are the frames that wait for receives of queue pairs which delay drops, each in the order in which they came. Others do not wait
// for them: every queue pair has a line of its own.
type late struct{ lines []*line }

// line is what waits for one queue pair: n of a ring from first on. An empty one keeps its memory.
type line struct {
	q        *transport.QP
	frames   [mostLate]lateFrame
	first, n int
	again    clock.Time
	poll     time.Duration
}

type lateFrame struct {
	data  []byte
	flow  *Flow // nil: it was removed
	what  transport.Arrival
	until clock.Time
}

func (x *line) at(i int) *lateFrame { return &x.frames[(x.first+i)%mostLate] }

// waits reports whether frames wait for q.
func (l *late) waits(q *transport.QP) bool {
	if len(l.lines) == 0 {
		return false
	}
	x := l.of(q)
	return x != nil && x.n > 0
}

func (l *late) of(q *transport.QP) *line {
	for _, x := range l.lines {
		if x.q == q {
			return x
		}
	}
	return nil
}

// add makes a copy of a frame wait. False: too many do.
func (l *late) add(now clock.Time, q *transport.QP, o *Flow, head, rest []byte, a transport.Arrival) bool {
	x := l.of(q)
	if x == nil {
		x = &line{q: q}
		l.lines = append(l.lines, x)
	}
	switch x.n {
	case mostLate:
		return false
	case 0:
		x.again, x.poll = now.Add(askFirst), askFirst
	}
	y := x.at(x.n)
	x.n++
	y.data = append(append(y.data[:0], head...), rest...)
	y.flow, y.what, y.until = o, a, now.Add(command.DelayDrop)
	return true
}

// forget removes the frames of a flow that ends.
func (l *late) forget(o *Flow) {
	l.lines = slices.DeleteFunc(l.lines, func(x *line) bool {
		kept := false
		for i := range x.n {
			if y := x.at(i); y.flow == o {
				y.flow = nil
			} else if y.flow != nil {
				kept = true
			}
		}
		return !kept
	})
}

// leave removes the frames for a queue pair that ends.
func (l *late) leave(q *transport.QP) {
	l.lines = slices.DeleteFunc(l.lines, func(x *line) bool { return x.q == q })
}

// due returns when drain has something to do.
func (l *late) due() clock.Time {
	t := clock.Never
	for _, x := range l.lines {
		if x.n > 0 {
			t = clock.Min(t, x.again)
		}
	}
	return t
}

// drain hands on what waits for queue pairs that have receives now, and what has waited for too long, which is lost.
func (l *late) drain(now clock.Time, hand func(now clock.Time, q *transport.QP, o *Flow, head, rest []byte, a transport.Arrival)) {
	for _, x := range l.lines {
		if x.n == 0 || x.again > now {
			continue
		}
		moved := false
		for x.n > 0 {
			y := x.at(0)
			if y.flow != nil && y.until > now && x.q.DelaysDrop() && x.q.Starves() {
				break
			}
			if y.flow != nil {
				hand(now, x.q, y.flow, y.data, nil, y.what)
			}
			y.flow = nil
			x.first, x.n, moved = (x.first+1)%mostLate, x.n-1, true
		}
		if moved {
			x.poll = askFirst
		}
		x.again = now.Add(x.poll)
		x.poll = min(2*x.poll, askLast)
	}
}
