package simulate

import (
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/wait"
)

// worth is how many turns a window must have had for the next to be shared.
const worth = 64

// crew is goroutines that take part in the windows of a run.
type crew struct {
	blocks []block // of the shards, one for each member; the first is who runs the windows
	until  clock.Time
	window atomic.Uint32
	busy   atomic.Int32 // members that are not done with the window
	done   atomic.Bool

	mu     sync.Mutex
	wake   sync.Cond
	asleep atomic.Int32
}

// block is shards that a member begins with, so that they stay in its caches. Whoever is done with his takes from others.
type block struct {
	shards []*shard
	next   atomic.Int32
	_      [96]byte // each has cache lines of its own
}

// newCrew starts a crew for so many processors, of which there are two or more.
func newCrew(processors int) *crew {
	c := &crew{blocks: make([]block, processors)}
	c.wake.L = &c.mu
	for i := 1; i < processors; i++ {
		go c.work(i)
	}
	return c
}

// dismiss ends the crew.
func (c *crew) dismiss() {
	c.done.Store(true)
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
	c.until = until
	for i := range c.blocks {
		b := &c.blocks[i]
		b.shards = shards[i*len(shards)/len(c.blocks) : (i+1)*len(shards)/len(c.blocks)]
		b.next.Store(0)
	}
	c.busy.Store(int32(len(c.blocks) - 1))
	c.begin()
	c.take(0)
	spin := wait.Spinner{Policy: wait.Of(wait.Window)}
	for spin.Begin(wait.Now()); c.busy.Load() > 0; {
		spin.Again(wait.Now, true)
	}
}

// take lets shards pass, those of a member first.
func (c *crew) take(member int) {
	for i := range c.blocks {
		b := &c.blocks[(member+i)%len(c.blocks)]
		for k := int(b.next.Add(1)) - 1; k < len(b.shards); k = int(b.next.Add(1)) - 1 {
			b.shards[k].pass(c.until)
		}
	}
}

// work is what a member does.
func (c *crew) work(member int) {
	for window := uint32(1); ; window++ {
		c.await(window)
		if c.done.Load() {
			return
		}
		c.take(member)
		c.busy.Add(-1)
	}
}

// await waits until a window begins.
func (c *crew) await(window uint32) {
	spin := wait.Spinner{Policy: wait.Of(wait.Window)}
	for spin.Begin(wait.Now()); ; {
		if c.window.Load() == window {
			return
		}
		if !spin.Again(wait.Now, false) {
			break
		}
	}
	c.mu.Lock()
	c.asleep.Add(1)
	for c.window.Load() != window {
		c.wake.Wait()
	}
	c.asleep.Add(-1)
	c.mu.Unlock()
}
