//go:build !linux

package device

import (
	"runtime"
	"time"
)

// bed is where a goroutine sleeps until somebody wakes it or its time is up. A
// wake that comes before the sleep is kept. Links without descriptors wake it
// through Host.Wake.
type bed struct{ ch chan struct{} }

func newBed() (*bed, error) { return &bed{ch: make(chan struct{}, 1)}, nil }

func (b *bed) watch(fds, drain []int) {}

// sleep returns after d at the latest; negative d: without end.
func (b *bed) sleep(d time.Duration, drains int) {
	if d < 0 {
		<-b.ch
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-b.ch:
	case <-t.C:
	}
}

// wake ends the sleep, or the next one.
func (b *bed) wake() {
	select {
	case b.ch <- struct{}{}:
	default:
	}
}

func (b *bed) close() error { return nil }

// yield gives the processor to another goroutine.
func yield() { runtime.Gosched() }
