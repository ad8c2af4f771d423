package bed

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
)

// Bed is where a thread sleeps until a descriptor becomes readable, somebody wakes it, or its time is up.
// Only one thread at a time may sleep in a bed. A wake that comes before the sleep is remembered.
type Bed struct {
	event int // eventfd
	drain int // number of eventfds among polls, including its own
	polls []unix.PollFd
}

// New creates a bed. The error is a *command.Error, Exhausted.
func New() (*Bed, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, command.Errorf(command.Exhausted, "eventfd: %v", err)
	}
	b := &Bed{event: fd}
	b.Watch(nil, nil)
	return b, nil
}

// Watch sets the descriptors that end a sleep; drain are eventfds that are also drained. Only the sleeper
// may call it.
func (b *Bed) Watch(fds, drain []int) {
	b.drain = 1 + len(drain)
	b.polls = append(b.polls[:0], unix.PollFd{Fd: int32(b.event), Events: unix.POLLIN})
	for _, fd := range drain {
		b.polls = append(b.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	for _, fd := range fds {
		b.polls = append(b.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN | unix.POLLERR})
	}
}

// Sleep returns after d at the latest; a negative d means no limit.
func (b *Bed) Sleep(d time.Duration) {
	var ts *unix.Timespec
	if d >= 0 {
		t := unix.NsecToTimespec(int64(d))
		ts = &t
	}
	n, err := unix.Ppoll(b.polls, ts, nil)
	if err != nil || n == 0 {
		return
	}
	for i := range b.drain {
		if b.polls[i].Revents&unix.POLLIN != 0 {
			drainEvent(int(b.polls[i].Fd))
		}
	}
}

// Wake ends the current sleep, or the next one.
func (b *Bed) Wake() {
	one := uint64(1)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(b.event), uintptr(unsafe.Pointer(&one)), 8)
	runtime.KeepAlive(&one)
}

// Close closes the descriptor.
func (b *Bed) Close() error {
	if err := unix.Close(b.event); err != nil {
		return fmt.Errorf("close eventfd: %w", err)
	}
	return nil
}

// drainEvent reads an eventfd that is known to be readable.
func drainEvent(fd int) {
	var v [8]byte
	_, _ = unix.Read(fd, v[:])
}

// Yield gives the processor to another thread that wants it. It is not inlined, so that a loop around it
// has a point at which the runtime can preempt the goroutine: a raw system call has none.
//
//go:noinline
func Yield() {
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
