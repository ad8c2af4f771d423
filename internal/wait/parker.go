package wait

import "time"

// Parker is where the background goroutine stands by: off its thread, so that its short sleeps take no
// processor from goroutines that poll. A wake that comes before the sleep is remembered.
type Parker struct {
	ch    chan struct{}
	timer *time.Timer
}

// NewParker creates a parker.
func NewParker() *Parker {
	c := &Parker{ch: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	return c
}

// Sleep returns after d at the latest; a negative d means no limit. It reports whether it was woken.
func (c *Parker) Sleep(d time.Duration) bool {
	if d < 0 {
		<-c.ch
		return true
	}
	c.timer.Reset(d)
	select {
	case <-c.ch:
		c.timer.Stop()
		return true
	case <-c.timer.C:
		return false
	}
}

// Wake ends the current sleep, or the next one.
func (c *Parker) Wake() {
	select {
	case c.ch <- struct{}{}:
	default:
	}
}
