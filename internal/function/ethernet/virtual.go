package ethernet

import (
	"slices"

	"github.com/softvpi/softvpi/internal/function/ethernet/queue"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
)

// VirtualQueue is the receive queue of the physical function by which a virtual port gets its frames (VMQ; WinOF 5.50, 4.5.1).
type VirtualQueue struct {
	// Number is 0 for the default queue, which ports without one of their own share: each has one ring there, on one processor for all.
	// The rings of other queues begin at a processor of their own: "Scaling to multiple processors, by processing packets for different
	// virtual machines on different processors" (WinOF 5.50, 4.5.1.2).
	Number int
	// Pool counts, and has the buffers of the default queue.
	Pool *queue.Pool
	// Lookahead puts the headers of frames, at which the virtual switch looks, into buffers of their own (*VMQLookaheadSplit).
	Lookahead bool
}

// pool returns the pool of the rings; nil: they have none.
func (v *VirtualQueue) pool() *queue.Pool {
	if v == nil {
		return nil
	}
	return v.Pool
}

// choose returns the processors of the rings, of those that RSS may use.
func (v *VirtualQueue) choose(at rss.Placement, machine []rss.Processor, standard int) []rss.Processor {
	if v == nil {
		return at.Choose(machine)
	}
	rings := at.Queues
	at.Queues = at.MaxProcessors
	all := at.Choose(machine)
	first := 0
	if v.Number == 0 {
		rings, first = 1, max(0, slices.IndexFunc(all, func(p rss.Processor) bool { return p.Number == standard }))
	} else {
		first = (v.Number - 1) % len(all)
	}
	all = append(slices.Clone(all[first:]), all[:first]...)
	return all[:min(len(all), max(1, rings))]
}

// splits reports whether the headers of received frames are in buffers of their own.
func (c *Config) splits() bool {
	return c.HeaderDataSplit != 0 || c.Virtual != nil && c.Virtual.Lookahead
}

// End gives back what the function has of a pool; it is not used any more.
func (f *Function) End() {
	for i := range f.receive {
		f.receive[i].ring.Release()
	}
}
