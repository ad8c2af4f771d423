package cable

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	receiveMessages = 8
	receiveLen      = 64 << 10
	receiveRounds   = 4
	controlLen      = 64
	mostSegments    = 64 // of one message (UDP_MAX_SEGMENTS)
	mostSent        = 65000
)

// rawSocket is a socket that uses raw system calls: if the kernel supports it, many datagrams of one size
// are sent, and received, as one buffer in one call.
type rawSocket struct {
	fd      int
	v6      bool // an IPv6 socket, which carries IPv4 too
	gso     bool
	size    int // of the receive buffer
	headers [receiveMessages]mmsghdr
	vectors [receiveMessages]unix.Iovec
	names   [receiveMessages]unix.RawSockaddrInet6
	control [receiveMessages][controlLen]byte
	memory  []byte

	to      netip.AddrPort // the address encoded in name
	name    unix.RawSockaddrInet6
	nameLen uint32
	out     unix.Msghdr
	vector  unix.Iovec
	cut     [controlLen]byte
	zone    struct {
		id   uint32
		name string
	}
}

// mmsghdr is the kernel's struct of that name.
type mmsghdr struct {
	header unix.Msghdr
	length uint32
}

var openSystem opener = openRaw

func openRaw(at netip.AddrPort, _ func()) (socketSystem, netip.AddrPort, error) {
	s := &rawSocket{v6: at.Addr().Is6()}
	family := unix.AF_INET
	if s.v6 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, at, os.NewSyscallError("socket", err)
	}
	s.fd = fd
	if s.v6 { // [::] includes IPv4
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	s.size = setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	_ = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) // kernels without it return datagrams singly
	_, err = unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT)
	s.gso = err == nil
	if err := unix.Bind(fd, sockaddr(at, s.v6)); err != nil {
		unix.Close(fd)
		return nil, at, os.NewSyscallError("bind", err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return nil, at, os.NewSyscallError("getsockname", err)
	}
	switch a := bound.(type) {
	case *unix.SockaddrInet4:
		at = netip.AddrPortFrom(at.Addr(), uint16(a.Port))
	case *unix.SockaddrInet6:
		at = netip.AddrPortFrom(at.Addr(), uint16(a.Port))
	}
	s.memory = make([]byte, receiveMessages*receiveLen)
	for i := range s.headers {
		s.vectors[i].Base = &s.memory[i*receiveLen]
		s.vectors[i].SetLen(receiveLen)
		h := &s.headers[i].header
		h.Name, h.Iov, h.Control = (*byte)(unsafe.Pointer(&s.names[i])), &s.vectors[i], &s.control[i][0]
		h.SetIovlen(1)
	}
	return s, at, nil
}

// setBuffer makes a buffer of the socket as large as the system permits, up to socketBuffer, and returns
// its size.
func setBuffer(fd, force, plain int) int {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, socketBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, socketBuffer)
	}
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	if err != nil {
		return 0
	}
	return n / 2 // the kernel counts its own structures too
}

func sockaddr(at netip.AddrPort, v6 bool) unix.Sockaddr {
	a := at.Addr()
	if !v6 {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: a.As16(), ZoneId: zone(a.Zone())}
}

// zone returns the index of an interface.
func zone(name string) uint32 {
	if name == "" {
		return 0
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	return uint32(ifi.Index)
}

// address encodes an address into name.
func (s *rawSocket) address(to netip.AddrPort) {
	if to == s.to {
		return
	}
	s.to = to
	a := to.Addr()
	if !s.v6 {
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.name))
		*in = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: a.Unmap().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&in.Port))[:], to.Port())
		s.nameLen = unix.SizeofSockaddrInet4
		return
	}
	s.name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: a.As16(), Scope_id: zone(a.Zone())}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.name.Port))[:], to.Port())
	s.nameLen = unix.SizeofSockaddrInet6
}

