package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/tun"
)

// Forward makes two TAPs and passes frames from one to the other as they are, with a thread for each direction: the least that can
// be between two hosts at TAPs. With virtio headers before the frames it leaves checksums and segments of TCP undone, and with tunnels also
// what of these is inside VXLAN (Linux 6.17). ready is called when they are there; they go with the process.
func Forward(ctx context.Context, names [2]string, virtio, tunnels bool, ready func()) error {
	var fds [2]int
	for i, name := range names {
		fd, err := openPlainTAP(name, virtio, tunnels)
		if err != nil {
			return fmt.Errorf("TAP %q: %w", name, err)
		}
		fds[i] = fd
	}
	ended := make(chan error, len(fds))
	for i := range fds {
		go func() { ended <- pass(fds[i], fds[1-i]) }()
	}
	ready()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func openPlainTAP(name string, virtio, tunnels bool) (fd int, err error) {
	if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	r, err := unix.NewIfreq(name)
	if err != nil {
		return -1, err
	}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if virtio {
		flags |= unix.IFF_VNET_HDR
	}
	r.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return -1, os.NewSyscallError("TUNSETIFF", err)
	}
	offloads := unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
	if tunnels {
		if offloads |= tun.TunnelFlags; !tun.Tunnels(fd) {
			return -1, errors.New("the system has no offloads for tunnels; Linux 6.17 has")
		}
	}
	if virtio {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads)
	}
	return fd, os.NewSyscallError("TUNSETOFFLOAD", err)
}

// pass passes frames on, and loses those that are refused.
func pass(from, to int) error {
	b := make([]byte, 1<<17)
	for {
		n, _, errno := syscall.Syscall(syscall.SYS_READ, uintptr(from), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return os.NewSyscallError("read", errno)
		}
		_, _, _ = syscall.Syscall(syscall.SYS_WRITE, uintptr(to), uintptr(unsafe.Pointer(&b[0])), n)
	}
}
