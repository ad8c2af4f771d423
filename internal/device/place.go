package device

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/os/processors"
)

// placement is on which processors the loop's own thread runs. It serves all queues of all adapters, so that it runs on those that
// RSS has chosen for any of their receive queues; what it sends and completes are its work too, so that adapters which name a
// processor for these (TxForwardingProcessor, TxInterruptProcessor) have it run there instead.
type placement struct {
	want    atomic.Pointer[[]int] // nil, or none: anywhere
	refused atomic.Pointer[error] // why the system does not let it
}

// place decides anew where the loop's own thread runs. The caller holds the loop lock.
func (h *Host) place() {
	var queues, named []int
	for _, p := range h.ports {
		for _, n := range p.nics {
			if !n.on() {
				continue
			}
			c := n.f.Config()
			for _, q := range n.f.Processors() {
				queues = append(queues, q.Of())
			}
			for _, k := range []int{c.TxForwardingProcessor, c.TxInterruptProcessor} {
				if k != ethernet.Automatic {
					named = append(named, k)
				}
			}
		}
	}
	if len(named) > 0 {
		queues = named
	}
	slices.Sort(queues)
	queues = slices.Compact(queues)
	if len(queues) == len(processors.List()) { // all: there is nothing to choose
		queues = nil
	}
	h.placement.want.Store(&queues)
	h.sleep.rouse()
}

// binding is the processors to which the loop's own thread is bound.
type binding struct {
	to     *[]int
	locked bool
}

// follow binds the calling goroutine's thread to where the loop is to run. Until somebody chooses, the goroutine stays free to
// change its thread.
func (b *binding) follow(h *Host) {
	want := h.placement.want.Load()
	if want == b.to {
		return
	}
	b.to = want
	if len(*want) == 0 && !b.locked {
		return
	}
	if !b.locked {
		runtime.LockOSThread()
		b.locked = true
	}
	err := processors.Bind(*want)
	h.placement.refused.Store(&err)
	if len(*want) == 0 && err == nil {
		runtime.UnlockOSThread()
		b.locked = false
	}
	if err != nil {
		h.log.Warn("the loop's thread is not bound to its processors", "processors", *want, "cause", err)
	}
}

// LoopProcessors returns the processors to which the loop's own thread is bound, none if it may run on all, and why the system
// does not let it.
func (h *Host) LoopProcessors() (list []int, refused error) {
	if want := h.placement.want.Load(); want != nil {
		list = slices.Clone(*want)
	}
	if err := h.placement.refused.Load(); err != nil {
		refused = *err
	}
	return list, refused
}
