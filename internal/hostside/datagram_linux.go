package hostside

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/wire/eth"
)

// socketBuffer is how many bytes the sockets of virtual machines keep of what is sent there.
const socketBuffer = 1 << 20

// guest is what the ends of virtual machines share: they have one queue, complete frames, and no interface here.
type guest struct{ vector [mostPieces]unix.Iovec }

// Queues implements End.
func (*guest) Queues() int { return 1 }

// SetQueues implements End.
func (*guest) SetQueues(int) error { return nil }

// Datagrams implements End.
func (*guest) Datagrams() bool { return false }

// Virtio implements End.
func (*guest) Virtio() bool { return false }

// Ready implements End.
func (*guest) Ready() uint64 { return 1 }

// Set implements End: the address is the virtual machine's to set.
func (*guest) Set(eth.MAC, int) error { return nil }

// Offer implements End.
func (*guest) Offer(Offloads) error { return nil }

// datagramEnd is the host's end at a unix datagram socket.
type datagramEnd struct {
	guest
	local, remote string
	fd            int
	ep            int
	down          bool
	made          fs.FileInfo // the socket at its path
	message       unix.Msghdr
	name          unix.RawSockaddrUnix
	joined        []byte
}

func openSocket(local, remote string) (_ End, err error) {
	if err := vacate(local, "unixgram"); err != nil {
		return nil, err
	}
	e := &datagramEnd{local: local, remote: remote, fd: -1, ep: -1}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	if e.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(e.fd, &unix.SockaddrUnix{Name: local}); err != nil {
		return nil, fmt.Errorf("host: socket %q: %w", local, err)
	}
	e.made, _ = os.Lstat(local)
	_ = unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer) // a smaller one does too
	if e.ep, err = watched(e.fd); err != nil {
		return nil, err
	}
	e.name.Family = unix.AF_UNIX
	for i := range len(remote) {
		e.name.Path[i] = int8(remote[i])
	}
	e.message.Name = (*byte)(unsafe.Pointer(&e.name))
	e.message.Namelen = uint32(2 + len(remote) + 1)
	e.message.Iov = &e.vector[0]
	return e, nil
}

// watched returns an epoll set with a descriptor.
func watched(fd int) (int, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("epoll_create", err)
	}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		unix.Close(ep)
		return -1, os.NewSyscallError("epoll_ctl", err)
	}
	return ep, nil
}

// vacate removes a socket that nobody has any more.
func vacate(path, network string) error {
	s, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil && s.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("host: %q is a file and no socket: %w", path, os.ErrExist)
	}
	if err == nil {
		// Who has it may be of another kind, connected to somebody else, or busy: only a socket that refuses is nobody's.
		c, dialled := net.DialUnix(network, nil, &net.UnixAddr{Name: path, Net: network})
		if dialled == nil {
			_ = c.Close()
		}
		if !errors.Is(dialled, unix.ECONNREFUSED) && !os.IsNotExist(dialled) {
			return fmt.Errorf("host: socket %q: another process has it: %w", path, os.ErrExist)
		}
		if err = os.Remove(path); os.IsNotExist(err) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	return nil
}

// Kind implements End.
func (e *datagramEnd) Kind() string { return "datagram socket " + e.local }

// Attended implements Attended. A socket that its owner has connected elsewhere refuses others.
func (e *datagramEnd) Attended() bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: e.remote})
	return err == nil || errors.Is(err, unix.EPERM)
}

// Read implements End.
func (e *datagramEnd) Read(_ int, b []byte) int {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(e.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		switch {
		case errno == unix.EINTR, errno == 0 && n == 0: // an empty datagram is no frame
		case errno != 0:
			return 0
		case e.down:
		default:
			return int(n)
		}
	}
}

// Write implements End.
func (e *datagramEnd) Write(_ int, pieces [][]byte) Outcome {
	n := vectorOf(e.vector[:], pieces, &e.joined)
	e.message.SetIovlen(n)
	defer clear(e.vector[:n])
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&e.message)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch errno {
		case 0:
			return Taken
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			return Full
		default:
			return Lost
		}
	}
}

// SetLink implements End. A socket has no carrier: what arrives while the function is not there is lost.
func (e *datagramEnd) SetLink(up bool) { e.down = !up }

// Pause implements End.
func (e *datagramEnd) Pause(on bool) { pause(e.ep, e.fd, on) }

// pause takes a descriptor out of its epoll set, or puts it back: in the set it would go on signalling that the other end has
// hung up, which nobody takes note of meanwhile.
func pause(ep, fd int, on bool) {
	what := unix.EPOLL_CTL_ADD
	if on {
		what = unix.EPOLL_CTL_DEL
	}
	_ = unix.EpollCtl(ep, what, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// Descriptors implements End.
func (e *datagramEnd) Descriptors() []int { return []int{e.ep} }

// Close implements End.
func (e *datagramEnd) Close() error {
	defer e.release()
	return unmake(e.local, e.made)
}

// unmake removes a socket from its path, unless somebody else has it by now.
func unmake(path string, made fs.FileInfo) error {
	if now, err := os.Lstat(path); err != nil || made == nil || !os.SameFile(now, made) {
		return nil
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

func (e *datagramEnd) release() {
	for _, fd := range []*int{&e.fd, &e.ep} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}
