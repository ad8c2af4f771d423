package device

import "time"

// cot is where the background goroutine stands by: off its thread, so that its
// short sleeps take no processor from goroutines that poll. A wake that comes
// before the sleep is kept.
type cot struct {
	ch    chan struct{}
	timer *time.Timer
}

func newCot() *cot {
	c := &cot{ch: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	return c
}

// sleep returns after d at the latest; negative d: without end. It reports whether it
// was woken.
func (c *cot) sleep(d time.Duration) bool {
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

// wake ends the sleep, or the next one.
func (c *cot) wake() {
	select {
	case c.ch <- struct{}{}:
	default:
	}
}