func (s *rawSocket) send(to netip.AddrPort, b []byte, size int) int {
	if !s.v6 && !to.Addr().Unmap().Is4() {
		return len(b) // nobody is there
	}
	s.address(to)
	done := 0
	for done < len(b) {
		n := min(size, len(b)-done)
		if s.gso {
			n = min(size*min(mostSegments, mostSent/size), len(b)-done)
		}
		switch errno := s.write(b[done:done+n], size); {
		case errno == unix.EAGAIN || errno == unix.ENOBUFS:
			return done
		case errno == unix.EINTR:
			continue
		case errno != 0 && n > size: // the device or the path cannot segment: singly from now on
			s.gso = false
			continue
		}
		done += n // anything else the system refuses is lost
	}
	return done
}

// write sends one message, which the kernel cuts into datagrams of size bytes if it is longer.
func (s *rawSocket) write(b []byte, size int) unix.Errno {
	s.vector.Base = &b[0]
	s.vector.SetLen(len(b))
	h := &s.out
	*h = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&s.name)), Namelen: s.nameLen, Iov: &s.vector}
	h.SetIovlen(1)
	if len(b) > size {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&s.cut[0]))
		c.Level, c.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		c.SetLen(unix.CmsgLen(2))
		*(*uint16)(unsafe.Pointer(&s.cut[unix.CmsgLen(0)])) = uint16(size)
		h.Control = &s.cut[0]
		h.SetControllen(unix.CmsgSpace(2))
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(h)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	s.vector.Base = nil
	return errno
}

func (s *rawSocket) receive(take func(netip.AddrPort, []byte)) int {
	all := 0
	for range receiveRounds {
		for i := range s.headers {
			h := &s.headers[i].header
			h.Namelen = unix.SizeofSockaddrInet6
			h.SetControllen(controlLen)
			h.Flags = 0
		}
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.headers[0])), receiveMessages,
			unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 {
			return all
		}
		for i := range int(n) {
			all += s.split(i, take)
		}
		if int(n) < receiveMessages {
			return all
		}
	}
	return all
}

// split passes the datagrams of a message to take and counts them.
func (s *rawSocket) split(i int, take func(netip.AddrPort, []byte)) (count int) {
	m := &s.headers[i]
	b := s.memory[i*receiveLen:][:min(int(m.length), receiveLen)]
	if m.header.Flags&unix.MSG_TRUNC != 0 {
		return 1
	}
	size := s.segment(i, len(b))
	from := s.sender(i)
	for len(b) > 0 {
		n := min(size, len(b))
		take(from, b[:n:n])
		b = b[n:]
		count++
	}
	return count
}

// segment returns how long each datagram of a message is.
func (s *rawSocket) segment(i, all int) int {
	b := s.control[i][:min(int(s.headers[i].header.Controllen), controlLen)]
	if len(b) < unix.CmsgLen(4) {
		return all
	}
	c := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	if c.Level != unix.SOL_UDP || c.Type != unix.UDP_GRO {
		return all
	}
	if n := int(*(*int32)(unsafe.Pointer(&b[unix.CmsgLen(0)]))); n > 0 {
		return n
	}
	return all
}

// sender returns the address that sent a message.
func (s *rawSocket) sender(i int) netip.AddrPort {
	name := &s.names[i]
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&name.Port))[:])
	if name.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr), port)
	}
	a := netip.AddrFrom16(name.Addr).Unmap()
	if name.Scope_id != 0 {
		if s.zone.id != name.Scope_id {
			s.zone.id, s.zone.name = name.Scope_id, fmt.Sprint(name.Scope_id)
		}
		a = a.WithZone(s.zone.name)
	}
	return netip.AddrPortFrom(a, port)
}

func (s *rawSocket) descriptor() int { return s.fd }

func (s *rawSocket) buffer() int { return s.size }

func (s *rawSocket) close() {
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // ENOTCONN, but it wakes whoever waits for the descriptor
	unix.Close(s.fd)
}
