package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/link"
)

// errorQueue holds ICMP errors until Errors is called, and the buffers to read them.
type errorQueue struct {
	found [maxErrors]link.Unreachable
	n     int

	message [1]message
	vector  unix.Iovec
	name    [28]byte
	quoted  [64]byte // beginning of the packet that caused the error, from its BTH
	control [256]byte
	events  [16]unix.EpollEvent
}

// report keeps an error until Errors is called. A duplicate is ignored.
func (l *socketLink) report(u link.Unreachable) {
	q := &l.errors
	for i := range q.found[:q.n] {
		if q.found[i] == u {
			return
		}
	}
	if q.n == len(q.found) {
		l.stats.ErrorsLost++
		return
	}
	q.found[q.n] = u
	q.n++
}

// Errors implements link.Link.
func (l *socketLink) Errors(out []link.Unreachable) int {
	if l.closed {
		return 0
	}
	l.readErrors(l.fd)
	l.look()
	l.tendFrames()
	q := &l.errors
	n := copy(out, q.found[:q.n])
	q.n = copy(q.found[:], q.found[n:q.n])
	return n
}

// look services the sockets that only send: it reads their errors, and discards what arrives there and was
// not dropped by the kernel.
func (l *socketLink) look() {
	if len(l.sources) == 0 && len(l.groups) == 0 {
		return
	}
	n, err := epollReady(l.watch, l.errors.events[:])
	if err != 0 {
		return
	}
	for _, e := range l.errors.events[:n] {
		if l.frames.is(int(e.Fd)) { // tendFrames reads it
			continue
		}
		if e.Events&unix.EPOLLERR != 0 {
			l.readErrors(int(e.Fd))
		}
		if e.Events&unix.EPOLLIN != 0 && !l.isGroup(int(e.Fd)) {
			discard(int(e.Fd))
		}
	}
}

func epollReady(fd int, events []unix.EpollEvent) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), 0, 0, 0)
	return int(n), errno
}

// discard discards a limited number of datagrams that have arrived at a socket.
func discard(fd int) {
	var b [1]byte
	for range 64 {
		_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1,
			unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
		if errno != 0 {
			return
		}
	}
}

// readErrors reads a socket's error queue, at most 64 errors, and returns how many of them were ICMP
// errors.
func (l *socketLink) readErrors(fd int) int {
	q := &l.errors
	icmp := 0
	for range maxErrors {
		q.vector.Base = &q.quoted[0]
		q.vector.SetLen(len(q.quoted))
		h := &q.message[0].header
		*h = unix.Msghdr{Name: &q.name[0], Namelen: uint32(len(q.name)), Iov: &q.vector, Control: &q.control[0]}
		h.SetIovlen(1)
		h.SetControllen(len(q.control))
		got, errno := receiveMessages(fd, q.message[:], unix.MSG_ERRQUEUE)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || got == 0 {
			break
		}
		if l.readError() {
			icmp++
		}
	}
	return icmp
}

// readError decodes the error just read and reports whether it was caused by an ICMP packet.
func (l *socketLink) readError() bool {
	q := &l.errors
	m := &q.message[0]
	b := q.control[:min(int(m.header.Controllen), len(q.control))]
	for {
		level, kind, data, rest := nextControl(b)
		if data == nil {
			return false
		}
		b = rest
		isError := level == unix.IPPROTO_IP && kind == unix.IP_RECVERR || level == unix.IPPROTO_IPV6 && kind == unix.IPV6_RECVERR
		if !isError || len(data) < int(unsafe.Sizeof(unix.SockExtendedErr{})) {
			continue
		}
		e := (*unix.SockExtendedErr)(unsafe.Pointer(&data[0]))
		if e.Origin != unix.SO_EE_ORIGIN_ICMP && e.Origin != unix.SO_EE_ORIGIN_ICMP6 {
			return false // a local refusal, which the send call returned too
		}
		u := link.Unreachable{Dst: l.errorDestination(), Kind: refusal(unix.Errno(e.Errno))}
		if u.Kind == link.PacketTooBig {
			u.MTU = int(e.Info)
		}
		u.Quote(q.quoted[:min(int(m.length), len(q.quoted))], nil)
		l.report(u)
		return true
	}
}

// errorDestination returns the destination of the packet that caused the error.
func (l *socketLink) errorDestination() netip.Addr {
	q := &l.errors
	if l.v4 {
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&q.name)).Addr)
	}
	sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(&q.name))
	a := netip.AddrFrom16(sa.Addr)
	if a.IsLinkLocalUnicast() {
		a = a.WithZone(l.cfg.Addr.Zone())
	}
	return a
}
