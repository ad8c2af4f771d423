package wait

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
)

// Poller is where a thread sleeps until a descriptor becomes readable, somebody wakes it, or its time is up.
// Only one thread at a time may sleep in a poller. A wake that comes before the sleep is remembered.
type Poller struct {
	event int   // eventfd
	bells int   // epoll set of the bells: there may be thousands, most of them silent
	rings []int // the bells, sorted
	polls []unix.PollFd

	ready [64]unix.EpollEvent
	sink  [4096]byte
}

// New creates a poller. The error is a *command.Error, Exhausted.
func New() (*Poller, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, command.Errorf(command.Exhausted, "eventfd: %v", err)
	}
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		unix.Close(fd)
		return nil, command.Errorf(command.Exhausted, "epoll: %v", err)
	}
	b := &Poller{event: fd, bells: set}
	b.Watch(nil, nil)
	return b, nil
}

// Watch sets the descriptors that end a sleep. Bells are pipes or eventfds, each of a program that wakes the
// loop by it; they are also read empty. Only the sleeper may call it.
func (b *Poller) Watch(fds, bells []int) {
	b.polls = append(b.polls[:0], unix.PollFd{Fd: int32(b.event), Events: unix.POLLIN}, unix.PollFd{Fd: int32(b.bells),
		Events: unix.POLLIN})
	for _, fd := range fds {
		b.polls = append(b.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | unix.POLLERR})
	}
	now := slices.Sorted(slices.Values(bells))
	for _, fd := range b.rings {
		if _, still := slices.BinarySearch(now, fd); !still {
			_ = unix.EpollCtl(b.bells, unix.EPOLL_CTL_DEL, fd, nil) // in vain if it was closed
		}
	}
	for _, fd := range bells { // in vain for those that are already there; a number may belong to another file by now
		_ = unix.EpollCtl(b.bells, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	}
	b.rings = now
}

// Sleep returns after d at the latest; a negative d means no limit.
func (b *Poller) Sleep(d time.Duration) {
	var ts *unix.Timespec
	if d >= 0 {
		t := unix.NsecToTimespec(int64(d))
		ts = &t
	}
	n, err := unix.Ppoll(b.polls, ts, nil)
	for err == unix.EINTR { // the runtime stops threads by signals; the system has left the rest of the time in ts
		n, err = unix.Ppoll(b.polls, ts, nil)
	}
	if err != nil || n == 0 {
		return
	}
	if b.polls[0].Revents&unix.POLLIN != 0 {
		_, _ = unix.Read(b.event, b.sink[:])
	}
	if b.polls[1].Revents&unix.POLLIN != 0 {
		b.rung()
	}
}

// rung reads bells empty. One that cannot be read, because its program has broken it, is no longer looked
// at, since it would end every sleep.
func (b *Poller) rung() {
	n, _ := unix.EpollWait(b.bells, b.ready[:], 0)
	for _, e := range b.ready[:max(n, 0)] {
		n, err := unix.Read(int(e.Fd), b.sink[:])
		if n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
			_ = unix.EpollCtl(b.bells, unix.EPOLL_CTL_DEL, int(e.Fd), nil)
		}
	}
}

// Wake ends the current sleep, or the next one.
func (b *Poller) Wake() {
	one := uint64(1)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(b.event), uintptr(unsafe.Pointer(&one)), 8)
	runtime.KeepAlive(&one)
}

// Close closes its own descriptors.
func (b *Poller) Close() error {
	if err := errors.Join(unix.Close(b.event), unix.Close(b.bells)); err != nil {
		return fmt.Errorf("close poller: %w", err)
	}
	return nil
}
