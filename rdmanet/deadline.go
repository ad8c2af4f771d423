package rdmanet

import (
	"sync"
	"sync/atomic"
	"time"
)

// deadline is a point in time that may be moved while a call waits for it.
type deadline struct {
	passed func() // called when it passes
	done   atomic.Bool

	mu    sync.Mutex
	turn  uint64 // counts the moves, so that the timer of an earlier one does nothing
	timer *time.Timer
}

func newDeadline(passed func()) *deadline { return &deadline{passed: passed} }

// set moves the deadline to t; the zero time means never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.done.Store(false)
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
	d.done.Store(true)
	d.passed()
}

// over reports whether the deadline has passed.
func (d *deadline) over() bool { return d.done.Load() }
