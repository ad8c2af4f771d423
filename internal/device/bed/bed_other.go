//go:build !linux

// Package bed is where the loop of the adapters sleeps: a thread on descriptors, or a goroutine off its thread.
package bed

import (
	"runtime"
	"time"
)

// Bed is where a goroutine sleeps until somebody wakes it or its time is up. A
// wake that comes before the sleep is kept. Descriptors do not end it here: links
// without them wake it.
type Bed struct{ ch chan struct{} }

// New makes a bed; there is no error.
func New() (*Bed, error) { return &Bed{ch: make(chan struct{}, 1)}, nil }

// Watch does nothing.
func (b *Bed) Watch(fds, drain []int) {}

// Sleep returns after d at the latest; negative d: without end.
func (b *Bed) Sleep(d time.Duration) {
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

// Wake ends the sleep, or the next one.
func (b *Bed) Wake() {
	select {
	case b.ch <- struct{}{}:
	default:
	}
}

// Close does nothing.
func (b *Bed) Close() error { return nil }

// Yield gives the processor to another goroutine.
func Yield() { runtime.Gosched() }
