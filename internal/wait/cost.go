package wait

import (
	"sync/atomic"
	"time"
)

// cost learns what a yield to threads takes on this machine that nobody uses, and tells by that which are used: an unused one
// of a virtual machine whose host keeps its page tables takes nearly as long as a used one elsewhere. The zero value knows
// nothing yet, and takes the machine for a fast one. Any number of goroutines share one.
type cost struct {
	samples atomic.Int32
	least   atomic.Int64 // ns, of the samples; 0: none yet
}

// yields is what yields take on this machine.
var yields cost

// costSamples is how many yields that nobody used cost wants to see.
const costSamples = 16

// wanted reports whether another sample is.
func (c *cost) wanted() bool { return c.samples.Load() < costSamples }

// sample yields, and adds what it took if nobody used it: then this thread's processor has run no other.
func (c *cost) sample() {
	before, known := switches()
	if !known {
		c.samples.Store(costSamples)
		return
	}
	began := Now()
	Yield()
	took := Now().Sub(began)
	if after, _ := switches(); after == before {
		c.add(took)
	}
}

// add records how long a yield took that nobody used. Samples at the same time may lose each other.
func (c *cost) add(took time.Duration) {
	if least := c.least.Load(); least == 0 || int64(took) < least {
		c.least.Store(int64(took))
	}
	c.samples.Add(1)
}

// used reports whether somebody used a yield that took so long.
func (c *cost) used(step Step, took time.Duration) bool {
	limit := max(usedTime, usedCost*time.Duration(c.least.Load()))
	if step == YieldAll {
		limit += goroutineUsed
	}
	return took >= limit
}
