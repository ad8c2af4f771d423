package stream

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// heard limits how long the runtime is not told of system calls. The runtime has a thread that watches for
// goroutines that block or do not yield. While all is idle it sleeps until a timer or a system call that
// the runtime is told of; then it checks every 20 us, which costs more than the calls of a program that is
// asked something now and again. So the runtime is told of one call per heardTime, and there is a timer
// until the next: goroutines that occupy all processors in between are noticed then, at the latest.
var heard atomic.Bool

const heardTime = 50 * time.Millisecond

// hear tells the runtime of a system call if it is time.
func hear() {
	if heard.Load() || heard.Swap(true) {
		return
	}
	time.AfterFunc(heardTime, func() { heard.Store(false) })
	_, _, _ = syscall.Syscall(unix.SYS_GETPID, 0, 0, 0)
}

// Receiver receives from a stream, with system calls that do not block and of which the runtime is not told,
// see heard.
type Receiver struct {
	conn *net.UnixConn
	raw  syscall.RawConn       // set at the first read
	run  func(fd uintptr) bool // try

	msg unix.Msghdr
	iov unix.Iovec
	n   int
	err syscall.Errno
}

// NewReceiver returns a receiver of conn.
func NewReceiver(conn *net.UnixConn) Receiver { return Receiver{conn: conn} }

// Receive waits until there is something, and reads what fits into b and oob. The lengths are 0 at the end of
// the stream.
func (t *Receiver) Receive(b, oob []byte) (n, oobn, flags int, err error) {
	if t.raw == nil {
		if t.raw, err = t.conn.SyscallConn(); err != nil {
			return 0, 0, 0, err
		}
		t.run = t.try
	}
	t.iov.Base = unsafe.SliceData(b)
	t.iov.SetLen(len(b))
	t.msg = unix.Msghdr{Iov: &t.iov, Control: unsafe.SliceData(oob)}
	t.msg.SetIovlen(1)
	t.msg.SetControllen(len(oob))
	hear()
	if err := t.raw.Read(t.run); err != nil {
		return 0, 0, 0, err
	}
	if t.err != 0 {
		return 0, 0, 0, t.err
	}
	return t.n, int(t.msg.Controllen), int(t.msg.Flags), nil
}

func (t *Receiver) try(fd uintptr) bool {
	for {
		n, _, err := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&t.msg)), unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		t.n, t.err = int(n), err
		return err != unix.EAGAIN
	}
}

// putter sends to a stream in the same way.
type putter struct {
	conn *net.UnixConn
	raw  syscall.RawConn       // set at the first write
	run  func(fd uintptr) bool // send
	left []byte
	err  syscall.Errno
}

// write waits until everything is sent.
func (p *putter) write(b []byte) (err error) {
	if p.raw == nil {
		if p.raw, err = p.conn.SyscallConn(); err != nil {
			return err
		}
		p.run = p.send
	}
	hear()
	p.left = b
	defer func() { p.left = nil }()
	if err := p.raw.Write(p.run); err != nil && !p.late(err) {
		return err
	}
	if p.err != 0 {
		return p.err
	}
	return nil
}

// late reports whether all could be sent although the deadline has passed: it may have while this process stood still, before anything
// was tried, and then the reader is not at fault.
func (p *putter) late(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	err = p.raw.Control(func(fd uintptr) { p.send(fd) })
	return err == nil && p.err != unix.EAGAIN
}

// passLate is late for a message with descriptors.
func (p *putter) passLate(b, rights []byte, cause error) (n int, err error) {
	raw, err := p.conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		n, sent = unix.SendmsgN(int(fd), b, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	if err != nil || sent == unix.EAGAIN || sent == unix.EINTR {
		return 0, cause
	}
	return n, sent
}

// try sends what can be sent without waiting, and removes it from b; it reports whether that was all. The
// next write reports an error.
func (p *putter) try(b *[]byte) bool {
	if p.raw == nil {
		return false
	}
	p.left = *b
	err := p.raw.Control(func(fd uintptr) { p.send(fd) })
	*b = append((*b)[:0], p.left...)
	p.left = nil
	return err == nil && len(*b) == 0
}

func (p *putter) send(fd uintptr) bool {
	for len(p.left) > 0 {
		n, _, err := syscall.RawSyscall6(
			unix.SYS_SENDTO,
			fd,
			uintptr(unsafe.Pointer(&p.left[0])),
			uintptr(len(p.left)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL,
			0,
			0,
		)
		switch err {
		case 0:
			p.left = p.left[n:]
		case unix.EINTR:
		default:
			p.err = err
			return err != unix.EAGAIN
		}
	}
	p.err = 0
	return true
}

// WriteWake wakes the loop through a descriptor.
func WriteWake(fd int) {
	b := [1]byte{1}
	_, _, _ = syscall.RawSyscall(
		unix.SYS_WRITE,
		uintptr(fd),
		uintptr(unsafe.Pointer(&b[0])),
		1,
	) // if the pipe is full the loop is already awake
}
