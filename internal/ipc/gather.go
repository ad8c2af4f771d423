package ipc

import (
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/hugepages"
)

const (
	// gatherPatience limits how long a registration waits for large pages; a goroutine makes the rest.
	gatherPatience = 10 * time.Millisecond
	// gatherRest limits the pause of that goroutine after each large page. It pauses for as long as the page took:
	// the program may need the processor, and its address space, which is locked meanwhile.
	gatherRest = 20 * time.Millisecond
)

// gatherer moves what a program registers into large pages, where the driver has the kernel copy it.
type gatherer struct {
	mu      sync.Mutex // held during a step
	spans   []span     // to be gone through
	running bool
	over    bool
	worker  sync.WaitGroup
	gather  func(base, length uint64, patience time.Duration) (done uint64) // nil: hugepages.Gather
}

// span is a part of a region.
type span struct {
	region       command.Handle
	base, length uint64
}

func (g *gatherer) step(s *span, patience time.Duration) {
	gather := g.gather
	if gather == nil {
		gather = hugepages.Gather
	}
	done := gather(s.base, s.length, patience)
	s.base, s.length = s.base+done, s.length-done
}

// add begins with a region and leaves what takes long to a goroutine.
func (g *gatherer) add(region command.Handle, base, length uint64) {
	s := span{region, base, length}
	if g.step(&s, gatherPatience); s.length == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	if g.spans = append(g.spans, s); !g.running {
		g.running = true
		g.worker.Add(1)
		go g.run()
	}
}

func (g *gatherer) run() {
	defer g.worker.Done()
	for {
		took, more := g.once()
		if !more {
			return
		}
		time.Sleep(min(took, gatherRest))
	}
}

// once makes a large page and returns how long that took; more is false if nothing is left.
func (g *gatherer) once() (took time.Duration, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.spans) == 0 {
		g.running, g.spans = false, nil
		return 0, false
	}
	begin := time.Now()
	if g.step(&g.spans[0], 0); g.spans[0].length == 0 {
		g.spans = g.spans[1:]
	}
	return time.Since(begin), true
}

// forget leaves a region alone: once it returns, its memory may be unmapped.
func (g *gatherer) forget(region command.Handle) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spans = slices.DeleteFunc(g.spans, func(s span) bool { return s.region == region })
}

// stop ends the work for good.
func (g *gatherer) stop() {
	g.mu.Lock()
	g.over, g.spans = true, nil
	g.mu.Unlock()
	g.worker.Wait()
}
