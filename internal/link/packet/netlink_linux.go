package packet

import (
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// system queries the kernel about routes, neighbours and interfaces, and is notified of changes. Its
// sockets stay in the network namespace in which they were opened.
type system struct {
	ask, news int // descriptors
	request   []byte
	answer    [32 << 10]byte
}

// answerTime limits the wait for an answer, which the kernel gives during the request.
const answerTime = 100_000 // us

// newsGroups are the changes that may change a packet's path (linux/rtnetlink.h, RTNLGRP_*).
var newsGroups = []int{
	unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_TC,
	unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE,
	unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE,
}

func openSystem() (s *system, err error) {
	s = &system{ask: -1, news: -1}
	if s.ask, err = netlinkSocket(unix.NETLINK_ROUTE, 0); err != nil {
		return nil, err
	}
	if s.news, err = netlinkSocket(unix.NETLINK_ROUTE, unix.SOCK_NONBLOCK); err != nil {
		s.close()
		return nil, err
	}
	// A socket without an address of its own is taken for the kernel, and gets no messages.
	if err := unix.Bind(s.news, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		s.close()
		return nil, os.NewSyscallError("bind AF_NETLINK", err)
	}
	for _, g := range newsGroups {
		if err := unix.SetsockoptInt(s.news, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g); err != nil {
			s.close()
			return nil, os.NewSyscallError("setsockopt NETLINK_ADD_MEMBERSHIP", err)
		}
	}
	return s, nil
}

func netlinkSocket(protocol, flags int) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, protocol)
	if err != nil {
		return -1, os.NewSyscallError("socket AF_NETLINK", err)
	}
	wait := unix.Timeval{Usec: answerTime}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("setsockopt SO_RCVTIMEO", err)
	}
	return fd, nil
}

func (s *system) close() {
	for _, fd := range []int{s.ask, s.news} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// exchange sends the request and returns the body of the answer of this kind; ok is false if the kernel
// answers with an error.
func (s *system) exchange(kind uint16) (body []byte, ok bool) {
	if unix.Sendto(s.ask, s.request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return nil, false
	}
	n, err := unix.Read(s.ask, s.answer[:])
	if err != nil {
		return nil, false
	}
	got, body, _ := nextMessage(s.answer[:n])
	return body, got == kind && body != nil
}

func (s *system) route(src, dst netip.Addr, srcPort, dstPort uint16, out int) (route, bool) {
	s.request = askRoute(s.request, src, dst, srcPort, dstPort, out)
	body, ok := s.exchange(unix.RTM_NEWROUTE)
	if !ok {
		return route{}, false
	}
	return parseRoute(body)
}

func (s *system) neighbour(addr netip.Addr, out int) (neighbour, bool) {
	s.request = askNeighbour(s.request, addr, out)
	body, ok := s.exchange(unix.RTM_NEWNEIGH)
	if !ok {
		return neighbour{}, false
	}
	return parseNeighbour(body, false)
}

func (s *system) device(index int) (device, bool) {
	s.request = askDevice(s.request, index)
	body, ok := s.exchange(unix.RTM_NEWLINK)
	if !ok {
		return device{}, false
	}
	return parseDevice(body)
}

// newsTurns limits how much one call of changes reads.
const newsTurns = 16

// changes calls each for every notification of a change. It returns false if some were lost.
func (s *system) changes(each func(kind uint16, body []byte)) bool {
	for range newsTurns {
		n, err := unix.Read(s.news, s.answer[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err == unix.EAGAIN
		}
		for b := s.answer[:n]; ; {
			kind, body, rest := nextMessage(b)
			if body == nil {
				break
			}
			each(kind, body)
			b = rest
		}
	}
	return true
}
