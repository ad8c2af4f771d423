//go:build !linux

package wait

import (
	"runtime"
	"time"
)

// Bed is where a goroutine sleeps until somebody wakes it or its time is up. A wake that comes before the
// sleep is remembered. Descriptors do not end it on this platform: links without them wake it.
type Bed struct{ ch chan struct{} }

// New creates a bed; the error is always nil.
func New() (*Bed, error) { return &Bed{ch: make(chan struct{}, 1)}, nil }

// Watch does nothing.
func (b *Bed) Watch(fds, bells []int) {}

// Sleep returns after d at the latest; a negative d means no limit.
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

// Wake ends the current sleep, or the next one.
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
