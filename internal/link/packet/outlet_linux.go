package packet

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outletType is the protocol to which an outlet is bound: an Ethernet type for local experiments (IEEE 802, 9.2.3) that
// nobody here uses.
const outletType = 0x88b6

// outlet is where frames leave: through a packet socket of its own while the ring is bound to a protocol that none of
// them has, otherwise through the ring's. For the ring's the system reads a virtio header before each frame, some 20 ns.
type outlet struct {
	fd  int // -1: none
	out [virtioLen + maxFrame]byte
}

// open opens the socket on the rule's interface. It receives nothing.
func (t *outlet) open(rule Rule) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return os.NewSyscallError("socket AF_PACKET", err)
	}
	if err = attach(fd, []instruction{{Code: take}}); err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(outletType), Ifindex: rule.Interface})
	}
	if err != nil {
		unix.Close(fd)
		return err
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

// frame is where the frame to be sent is built.
func (t *outlet) frame() []byte { return t.out[virtioLen:] }

// send sends the first n bytes of the frame.
func (t *outlet) send(n int) unix.Errno { return t.sendFrom(t.fd, virtioLen, n) }

// sendThrough sends them through the socket of a ring.
func (t *outlet) sendThrough(r *ring, n int) unix.Errno { return t.sendFrom(r.fd, 0, virtioLen+n) }

func (t *outlet) sendFrom(fd, at, n int) unix.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&t.out[at])), uintptr(n),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno
}
