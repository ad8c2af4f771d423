//go:build !linux

package wait

import "time"

// Poller is where a goroutine sleeps until somebody wakes it or its time is up. A wake that comes before the
// sleep is remembered. Descriptors do not end it on this platform: links without them wake it.
type Poller struct{ ch chan struct{} }

// New creates a poller; the error is always nil.
func New() (*Poller, error) { return &Poller{ch: make(chan struct{}, 1)}, nil }

// Watch does nothing.
func (b *Poller) Watch(fds, bells []int) {}

// Sleep returns after d at the latest; a negative d means no limit.
func (b *Poller) Sleep(d time.Duration) {
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
func (b *Poller) Wake() {
	select {
	case b.ch <- struct{}{}:
	default:
	}
}

// Close does nothing.
func (b *Poller) Close() error { return nil }
