package client

import (
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/cpu/hugepages"
)

const (
	// gatherPatience limits how long a registration waits for large pages; a goroutine makes the rest.
	gatherPatience = 10 * time.Millisecond
	// gatherRest limits the pause of that goroutine after each large page. It pauses for as long as the page took,
	// because the program may need the processor, and its address space is locked during the collapse.
	gatherRest = 20 * time.Millisecond
)

// gatherer moves regions into large pages, in programs whose memory the driver has the kernel copy (process_vm_readv),
// which is several times as fast with them. The zero value is ready for use.
type gatherer struct {
	mu      sync.Mutex // held during a step
	spans   []span     // still to be gathered
	running bool
	over    bool
	worker  sync.WaitGroup
	gather  func(base, length uint64, patience time.Duration) (done uint64) // nil: hugepages.Gather
}

// span is the part of a region that is not gathered yet; base is an address, length in bytes.
type span struct {
	region       command.Handle
	base, length uint64
}

// step gathers for as long as patience lasts, and takes what is done off s.
func (g *gatherer) step(s *span, patience time.Duration) {
	gather := g.gather
	if gather == nil {
		gather = hugepages.Gather
	}
	done := gather(s.base, s.length, patience)
	s.base, s.length = s.base+done, s.length-done
}

// add gathers a new region for up to gatherPatience, and leaves the rest to a goroutine.
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

// once makes one large page and returns how long that took; more is false if nothing was left.
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

// forget gives a region up: once it returns, its memory may be unmapped.
func (g *gatherer) forget(region command.Handle) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spans = slices.DeleteFunc(g.spans, func(s span) bool { return s.region == region })
}

// stop ends the work for good and waits for the goroutine.
func (g *gatherer) stop() {
	g.mu.Lock()
	g.over, g.spans = true, nil
	g.mu.Unlock()
	g.worker.Wait()
}
