package packet

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outlet is the packet sockets that only send frames. That of bursts expects a virtio header before each, which costs some
// 20 ns.
type outlet struct {
	fd    int // -1: none
	burst int // -1: none
	out   [maxFrame]byte
}

// burstBuffer is how much the socket of bursts may have on the way within the system, in bytes.
const burstBuffer = 4 << 20

// open opens the sockets on an interface. Because it is bound to no protocol, it receives nothing, and the system
// takes each frame's protocol from its header: tc, the choice of a transmit queue, and packet sockets see that it is IP.
// Bound to an unused protocol it would send some 30 ns faster, but they would take the frames for that protocol.
func (t *outlet) open(index int) (err error) {
	if t.fd, err = openOutlet(index); err != nil {
		return err
	}
	if t.burst, err = openOutlet(index); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(t.burst, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return os.NewSyscallError("setsockopt PACKET_VNET_HDR", err)
	}
	if unix.SetsockoptInt(t.burst, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, burstBuffer) != nil {
		_ = unix.SetsockoptInt(t.burst, unix.SOL_SOCKET, unix.SO_SNDBUF, burstBuffer) // what does not fit, the UDP socket sends
	}
	return nil
}

// openOutlet opens one of the sockets; -1: there is none.
func openOutlet(index int) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket AF_PACKET", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("bind AF_PACKET", err)
	}
	return fd, nil
}

func (t *outlet) close() {
	for _, fd := range []*int{&t.fd, &t.burst} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// send sends the first n bytes of out.
func (t *outlet) send(n int) unix.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(t.fd), uintptr(unsafe.Pointer(&t.out)), uintptr(n),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno
}
