package udp

import (
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
)

const (
	receiveControl = 5 * controlSpace
	groupTurn      = 8 // groups are polled first once in so many calls
	// Of messages with an average length of longMessage or more, one Receive takes longMost, into the same
	// few buffers each time: more would not stay in a second-level cache together with the destination of
	// their payload.
	longMessage = 16 << 10
	longMost    = 4
	// Of messages longer than packets, as bursts are, it takes burstMost.
	burstMost = 16
	// After loneMessages single messages the next one is requested alone: looking for another takes as
	// long as half a poll.
	loneMessages = 8
)

// receiver holds what recvmmsg fills, and the position up to which it was handed out.
type receiver struct {
	messages []message
	vectors  []unix.Iovec
	names    [][28]byte
	control  [][receiveControl]byte
	memory   []byte
	size     int  // bytes of memory per message
	most     int  // maximum number of messages to take
	lone     int  // consecutive messages that arrived alone
	came     bool // the previous Receive got some
	all      int  // messages since the last changeShift
	long     int  // those of them longer than what is sent as a frame

	n    int // messages filled
	next int // the one being cut into packets
	off  int // how far into it
	info burstInfo
	dst  netip.Addr // of the socket they came from
	turn int

	zoned    netip.Addr // the last link-local source, because making its zone is slow
	zonedRaw [16]byte
}

// burstInfo is common to the packets of one message.
type burstInfo struct {
	data         []byte
	segment      int
	index        uint16
	src          netip.Addr
	srcPort      uint16
	trafficClass uint8
	hopLimit     uint8
	flowLabel    uint32
	compared     bool // with what came from the ring
}

func (r *receiver) init(cfg Config, gro bool) {
	n := cfg.Batch
	r.size = maxPacket
	if gro {
		r.size = maxDatagram
	}
	r.messages = make([]message, n)
	r.vectors = make([]unix.Iovec, n)
	r.names = make([][28]byte, n)
	r.control = make([][receiveControl]byte, n)
	r.memory = make([]byte, n*r.size)
	for i := range r.messages {
		r.vectors[i].Base = &r.memory[i*r.size]
		r.vectors[i].SetLen(r.size)
		h := &r.messages[i].header
		h.Name, h.Iov, h.Control = &r.names[i][0], &r.vectors[i], &r.control[i][0]
		h.SetIovlen(1)
	}
	r.n, r.most = n, n
	r.reset()
	r.n = 0
}

// pace chooses how many messages to take next, from the number n and the lengths of these.
func (r *receiver) pace(n int) {
	if n > 1 || r.came {
		r.lone = 0
	} else {
		r.lone++
	}
	r.came = true
	total := 0
	for i := range r.messages[:n] {
		total += int(r.messages[i].length)
		if r.messages[i].length > packet.MostPayload {
			r.long++
		}
	}
	r.all += n
	r.most = len(r.messages)
	switch {
	case r.lone >= loneMessages:
		r.most = 1
	case total >= n*longMessage:
		r.most = min(r.most, longMost)
	case total > n*maxPacket:
		r.most = min(r.most, burstMost)
	}
}

// reset makes the full buffers of the filled messages available to the kernel again.
func (r *receiver) reset() {
	for i := range r.messages[:r.n] {
		h := &r.messages[i].header
		h.Namelen = uint32(len(r.names[i]))
		h.SetControllen(receiveControl)
		h.Flags = 0
	}
	r.n, r.next, r.off = 0, 0, 0
}

// Receive implements link.Link.
func (l *socketLink) Receive(in []frame.In) (int, error) {
	if l.closed {
		return 0, net.ErrClosed
	}
	n := 0
	if l.receive.next < l.receive.n {
		n = l.cut(in) // the rest of the previous batch; the buffers are still in use
	}
	if n == 0 && len(in) > 0 {
		l.receive.turn++
		if len(l.groups) > 0 && l.receive.turn%groupTurn == 0 {
			n = l.receiveGroups(in)
		}
		if n == 0 {
			n = l.receiveOwn(in)
		}
		if n == 0 && len(l.groups) > 0 {
			n = l.receiveGroups(in)
		}
	}
	return n, nil
}

