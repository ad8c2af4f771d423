package packet

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outlet is a packet socket that only sends frames. The ring's socket expects a virtio header before each frame, which
// costs some 20 ns.
type outlet struct {
	fd  int // -1: none
	out [maxFrame]byte
}

// open opens the socket on the rule's interface. Because it is bound to no protocol, it receives nothing, and the system
// takes each frame's protocol from its header: tc, the choice of a transmit queue, and packet sockets see that it is IP.
// Bound to an unused protocol it would send some 30 ns faster, but they would take the frames for that protocol.
func (t *outlet) open(rule Rule) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return os.NewSyscallError("socket AF_PACKET", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: rule.Interface}); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("bind AF_PACKET", err)
	}
	t.fd = fd
	return nil
}

func (t *outlet) close() {
	if t.fd >= 0 {
		unix.Close(t.fd)
		t.fd = -1
	}
}

// send sends the first n bytes of out.
func (t *outlet) send(n int) unix.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(t.fd), uintptr(unsafe.Pointer(&t.out)), uintptr(n),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno
}
