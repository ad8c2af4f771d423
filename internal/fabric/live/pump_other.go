//go:build !linux

package live

import "time"

// waiter is where a pump sleeps until it is woken: there are no bells.
type waiter struct{ roused chan struct{} }

func (w *waiter) open() error {
	w.roused = make(chan struct{}, 1)
	return nil
}

func (*waiter) add(int, int32) {}
func (*waiter) remove(int)     {}
func (*waiter) close()         {}

// wake ends wait, even one that has not begun.
func (w *waiter) wake() {
	select {
	case w.roused <- struct{}{}:
	default:
	}
}

// wait sleeps for d, negative: forever.
func (w *waiter) wait(d time.Duration, _ func(key int32)) {
	if d < 0 {
		d = time.Hour
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.roused:
	case <-t.C:
	}
}
