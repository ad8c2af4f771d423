package hostside

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	lengthLen = 4 // of the length before a frame, in network byte order
	inputSize = 256 << 10
)

// streamEnd is the host's end at a unix stream socket, of which one virtual machine at a time has the other side.
type streamEnd struct {
	guest
	path     string
	listener int
	fd       int // of the connection, -1: nobody is connected
	ep       int
	down     bool
	made     fs.FileInfo // the socket at its path
	there    atomic.Bool // somebody is connected
	in       []byte      // what was read and is no whole frame yet
	from, to int         // in use of it
	out      []byte      // the rest of a frame of which a part was written
	length   [lengthLen]byte
	joined   []byte
}

func listen(path string) (_ End, err error) {
	if err := vacate(path, "unix"); err != nil {
		return nil, err
	}
	e := &streamEnd{path: path, listener: -1, fd: -1, ep: -1, in: make([]byte, inputSize)}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	if e.listener, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(e.listener, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, fmt.Errorf("host: socket %q: %w", path, err)
	}
	e.made, _ = os.Lstat(path)
	if err = unix.Listen(e.listener, 1); err != nil {
		return nil, fmt.Errorf("host: socket %q: %w", path, err)
	}
	if e.ep, err = watched(e.listener); err != nil {
		return nil, err
	}
	return e, nil
}

// Kind implements End.
func (e *streamEnd) Kind() string { return "stream socket " + e.path }

// accept takes a connection, if there is none yet and one waits.
func (e *streamEnd) accept() bool {
	if e.fd >= 0 || e.listener < 0 {
		return e.fd >= 0
	}
	fd, _, err := unix.Accept4(e.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return false
	}
	e.fd, e.from, e.to, e.out = fd, 0, 0, e.out[:0]
	e.there.Store(true)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer)
	_ = unix.EpollCtl(e.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	pause(e.ep, e.listener, true) // who comes next waits
	return true
}

// hangUp ends the connection.
func (e *streamEnd) hangUp() {
	unix.Close(e.fd)
	e.fd = -1
	e.there.Store(false)
	pause(e.ep, e.listener, false)
}

// Attended implements Attended.
func (e *streamEnd) Attended() bool { return e.there.Load() }

// Ready implements End. It also writes the rest of a frame.
func (e *streamEnd) Ready() uint64 {
	if e.accept() && len(e.out) > 0 {
		e.flush()
	}
	return 1
}

// Read implements End.
func (e *streamEnd) Read(_ int, b []byte) int {
	for e.fd >= 0 {
		if n := e.next(b); n > 0 {
			if !e.down {
				return n
			}
			continue
		}
		if e.fd < 0 || !e.fill() {
			return 0
		}
	}
	return 0
}

// next takes the next frame of what was read; 0: there is no whole one.
func (e *streamEnd) next(b []byte) int {
	have := e.in[e.from:e.to]
	if len(have) < lengthLen {
		return 0
	}
	n := binary.BigEndian.Uint32(have)
	if n == 0 || n >= uint32(len(b)) { // where the next one begins is not known
		e.hangUp()
		return 0
	}
	if len(have) < lengthLen+int(n) {
		return 0
	}
	e.from += lengthLen + int(n)
	return copy(b, have[lengthLen:lengthLen+n])
}

// fill reads more. It returns false if there is nothing.
func (e *streamEnd) fill() bool {
	e.to = copy(e.in, e.in[e.from:e.to])
	e.from = 0
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(e.fd), uintptr(unsafe.Pointer(&e.in[e.to])), uintptr(len(e.in)-e.to))
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return false
		case errno != 0 || n == 0:
			e.hangUp()
			return false
		}
		e.to += int(n)
		return true
	}
}

// Write implements End.
func (e *streamEnd) Write(_ int, pieces [][]byte) Outcome {
	if e.fd < 0 {
		return Lost
	}
	if len(e.out) > 0 && !e.flush() {
		return Full
	}
	if e.fd < 0 {
		return Lost
	}
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	binary.BigEndian.PutUint32(e.length[:], uint32(total))
	e.vector[0].Base = &e.length[0]
	e.vector[0].SetLen(lengthLen)
	n := 1 + vectorOf(e.vector[1:], pieces, &e.joined)
	defer clear(e.vector[:n])
	for {
		wrote, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(e.fd), uintptr(unsafe.Pointer(&e.vector)), uintptr(n))
		switch errno {
		case 0:
			e.keep(int(wrote), pieces)
			return Taken
		case unix.EINTR:
		case unix.EAGAIN:
			return Full
		default:
			e.hangUp()
			return Lost
		}
	}
}

// keep keeps what is left of a frame of which so many bytes were written, with its length before it.
func (e *streamEnd) keep(wrote int, pieces [][]byte) {
	if wrote == lengthLen+int(binary.BigEndian.Uint32(e.length[:])) {
		return
	}
	skip := func(p []byte) {
		n := min(wrote, len(p))
		wrote -= n
		e.out = append(e.out, p[n:]...)
	}
	skip(e.length[:])
	for _, p := range pieces {
		skip(p)
	}
	if len(e.out) > 0 {
		e.watch(unix.EPOLLIN | unix.EPOLLOUT)
	}
}

// flush writes the rest of a frame, and reports whether nothing is left.
func (e *streamEnd) flush() bool {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(e.fd), uintptr(unsafe.Pointer(&e.out[0])), uintptr(len(e.out)))
	switch errno {
	case 0:
		e.out = e.out[:copy(e.out, e.out[n:])]
	case unix.EAGAIN, unix.EINTR:
	default:
		e.hangUp()
		return false
	}
	if len(e.out) > 0 {
		return false
	}
	e.watch(unix.EPOLLIN)
	return true
}

func (e *streamEnd) watch(what uint32) {
	_ = unix.EpollCtl(e.ep, unix.EPOLL_CTL_MOD, e.fd, &unix.EpollEvent{Events: what, Fd: int32(e.fd)})
}

// SetLink implements End: what arrives while the function is not there is lost.
func (e *streamEnd) SetLink(up bool) { e.down = !up }

// Pause implements End.
func (e *streamEnd) Pause(on bool) {
	if e.fd < 0 {
		pause(e.ep, e.listener, on)
		return
	}
	pause(e.ep, e.fd, on)
	if !on && len(e.out) > 0 {
		e.watch(unix.EPOLLIN | unix.EPOLLOUT)
	}
}

// Descriptors implements End.
func (e *streamEnd) Descriptors() []int { return []int{e.ep} }

// Close implements End.
func (e *streamEnd) Close() error {
	defer e.release()
	e.there.Store(false)
	return unmake(e.path, e.made)
}

func (e *streamEnd) release() {
	for _, fd := range []*int{&e.fd, &e.listener, &e.ep} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}
