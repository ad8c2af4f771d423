package udp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
)

// newSocket returns an unbound socket with the options common to a link's sockets.
func newSocket(v4 bool) (int, error) {
	family := unix.AF_INET6
	if v4 {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return -1, fmt.Errorf("udp link: %w", os.NewSyscallError("socket", err))
	}
	set := setV6
	if v4 {
		set = setV4
	}
	if err := set(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

type option struct {
	level, name, value int
	text               string
	optional           bool
}

// PROBE sets the don't-fragment bit and leaves path MTU discovery to us: the identification is then 0 (the
// segment's index in a burst), as the ICRC requires.
func setV4(fd int) error {
	return setOptions(fd, []option{
		{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE, "IP_MTU_DISCOVER", false},
		{unix.IPPROTO_IP, unix.IP_TTL, frame.DefaultHopLimit, "IP_TTL", false},
		{unix.IPPROTO_IP, unix.IP_RECVERR, 1, "IP_RECVERR", true},
		{unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, frame.DefaultHopLimit, "IP_MULTICAST_TTL", true},
		{unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL", true},
	})
}

func setV6(fd int) error {
	return setOptions(fd, []option{
		{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1, "IPV6_V6ONLY", false},
		{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE, "IPV6_MTU_DISCOVER", false},
		{unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1, "IPV6_DONTFRAG", true},
		{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, frame.DefaultHopLimit, "IPV6_UNICAST_HOPS", false},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1, "IPV6_RECVERR", true},
		{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, frame.DefaultHopLimit, "IPV6_MULTICAST_HOPS", true},
		{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL", true},
	})
}

// setReceiver sets the additional options of a socket that receives.
func setReceiver(fd int, v4 bool) error {
	if v4 {
		return setOptions(fd, []option{
			{unix.IPPROTO_IP, unix.IP_RECVTOS, 1, "IP_RECVTOS", true},
			{unix.IPPROTO_IP, unix.IP_RECVTTL, 1, "IP_RECVTTL", true},
		})
	}
	return setOptions(fd, []option{
		{unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS", true},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1, "IPV6_RECVHOPLIMIT", true},
		{unix.IPPROTO_IPV6, ipv6FlowInfo, 1, "IPV6_FLOWINFO", true},
		{unix.SOL_UDP, unix.UDP_NO_CHECK6_RX, 1, "UDP_NO_CHECK6_RX", false},
	})
}

func setOptions(fd int, options []option) error {
	for _, o := range options {
		err := unix.SetsockoptInt(fd, o.level, o.name, o.value)
		if err != nil && !o.optional {
			return fmt.Errorf("udp link: %w", os.NewSyscallError("setsockopt "+o.text, err))
		}
	}
	return nil
}

// setBuffer requests a socket buffer, beyond the limit if allowed, and returns the effective size.
func setBuffer(fd, force, name, size int) int {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
		// A refusal leaves the buffer unchanged; the effective size is read below.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, size)
	}
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, name)
	if err != nil {
		return 0
	}
	return n
}

// dropAll makes the kernel drop whatever arrives at a socket before it is queued.
func dropAll(fd int) error {
	raw, err := bpf.RetConstant{}.Assemble()
	if err != nil {
		return err
	}
	filter := unix.SockFilter{Code: raw.Op, Jt: raw.Jt, Jf: raw.Jf, K: raw.K}
	return os.NewSyscallError("setsockopt SO_ATTACH_FILTER",
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &filter}))
}

// scope returns the interface index of a zone.
func scope(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	ifi, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("udp link: zone %q: %w", zone, err)
	}
	return uint32(ifi.Index), nil
}

// putSockaddr writes the raw sockaddr of an address and returns its length.
func putSockaddr(b *[28]byte, addr netip.Addr, port uint16, scope uint32) uint8 {
	*b = [28]byte{}
	if addr.Is4() {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(b))
		sa.Family, sa.Addr = unix.AF_INET, addr.As4()
		sa.Port = networkOrder(port)
		return unix.SizeofSockaddrInet4
	}
	sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(b))
	sa.Family, sa.Addr, sa.Scope_id = unix.AF_INET6, addr.As16(), scope
	sa.Port = networkOrder(port)
	return unix.SizeofSockaddrInet6
}

// networkOrder converts a port between host and network byte order.
func networkOrder(p uint16) uint16 {
	b := [2]byte{byte(p >> 8), byte(p)}
	return *(*uint16)(unsafe.Pointer(&b))
}

func bind(fd int, addr netip.Addr, port uint16, scope uint32) error {
	if addr.Is4() {
		return unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: addr.As4()})
	}
	return unix.Bind(fd, &unix.SockaddrInet6{Port: int(port), Addr: addr.As16(), ZoneId: scope})
}

// ipv6FlowInfo is IPV6_FLOWINFO of linux/in6.h: report the flow label of arriving packets.
const ipv6FlowInfo = 11
