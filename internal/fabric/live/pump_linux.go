package live

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/link/cable"
	"golang.org/x/sys/unix"
)

// waiter is where a pump sleeps until a bell rings.
type waiter struct {
	epoll, roused int
	events        [64]unix.EpollEvent
}

func (w *waiter) open() (err error) {
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("cables: %w", err)
	}
	if w.roused, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(w.epoll)
		return fmt.Errorf("cables: %w", err)
	}
	w.add(w.roused, -1)
	return nil
}

func (w *waiter) add(bell int, key int32) {
	_ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: key, Pad: int32(bell)})
}

func (w *waiter) remove(bell int) { _ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, bell, nil) }

// wake ends wait, even one that has not begun.
func (w *waiter) wake() { _, _ = unix.Write(w.roused, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// wait sleeps for d, negative: forever, and reports what has rung.
func (w *waiter) wait(d time.Duration, rang func(key int32)) {
	ms := -1
	if d >= 0 {
		ms = int((min(d, time.Hour) + time.Millisecond - 1) / time.Millisecond)
	}
	n, _ := unix.EpollWait(w.epoll, w.events[:], ms)
	for _, e := range w.events[:max(n, 0)] {
		if e.Fd < 0 {
			var b [8]byte
			_, _ = unix.Read(w.roused, b[:])
			continue
		}
		if e.Fd != socketKey {
			cable.Quiet(int(e.Pad))
		}
		rang(e.Fd)
	}
}

func (w *waiter) close() {
	unix.Close(w.epoll)
	unix.Close(w.roused)
}
