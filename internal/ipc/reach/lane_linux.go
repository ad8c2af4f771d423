package reach

import "github.com/softvpi/softvpi/internal/memory"

// lane is an Accessor over a copier, one for each PD: the adapters that a program uses share its copier,
// and each must get back what it started.
type lane struct {
	c     *Copier
	users int // regions; under copier.mu
	done  []memory.Finished
	head  int
}

var _ memory.Deferred = (*lane)(nil)

// Blocking implements memory.Accessor: it never finishes within a call.
func (l *lane) Blocking() bool { return false }

// Read implements memory.Accessor; it is refused.
func (l *lane) Read([]byte, uint64) error { return memory.ErrBlock }

// Write implements memory.Accessor; it is refused.
func (l *lane) Write(uint64, []byte) error { return memory.ErrBlock }

// Limit implements memory.Deferred.
func (l *lane) Limit() int { return copierPiece }

// Start implements memory.Deferred. It accepts every transfer: one that waits for a slow program must not
// delay another program's.
func (l *lane) Start(t *memory.Transfer) bool {
	c := l.c
	f := copyInFlight{Transfer: *t, lane: l}
	if len(f.Data) > copierPiece {
		f.Kind, f.Data = 0, nil // it fails when its turn comes
	}
	switch {
	case c.dead.Load():
		l.end(t, memory.ErrGone)
	case c.head == len(c.queue) && (c.merge(&f) || c.issue(&f)):
	case len(c.queue)-c.head >= maxQueued:
		c.dead.Store(true)
		l.end(t, memory.ErrGone)
	default:
		c.queue = append(c.queue, f)
	}
	return true
}

// Flush implements memory.Deferred.
func (l *lane) Flush() { l.c.ring() }

// Finish implements memory.Deferred.
func (l *lane) Finish(out []memory.Finished) int {
	l.c.collect()
	n := copy(out, l.done[l.head:])
	l.head += n
	if l.head == len(l.done) {
		l.done, l.head = l.done[:0], 0
	}
	return n
}

func (l *lane) end(t *memory.Transfer, err error) {
	l.done = append(l.done, memory.Finished{Tag: t.Tag, Err: err})
}
