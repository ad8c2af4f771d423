package ethernet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/wire/eth"
)

// stack is the system's on the interface, and on interfaces of VLANs on top of it. It implements station.System; all of its
// methods are called one at a time. Its sockets stay in the network namespace in which they were opened.
type stack struct {
	ask   *netlink.Handle
	news  *station.News
	index int

	ports      map[uint16]port // by VLAN
	owned      map[neighbour.Key]bool
	kept       []*reservation
	neighbours map[neighbour.Key]netlink.Neigh
	doubtful   bool // neighbours may have changed
}

// port is an interface of the system: the link's, or one of a VLAN on top of it.
type port struct {
	index int
	mac   eth.MAC
}

// newsGroups are the changes that may concern a link (linux/rtnetlink.h, RTNLGRP_*).
var newsGroups = []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR}

func openStack(index int) (*stack, error) {
	s := &stack{index: index}
	var err error
	if s.ask, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("%s: netlink: %w", name, err)
	}
	if s.news, err = station.Subscribe(newsGroups...); err != nil {
		s.close()
		return nil, fmt.Errorf("%s: netlink: %w", name, err)
	}
	if err := s.survey(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stack) close() {
	s.ask.Close()
	for _, r := range s.kept {
		r.release()
	}
	if s.news != nil {
		s.news.Close()
	}
}

// survey finds the interfaces and their addresses.
func (s *stack) survey() error {
	links, err := s.ask.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // news follow
		return fmt.Errorf("%s: interfaces: %w", name, err)
	}
	s.ports, s.owned, s.doubtful = map[uint16]port{}, map[neighbour.Key]bool{}, true
	for _, l := range links {
		a := l.Attrs()
		vlan := uint16(0)
		if v, ok := l.(*netlink.Vlan); ok && a.ParentIndex == s.index {
			vlan = uint16(v.VlanId)
		} else if a.Index != s.index {
			continue
		}
		p := port{index: a.Index}
		copy(p.mac[:], a.HardwareAddr)
		s.ports[vlan] = p
		addrs, err := s.ask.AddrList(l, netlink.FAMILY_ALL)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return fmt.Errorf("%s: addresses of %q: %w", name, a.Name, err)
		}
		for _, x := range addrs {
			if ip, ok := netip.AddrFromSlice(x.IP); ok {
				s.owned[neighbour.Key{VLAN: vlan, Addr: ip.Unmap()}] = true
			}
		}
	}
	return nil
}

// Owns implements station.System.
func (s *stack) Owns(key neighbour.Key) bool { return s.owned[key] }

// Route implements station.System.
func (s *stack) Route(src neighbour.Key, dst netip.Addr) (netip.Addr, error) {
	p := s.ports[src.VLAN]
	if dst.IsLinkLocalUnicast() {
		return dst, nil
	}
	routes, err := s.ask.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{SrcAddr: src.Addr.AsSlice()})
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s: no route from %v to %v: %w", name, src.Addr, dst, err)
	}
	if len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST || routes[0].LinkIndex != p.index {
		return netip.Addr{}, fmt.Errorf("%s: the route from %v to %v is not by this interface: %w", name, src.Addr, dst, syscall.EHOSTUNREACH)
	}
	if via, ok := netip.AddrFromSlice(routes[0].Gw); ok {
		return via.Unmap(), nil
	}
	return dst, nil
}

// usable are the states of neighbours with a MAC to which the system sends (its NUD_VALID), certain those of which it does
// not doubt, or is making sure.
const (
	certain = netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_REACHABLE | netlink.NUD_PROBE | netlink.NUD_DELAY
	usable  = certain | netlink.NUD_STALE
)

