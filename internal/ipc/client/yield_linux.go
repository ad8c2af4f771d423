package client

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/shared"
)

const (
	// patience is how many empty polls lie between two yields that nobody uses: some microseconds. A yield
	// takes as long as ten polls.
	patience = 64
	// takenTime is the minimum duration of a yield that another thread used.
	takenTime = 1200 * time.Nanosecond
	// contendedOffers is how many consecutive yields must go unused before patience applies again.
	contendedOffers = 16
	// wearyOffers is how many yields must be used before a nap of napTime. The time between naps is at
	// least firstGap, and doubles each time up to maxGap, until there was none for longRest.
	wearyOffers = 32
	napTime     = time.Microsecond
	firstGap    = 100 * time.Microsecond
	maxGap      = 20 * time.Millisecond
	longRest    = time.Second
	// urgentLooks is the number of empty polls, taking about a millisecond, after which threads with
	// real-time priority sleep between polls: sched_yield(2) does not yield to lower priorities, and the
	// driver that they wait for may need this processor.
	urgentLooks = 256 * patience
	// urgentTime is the length of such a sleep: one of a microsecond ends before they sleep.
	urgentTime = 50 * time.Microsecond
)

// yieldPolicy decides when pollers yield the processor. What they wait for may be produced by somebody who needs
// this very processor: as long as yields are used, there is one after each empty poll. The zero value is
// for a poller that is alone.
//
// Two threads that take turns on one processor may do so for long while another processor is idle: the
// system moves threads that wake up, and neither of them ever sleeps. So if yields are used there is a nap
// now and then.
type yieldPolicy struct {
	offers atomic.Int32 // still to be made at once
	taken  atomic.Int32 // used yields since the last time alone, or the last nap

	mu   sync.Mutex
	last time.Time // nap
	gap  time.Duration
}

// poll is called after poll number idle of a series that found nothing; it reports whether it yielded.
func (c *yieldPolicy) poll(idle uint32) bool {
	if idle%patience != 0 && c.offers.Load() == 0 {
		return false
	}
	if idle >= urgentLooks && urgent() {
		doze(urgentTime)
		return true
	}
	began := time.Now()
	if c.taken.Load() >= wearyOffers && c.nap(began) {
		return true
	}
	shared.Yield()
	c.offered(time.Since(began))
	return true
}

// offered records how long a yield took. Concurrent pollers may lose updates of the counts.
func (c *yieldPolicy) offered(took time.Duration) {
	switch n := c.offers.Load(); {
	case took >= takenTime:
		if n != contendedOffers {
			c.offers.Store(contendedOffers)
		}
		if t := c.taken.Load(); t < wearyOffers {
			c.taken.Store(t + 1)
		}
	case n == 1: // alone again
		c.taken.Store(0)
		fallthrough
	case n > 1:
		c.offers.Store(n - 1)
	}
}

// nap sleeps for a moment, unless the last time was too recent.
func (c *yieldPolicy) nap(now time.Time) bool {
	if !c.mu.TryLock() {
		return false
	}
	rested := now.Sub(c.last)
	if rested < c.gap {
		c.mu.Unlock()
		return false
	}
	c.gap = min(2*c.gap, maxGap)
	if c.gap == 0 || rested > longRest {
		c.gap = firstGap
	}
	c.last = now
	c.mu.Unlock()
	c.taken.Store(0)
	doze(napTime)
	return true
}

func doze(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}

// urgent reports whether this thread has real-time priority, for instance by chrt -f.
func urgent() bool {
	const fifo, roundRobin, resetOnFork = 1, 2, 1 << 30 // sched.h
	policy, _, err := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	policy &^= resetOnFork
	return err == 0 && (policy == fifo || policy == roundRobin)
}
