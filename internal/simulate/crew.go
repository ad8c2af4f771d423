package simulate

import (
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/wait"
)

// worth is how many turns a window must have had for the next to be shared.
const worth = 128

// crew is goroutines that take part in the windows of a run. Nobody waits for one that does not come: who runs the windows takes all
// shards that nobody else takes, and waits only for those that are under way.
type crew struct {
	shards []*shard
	until  clock.Time
	// open is which shards nobody has taken: from its upper half on, up to its lower half. Members take them from both ends, so that most
	// shards stay in the caches of one processor. Whoever has taken one may look at shards and until: they stay until it is done.
	open atomic.Uint64
	done atomic.Int64 // shards of the window

	window atomic.Uint32 // changes when one begins
	over   atomic.Bool
	mu     sync.Mutex
	wake   sync.Cond
	asleep atomic.Int32
}

// newCrew starts a crew for so many processors, of which there are two or more.
func newCrew(processors int) *crew {
	c := &crew{}
	c.wake.L = &c.mu
	for i := 1; i < processors; i++ {
		go c.work(i%2 == 1)
	}
	return c
}

// dismiss ends the crew.
func (c *crew) dismiss() {
	c.over.Store(true)
	c.begin()
}

func (c *crew) begin() {
	c.window.Add(1)
	if c.asleep.Load() > 0 {
		c.mu.Lock()
		c.wake.Broadcast()
		c.mu.Unlock()
	}
}

// run lets shards pass a window.
func (c *crew) run(shards []*shard, until clock.Time) {
	c.shards, c.until = shards, until
	c.done.Store(0)
	c.open.Store(uint64(len(shards)))
	c.begin()
	for c.take(false) {
	}
	spin := wait.Spinner{Policy: wait.Of(wait.Window)}
	for spin.Begin(wait.Now()); c.done.Load() < int64(len(shards)); {
		spin.Again(wait.Now, true)
	}
}

// take lets a shard pass that nobody has taken, the last or the first; false: there is none.
func (c *crew) take(last bool) bool {
	for {
		open := c.open.Load()
		from, to := int(open>>32), int(uint32(open))
		if from >= to {
			return false
		}
		i, left := from, open+1<<32
		if last {
			i, left = to-1, open-1
		}
		if c.open.CompareAndSwap(open, left) {
			c.shards[i].pass(c.until)
			c.done.Add(1)
			return true
		}
	}
}

// work is what a member does.
func (c *crew) work(last bool) {
	for !c.over.Load() {
		window := c.window.Load()
		if !c.take(last) {
			c.await(window)
		}
	}
}

// await waits until a window is over, or the crew.
func (c *crew) await(window uint32) {
	spin := wait.Spinner{Policy: wait.Of(wait.Window)}
	for spin.Begin(wait.Now()); c.window.Load() == window; {
		if !spin.Again(wait.Now, false) {
			break
		}
	}
	c.mu.Lock()
	c.asleep.Add(1)
	for c.window.Load() == window {
		c.wake.Wait()
	}
	c.asleep.Add(-1)
	c.mu.Unlock()
}
