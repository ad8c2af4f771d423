package tun

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/offload"
)

// OpenTAP opens an interface whose Ethernet frames are read from and written to a descriptor, one at a time, each with a virtio
// header before it (offload.Header); the system leaves nothing undone in them until TUNSETOFFLOAD. An interface of that name that
// was made to stay is used, another is made, down and without addresses, and is removed with the descriptor. For an empty name
// the system chooses one that begins with "tap". The interface is in the network namespace of the calling thread.
func OpenTAP(name string) (fd int, actual string, err error) {
	if name == "" {
		name = "tap%d"
	}
	fd, actual, err = attachFrames(name, 0)
	if err != nil {
		return -1, "", err
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0); err != nil { // whoever had it before may have set others
		unix.Close(fd)
		return -1, "", fmt.Errorf("interface %q: %w", actual, os.NewSyscallError("TUNSETOFFLOAD", err))
	}
	return fd, actual, nil
}

// TunnelFlags are those of TUNSETOFFLOAD for large packets of TCP inside tunnels over UDP, with and without a checksum outside (Linux
// 6.17: TUN_F_UDP_TUNNEL_GSO and TUN_F_UDP_TUNNEL_GSO_CSUM), beside those for TCP.
const TunnelFlags = 0x080 | 0x100

// Tunnels makes the headers of an interface those that also say what is around a large packet in a tunnel (offload.TunnelHeaderLen). It
// returns false, and leaves them as they are, if the system knows none, as that before Linux 6.17.
func Tunnels(fd int) bool {
	const tcp = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
	known := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tcp|TunnelFlags) == nil
	return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0) == nil && known && Enclose(fd) == nil
}

// Enclose makes the headers of an interface those with tunnels, of which Tunnels has said that the system knows them.
func Enclose(fd int) error {
	return os.NewSyscallError("TUNSETVNETHDRSZ", unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, offload.TunnelHeaderLen))
}

// OpenQueue opens a queue of a TAP whose frames have a virtio header before them (offload.Header), and which the system may
// have left undone as far as TUNSETOFFLOAD says: nothing at first. An interface of that name that was made to stay is used,
// else one is made; multi interfaces have as many queues as are opened, and the others one.
func OpenQueue(name string, multi bool) (fd int, err error) {
	flags := uint16(0)
	if multi {
		flags = unix.IFF_MULTI_QUEUE
	}
	fd, _, err = attachFrames(name, flags)
	return fd, err
}

// attachFrames attaches to a TAP, with virtio headers.
func attachFrames(name string, flags uint16) (fd int, actual string, err error) {
	if fd, actual, err = attach(name, unix.IFF_TAP|unix.IFF_NO_PI|unix.IFF_VNET_HDR|flags); err != nil {
		return -1, "", err
	}
	// Whoever had it before may have set another header.
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, offload.HeaderLen); err != nil {
		unix.Close(fd)
		return -1, "", fmt.Errorf("interface %q: %w", actual, os.NewSyscallError("TUNSETVNETHDRSZ", err))
	}
	return fd, actual, nil
}