// receiveFrom receives messages from a socket; if marked, only those of which there are marks.
func (l *socketLink) receiveFrom(fd int, dst netip.Addr, in []frame.In, marked bool) int {
	r := &l.receive
	for range maxErrors {
		r.reset()
		n, errno := 0, unix.Errno(0)
		if marked {
			n, errno = l.receiveMarks(r.messages[:r.most])
		} else {
			n, errno = receiveMessages(fd, r.messages[:r.most], 0)
		}
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			if errno != unix.EAGAIN && l.readErrors(fd) > 0 {
				continue // an ICMP error preceded the packets
			}
			r.came = false
			return 0
		}
		r.n, r.dst = n, dst
		r.pace(n)
		if got := l.cut(in); got > 0 {
			return got
		}
	}
	return 0
}

// cut hands out packets of the messages; it splits a coalesced burst at its segment size.
func (l *socketLink) cut(in []frame.In) int {
	r := &l.receive
	n := 0
	for r.next < r.n && n < len(in) {
		b := &r.info
		if r.off == 0 && !l.open(r.next) {
			r.next++
			continue
		}
		end := min(r.off+b.segment, len(b.data))
		p := &in[n]
		p.Data = b.data[r.off:end:end]
		p.Src, p.Dst, p.SrcPort = b.src, r.dst, b.srcPort
		p.TrafficClass, p.HopLimit, p.FlowLabel = b.trafficClass, b.hopLimit, b.flowLabel
		p.Segment, p.IDSeen, p.Raw, p.IDKnown, p.ID = b.index, false, false, false, 0
		l.stats.ReceivedBytes += uint64(end - r.off)
		if n++; b.compared && l.frames.twice(p, false) {
			n--
		}
		b.index++
		r.off = end
		if end == len(b.data) {
			r.next++
			r.off = 0
		}
	}
	l.stats.ReceivedPackets += uint64(n)
	return n
}

// open decodes the metadata of a message; it returns false if the message is to be dropped.
func (l *socketLink) open(i int) bool {
	r := &l.receive
	m := &r.messages[i]
	if m.header.Flags&unix.MSG_TRUNC != 0 {
		l.stats.ReceiveTruncated++
		return false
	}
	length := min(int(m.length), r.size)
	if length == 0 {
		return false
	}
	at := i * r.size
	r.info = burstInfo{data: r.memory[at : at+length : at+length], segment: length}
	// Of longer ones the ring only has marks.
	r.info.compared = l.frames.bulk.compare > 0 && length <= packet.MostPayload
	l.source(i)
	l.controls(r.control[i][:min(int(m.header.Controllen), receiveControl)])
	return true
}

// source decodes the sender's address.
func (l *socketLink) source(i int) {
	r := &l.receive
	if l.v4 {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&r.names[i]))
		r.info.src, r.info.srcPort = netip.AddrFrom4(sa.Addr), networkOrder(sa.Port)
		return
	}
	sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(&r.names[i]))
	r.info.srcPort = networkOrder(sa.Port)
	if sa.Scope_id == 0 {
		r.info.src = netip.AddrFrom16(sa.Addr)
		return
	}
	if sa.Addr != r.zonedRaw || !r.zoned.IsValid() {
		r.zonedRaw = sa.Addr
		r.zoned = netip.AddrFrom16(sa.Addr).WithZone(l.cfg.Addr.Zone())
	}
	r.info.src = r.zoned
}

func (l *socketLink) controls(b []byte) {
	r := &l.receive
	for {
		level, kind, data, rest := nextControl(b)
		if data == nil {
			return
		}
		v := controlInt(data)
		switch {
		case level == unix.SOL_UDP && kind == unix.UDP_GRO:
			if v > 0 && v < len(r.info.data) {
				r.info.segment = v
			}
		case level == unix.IPPROTO_IP && kind == unix.IP_TOS && len(data) > 0:
			r.info.trafficClass = data[0] // one byte
		case level == unix.IPPROTO_IP && kind == unix.IP_TTL, level == unix.IPPROTO_IPV6 && kind == unix.IPV6_HOPLIMIT:
			r.info.hopLimit = uint8(v)
		case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_TCLASS:
			r.info.trafficClass = uint8(v)
		case level == unix.IPPROTO_IPV6 && kind == ipv6FlowInfo && len(data) >= 4:
			r.info.flowLabel = uint32(data[1]&0xf)<<16 | uint32(data[2])<<8 | uint32(data[3])
		}
		b = rest
	}
}

// socketDrops returns how many packets a socket has dropped so far (SK_MEMINFO_DROPS).
func socketDrops(fd int) (uint32, bool) {
	const drops = 8
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	return info[drops], errno == 0 && size >= 4*(drops+1)
}
