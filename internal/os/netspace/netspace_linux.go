package netspace

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// OfFile returns the namespace that a descriptor is open on.
func OfFile(fd int) (ID, error) {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return ID{}, os.NewSyscallError("fstat", err)
	}
	return ID{s.Dev, s.Ino}, nil
}

// Own returns the namespace of the calling thread, which is that of all unless some have gone elsewhere.
func Own() (ID, error) {
	var s unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &s); err != nil {
		return ID{}, fmt.Errorf("own network namespace: %w", err)
	}
	return ID{s.Dev, s.Ino}, nil
}

// OfPeer returns the namespace in which a program has made the socket by which it has connected to this process. The kernel makes the
// accepted end beside the program's, in that one's namespace (unix_stream_connect), and tells which it is (SIOCGSKNS, Linux 4.9): no
// number of a process comes into it, which another one might have by now, and it does not matter where the program goes afterwards.
// It takes CAP_NET_ADMIN over that namespace.
func OfPeer(c *net.UnixConn) (id ID, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return ID{}, err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		space, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SIOCGSKNS, 0)
		if errno != 0 {
			inner = os.NewSyscallError("SIOCGSKNS", errno)
			return
		}
		defer unix.Close(int(space))
		id, inner = OfFile(int(space))
	})
	if err != nil {
		return ID{}, err
	}
	return id, inner
}
