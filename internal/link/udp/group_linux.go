package udp

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// group is a multicast group with a socket of its own, because a socket bound to the port's address
// receives no multicast. Bound to the group's address it conflicts with nothing.
type group struct {
	addr netip.Addr
	fd   int
	uses int
}

func (l *socketLink) isGroup(fd int) bool {
	for i := range l.groups {
		if l.groups[i].fd == fd {
			return true
		}
	}
	return false
}

// Join implements link.Multicaster.
func (l *socketLink) Join(addr netip.Addr) error {
	if l.closed {
		return net.ErrClosed
	}
	if !addr.IsMulticast() || addr.Is4() != l.v4 {
		return fmt.Errorf("udp link: group %v: want a multicast address of the family of %v", addr, l.cfg.Addr)
	}
	for i := range l.groups {
		if l.groups[i].addr == addr {
			l.groups[i].uses++
			return nil
		}
	}
	if len(l.groups) == maxGroups {
		return fmt.Errorf("udp link: group %v: %d groups are joined already, the most there may be", addr, maxGroups)
	}
	fd, err := l.openGroup(addr)
	if err != nil {
		return fmt.Errorf("udp link: join group %v: %w", addr, err)
	}
	l.groups = append(l.groups, group{addr: addr, fd: fd, uses: 1})
	return nil
}

func (l *socketLink) openGroup(addr netip.Addr) (int, error) {
	fd, err := newSocket(l.v4)
	if err != nil {
		return -1, err
	}
	err = l.setGroup(fd, addr)
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (l *socketLink) setGroup(fd int, addr netip.Addr) error {
	if err := setReceiver(fd, l.v4); err != nil {
		return err
	}
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, max(l.cfg.ReceiveBuffer, 1<<20))
	if l.gro {
		_ = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) // if this fails, datagrams arrive singly
	}
	// Several adapters of a host may have joined the same group.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt SO_REUSEADDR", err)
	}
	if err := bind(fd, addr, l.cfg.Port, l.interfaceIndex()); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if err := l.addMembership(fd, addr); err != nil {
		return err
	}
	return l.watchSocket(fd)
}

func (l *socketLink) addMembership(fd int, addr netip.Addr) error {
	if l.v4 {
		m := &unix.IPMreqn{Multiaddr: addr.As4(), Address: l.cfg.Addr.As4(), Ifindex: int32(l.interfaceIndex())}
		return os.NewSyscallError("setsockopt IP_ADD_MEMBERSHIP", unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, m))
	}
	m := &unix.IPv6Mreq{Multiaddr: addr.As16(), Interface: l.interfaceIndex()}
	return os.NewSyscallError("setsockopt IPV6_ADD_MEMBERSHIP", unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, m))
}

// interfaceIndex returns the index of the interface with the link's address, 0 if unknown.
func (l *socketLink) interfaceIndex() uint32 {
	if l.scope != 0 {
		return l.scope
	}
	ifi, ok := InterfaceOf(l.cfg.Addr)
	if !ok {
		return 0
	}
	return uint32(ifi.Index)
}

// setMulticastInterface makes multicast leave through the port's interface. If that is refused, the
// routing table decides.
func (l *socketLink) setMulticastInterface(fd int) {
	if l.v4 {
		_ = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF,
			&unix.IPMreqn{Address: l.cfg.Addr.As4(), Ifindex: int32(l.index)})
		return
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, int(l.index))
}

// Leave implements link.Multicaster.
func (l *socketLink) Leave(addr netip.Addr) error {
	if l.closed {
		return net.ErrClosed
	}
	for i := range l.groups {
		g := &l.groups[i]
		if g.addr != addr {
			continue
		}
		if g.uses--; g.uses == 0 {
			unix.Close(g.fd) // which also ends the membership and the watch
			l.groups = append(l.groups[:i], l.groups[i+1:]...)
		}
		return nil
	}
	return fmt.Errorf("udp link: group %v was not joined", addr)
}

// fetchGroup receives messages from the first group that has something, starting with another one each time.
func (l *socketLink) fetchGroup() bool {
	for k := range l.groups {
		g := &l.groups[(l.receive.turn+k)%len(l.groups)]
		if l.fetchFrom(g.fd, g.addr, l.receive.batch.most) {
			return true
		}
	}
	return false
}
