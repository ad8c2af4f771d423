package wait

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Contention watches whether the yields of pollers are used, and has them yield accordingly. What they wait for may be
// produced by somebody who needs this very processor: as long as yields are used, one follows each vain look. The zero
// value is for pollers that are alone. Any number of goroutines share one.
//
// Two threads that take turns on one processor may do so for long while another processor is idle: the system moves
// threads that wake up, and neither of them ever sleeps. So if yields are used there is a Nap now and then.
type Contention struct {
	owed atomic.Int32 // yields to be made one after each look
	used atomic.Int32 // used yields since the last time alone, or since the last nap

	mu   sync.Mutex
	last clock.Time // nap
	gap  time.Duration
}

// Due reports whether a yield follows the nth vain look in a row: then Next says which. It is part of every empty poll:
// the policy's Looks must be a power of two.
func (c *Contention) Due(p *Policy, n uint32) bool { return n&(p.Looks-1) == 0 || c.owed.Load() != 0 }

// Next returns which yield, or nap, follows the nth vain look in a row. After a yield, call Yielded.
func (c *Contention) Next(p *Policy, n uint32, now clock.Time) Step {
	switch {
	case n >= lowerLooks:
		return YieldLower
	case c.used.Load() >= weary && c.nap(now):
		return Nap
	}
	return p.yield(n)
}

// Yielded records whether somebody used a yield. Concurrent pollers may lose updates of the counts.
func (c *Contention) Yielded(used bool) {
	switch n := c.owed.Load(); {
	case used:
		if n != contended {
			c.owed.Store(contended)
		}
		if t := c.used.Load(); t < weary {
			c.used.Store(t + 1)
		}
	case n == 1: // alone again
		c.used.Store(0)
		fallthrough
	case n > 1:
		c.owed.Store(n - 1)
	}
}

// nap reports whether it is time for a nap: not too soon after the last one.
func (c *Contention) nap(now clock.Time) bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	rested := now.Sub(c.last)
	if rested < c.gap {
		return false
	}
	c.gap = min(2*c.gap, napGapMost)
	if c.gap == 0 || rested > napRest {
		c.gap = napGap
	}
	c.last = now
	c.used.Store(0)
	return true
}
