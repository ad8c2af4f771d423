package packet

import (
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Programs of tc at the ingress of an interface drop, change and redirect packets before the system's IP
// input. If there are none, the ring need not wait for them, nor for IP.

// filtersIngress reports whether tc handles what arrives on an interface, or whether that cannot be
// determined. socket is a socket in the interface's network namespace, and own the id of the caller's
// gate, 0 if it has none.
func (s *system) filtersIngress(index, socket int, own ebpf.ProgramID) bool {
	return s.ingressQdisc(index) || tcxPrograms(index, socket, own)
}

// tcxPrograms reports whether programs other than gates are attached to an interface's ingress, or whether
// that cannot be determined: the system answers for the namespace of the calling thread, and requires
// CAP_NET_ADMIN. own is the caller's gate; recognizing others requires CAP_SYS_ADMIN.
func tcxPrograms(index, socket int, own ebpf.ProgramID) bool {
	if !sameNamespace(socket) {
		return true
	}
	there, err := entrancePrograms(index)
	return err != nil || slices.ContainsFunc(there, func(p link.AttachedProgram) bool { return p.ID != own && !isGate(p.ID) })
}

// sameNamespace reports whether a socket is in the network namespace of this thread.
func sameNamespace(socket int) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	here, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return false
	}
	there, err := unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return err == nil && here == there
}
