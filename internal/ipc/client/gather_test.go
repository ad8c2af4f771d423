package client

import (
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// pages stands for memory that becomes large pages step by step; it counts the steps for each page.
type pages struct {
	mu    sync.Mutex
	made  map[uint64]int
	begin chan struct{} // closed when steps that nobody waits for may begin
}

func (p *pages) gather(base, length uint64, patience time.Duration) (done uint64) {
	if patience == 0 {
		<-p.begin
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[base]++
	return 1
}

func (p *pages) count(from, to uint64) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := from; at < to; at++ {
		n += p.made[at]
	}
	return n
}

// TestGatherGoesOnByItself: a registration waits for the first step only. The remaining pages are made once each in
// the background, except those of regions that were forgotten.
func TestGatherGoesOnByItself(t *testing.T) {
	p := &pages{made: map[uint64]int{}, begin: make(chan struct{})}
	g := gatherer{gather: p.gather}
	for r := range uint64(3) {
		g.add(command.Handle(r+1), 1000*r, 50)
		if n := p.count(1000*r, 1000*r+50); n != 1 {
			t.Fatalf("region %d: %d steps while its program waits, want 1", r+1, n)
		}
	}
	g.add(4, 5000, 1)
	close(p.begin)
	g.forget(2)
	after := p.count(1000, 1050)
	g.worker.Wait() // it ends when no page is left
	for _, from := range []uint64{0, 2000} {
		for at := from; at < from+50; at++ {
			if p.made[at] != 1 {
				t.Errorf("page %d was made %d times", at, p.made[at])
			}
		}
	}
	if n := p.count(1000, 1050); n != after {
		t.Errorf("%d steps in a region after it was forgotten", n-after)
	}
	if p.made[5000] != 1 || len(p.made) != 101+after {
		t.Errorf("%d pages were made, that of the last region %d times", len(p.made), p.made[5000])
	}
	g.add(5, 6000, 3) // and begins again
	g.worker.Wait()
	if n := p.count(6000, 6003); n != 3 {
		t.Errorf("%d steps of three after a pause", n)
	}
}

// TestGatherStops: after stop no page is made and no worker is left.
func TestGatherStops(t *testing.T) {
	p := &pages{made: map[uint64]int{}, begin: make(chan struct{})}
	close(p.begin)
	g := gatherer{gather: p.gather}
	g.add(1, 0, 1<<40)
	g.stop()
	n := p.count(0, 1<<16)
	g.add(2, 1<<41, 100)
	g.worker.Wait()
	if p.count(0, 1<<16) != n || p.count(1<<41, 1<<41+100) != 1 {
		t.Errorf("%d steps after the end", p.count(0, 1<<16)-n)
	}
}
