package ipc

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/shared"
	"golang.org/x/sys/unix"
)

const (
	// patience is how many looks in vain pass between two offers of the processor that
	// nobody takes: some microseconds. An offer itself takes as long as ten looks.
	patience = 64
	// takenTime is how long an offer takes at least that another thread took.
	takenTime = 1200 * time.Nanosecond
	// crowdOffers is how many offers in a row nobody must take before patience is back.
	crowdOffers = 16
	// wearyOffers is how many offers must be taken before a nap, of napTime. From one
	// nap to the next it is firstGap at least, and twice as long each time up to maxGap,
	// until there was none for longRest.
	wearyOffers = 32
	napTime     = time.Microsecond
	firstGap    = 100 * time.Microsecond
	maxGap      = 20 * time.Millisecond
	longRest    = time.Second
	// urgentLooks is after how many looks in vain, a millisecond or so, those with real-time
	// priority sleep between looks: sched_yield(2) offers the processor to nobody of less
	// priority, and the driver they wait for may need this one.
	urgentLooks = 256 * patience
	// urgentTime is for how long: the sleep of a microsecond is over before they have slept.
	urgentTime = 50 * time.Microsecond
)

// crowd decides when those who poll offer the processor to others. What they wait for
// may be made by somebody who needs this very processor: as long as others take what is
// offered, it is offered after each look in vain. The zero value is of one who is alone.
//
// Two who go on taking turns on one processor may do so for long while another
// processor is idle: the system moves threads that wake up, and none of them ever
// sleeps. So where offers are taken there is a nap now and then.
type crowd struct {
	offers atomic.Int32 // to be made at once still
	taken  atomic.Int32 // offers since somebody was alone, or took a nap

	mu   sync.Mutex
	last time.Time // nap
	gap  time.Duration
}

// poll is called after look number idle in a row that found nothing; it reports whether
// the processor was offered.
func (c *crowd) poll(idle uint32) bool {
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

// offered notes how long an offer took. Threads that poll at the same time may count
// less than there was.
func (c *crowd) offered(took time.Duration) {
	switch n := c.offers.Load(); {
	case took >= takenTime:
		if n != crowdOffers {
			c.offers.Store(crowdOffers)
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

// nap sleeps for a moment, unless it is too soon after the last time.
func (c *crowd) nap(now time.Time) bool {
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

// urgent reports whether this thread has real-time priority, as chrt -f gives it.
func urgent() bool {
	const fifo, roundRobin, resetOnFork = 1, 2, 1 << 30 // sched.h
	policy, _, err := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	policy &^= resetOnFork
	return err == 0 && (policy == fifo || policy == roundRobin)
}