// Find implements station.System.
func (s *stack) Find(key neighbour.Key, src netip.Addr) (mac eth.MAC, known, able bool) {
	n := s.neighbours[key]
	if s.doubtful || n.State&certain == 0 {
		s.lookUp()
		n = s.neighbours[key]
	}
	able = true
	if n.State&(certain|netlink.NUD_INCOMPLETE) == 0 {
		able = s.seek(key, src)
		s.doubtful = true
	}
	if n.State&usable == 0 || len(n.HardwareAddr) != len(mac) {
		return eth.MAC{}, false, able
	}
	return eth.MAC(n.HardwareAddr), true, true
}

// nobody is the port of the discard service (RFC 863).
const nobody = 9

// seek makes the system look for a neighbour. An empty datagram from the address concerned does: for NTF_USE, which stands for
// a packet without a source, a system that has no link-local address yet asks nobody in IPv6. That is left for addresses
// whose port is somebody else's. It returns false if the system will not look.
func (s *stack) seek(key neighbour.Key, src netip.Addr) bool {
	for _, r := range s.kept {
		if r.key == (neighbour.Key{VLAN: key.VLAN, Addr: src}) && unix.Sendto(r.fd, nil, 0, s.sockaddr(key, nobody)) == nil {
			return true
		}
	}
	err := s.ask.NeighSet(&netlink.Neigh{LinkIndex: s.ports[key.VLAN].index, State: netlink.NUD_NONE, Flags: netlink.NTF_USE,
		IP: key.Addr.AsSlice()})
	return !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP)
}

// lookUp reads the system's neighbours on the interfaces.
func (s *stack) lookUp() {
	s.doubtful = false
	s.neighbours = map[neighbour.Key]netlink.Neigh{}
	for vlan, p := range s.ports {
		list, err := s.ask.NeighList(p.index, netlink.FAMILY_ALL)
		if err != nil {
			s.doubtful = true
		}
		for _, n := range list {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				s.neighbours[neighbour.Key{VLAN: vlan, Addr: ip.Unmap()}] = n
			}
		}
	}
}

// reservation keeps a UDP port of an address of the system.
type reservation struct {
	key neighbour.Key
	fd  int
}

// keep reserves a UDP port of addresses, and lets go of others.
func (s *stack) keep(want []neighbour.Key, udpPort uint16) error {
	s.kept = slices.DeleteFunc(s.kept, func(r *reservation) bool {
		if slices.Contains(want, r.key) {
			return false
		}
		r.release()
		return true
	})
	for _, key := range want {
		if slices.ContainsFunc(s.kept, func(r *reservation) bool { return r.key == key }) {
			continue
		}
		r, err := s.reserve(key, udpPort)
		if err != nil {
			return err
		}
		s.kept = append(s.kept, r)
	}
	return nil
}

// sockaddr is a port of an address on the interface of a VLAN.
func (s *stack) sockaddr(key neighbour.Key, udpPort uint16) unix.Sockaddr {
	if key.Addr.Is4() {
		return &unix.SockaddrInet4{Port: int(udpPort), Addr: key.Addr.As4()}
	}
	a := &unix.SockaddrInet6{Port: int(udpPort), Addr: key.Addr.As16()}
	if key.Addr.IsLinkLocalUnicast() {
		a.ZoneId = uint32(s.ports[key.VLAN].index)
	}
	return a
}

// reserve keeps a port: the system neither answers packets there with an error, nor lets others have it. What arrives is
// dropped.
func (s *stack) reserve(key neighbour.Key, udpPort uint16) (*reservation, error) {
	family := unix.AF_INET6
	if key.Addr.Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	r := &reservation{key, fd}
	if err := attach(fd, nothing); err != nil {
		r.release()
		return nil, err
	}
	if family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1) // a single address is IPv6 anyway
	}
	if err := unix.Bind(fd, s.sockaddr(key, udpPort)); err != nil {
		r.release()
		return nil, fmt.Errorf("%s: keep UDP port %d of %v: %w", name, udpPort, key.Addr, os.NewSyscallError("bind", err))
	}
	return r, nil
}

func (r *reservation) release() { unix.Close(r.fd) }
