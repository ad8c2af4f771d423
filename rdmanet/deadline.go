package rdmanet

import (
	"sync"
	"time"
)

// deadline is a point in time that may be moved while a call waits for it.
type deadline struct {
	mu     sync.Mutex
	turn   uint64 // counts the moves, so that the timer of an earlier one does nothing
	timer  *time.Timer
	passed chan struct{} // closed when the deadline has passed
	done   bool          // passed is closed
}

func newDeadline() *deadline { return &deadline{passed: make(chan struct{})} }

// set moves the deadline to t; the zero time means never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.done {
		d.passed, d.done = make(chan struct{}), false
	}
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.pass()
		return
	}
	turn := d.turn
	d.timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.turn == turn {
			d.pass()
		}
	})
}

func (d *deadline) pass() {
	close(d.passed)
	d.done = true
}

// channel returns a channel that is closed when the deadline passes, unless it is moved before.
func (d *deadline) channel() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

func (d *deadline) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}
