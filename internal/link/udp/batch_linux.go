package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	receiveControl = 5 * controlSpace
	// Of messages with an average length of longMessage or more, one call takes longMost, into the same
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

// batch holds the messages that one recvmmsg fills, and the position up to which they were handed out.
type batch struct {
	messages []message
	vectors  []unix.Iovec
	names    [][28]byte
	control  [][receiveControl]byte
	memory   []byte // nil until something is to be received
	size     int    // bytes of memory per message
	most     int    // maximum number of messages to take
	lone     int    // consecutive messages that arrived alone
	came     bool   // the previous look found some

	n    int        // messages filled
	next int        // the one to be handed out next
	dst  netip.Addr // of the socket they came from

	zoned    netip.Addr // the last link-local source, because making its zone is slow
	zonedRaw [16]byte
}

func (b *batch) init(cfg Config, gro bool) {
	n := cfg.Batch
	b.size = maxPacket
	if gro {
		b.size = maxDatagram
	}
	b.messages = make([]message, n)
	b.vectors = make([]unix.Iovec, n)
	b.names = make([][28]byte, n)
	b.control = make([][receiveControl]byte, n)
	for i := range b.messages {
		h := &b.messages[i].header
		h.Name, h.Iov, h.Control = &b.names[i][0], &b.vectors[i], &b.control[i][0]
		h.SetIovlen(1)
	}
	b.n, b.most = n, n
	b.reset()
}

// provide makes the memory for messages, once. A megabyte and more: links are also opened to learn of the interface, and closed again
// before anything arrives.
func (b *batch) provide() {
	if b.memory != nil {
		return
	}
	b.memory = make([]byte, len(b.messages)*b.size)
	for i := range b.vectors {
		b.vectors[i].Base = &b.memory[i*b.size]
		b.vectors[i].SetLen(b.size)
	}
}

// pace chooses how many messages to take next, from the number n and the lengths of these.
func (b *batch) pace(n int) {
	if n > 1 || b.came {
		b.lone = 0
	} else {
		b.lone++
	}
	b.came = true
	total := 0
	for i := range b.messages[:n] {
		total += int(b.messages[i].length)
	}
	b.most = len(b.messages)
	switch {
	case b.lone >= loneMessages:
		b.most = 1
	case total >= n*longMessage:
		b.most = min(b.most, longMost)
	case total > n*maxPacket:
		b.most = min(b.most, burstMost)
	}
}

// reset makes the full buffers of the filled messages available to the kernel again.
func (b *batch) reset() {
	for i := range b.messages[:b.n] {
		h := &b.messages[i].header
		h.Namelen = uint32(len(b.names[i]))
		h.SetControllen(receiveControl)
		h.Flags = 0
	}
	b.n, b.next = 0, 0
}

// open decodes the next message into a burst; link is the address of the link. It returns false if the message is to be
// dropped.
func (b *batch) open(to *arrival, own netip.Addr) (ok, truncated bool) {
	i := b.next
	b.next++
	m := &b.messages[i]
	if m.header.Flags&unix.MSG_TRUNC != 0 {
		return false, true
	}
	at, length := i*b.size, min(int(m.length), b.size)
	*to = arrival{data: b.memory[at : at+length : at+length], segment: length, dst: b.dst}
	b.source(to, i, own)
	to.controls(b.control[i][:min(int(m.header.Controllen), receiveControl)])
	return length > 0, false
}

// source decodes the sender's address of message i.
func (b *batch) source(to *arrival, i int, own netip.Addr) {
	if own.Is4() {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&b.names[i]))
		to.src, to.srcPort = netip.AddrFrom4(sa.Addr), networkOrder(sa.Port)
		return
	}
	sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(&b.names[i]))
	to.srcPort = networkOrder(sa.Port)
	if sa.Scope_id == 0 {
		to.src = netip.AddrFrom16(sa.Addr)
		return
	}
	if sa.Addr != b.zonedRaw || !b.zoned.IsValid() {
		b.zonedRaw = sa.Addr
		b.zoned = netip.AddrFrom16(sa.Addr).WithZone(own.Zone())
	}
	to.src = b.zoned
}

// controls decodes the control messages of a message.
func (to *arrival) controls(b []byte) {
	for {
		level, kind, data, rest := nextControl(b)
		if data == nil {
			return
		}
		v := controlInt(data)
		switch {
		case level == unix.SOL_UDP && kind == unix.UDP_GRO:
			if v > 0 && v < len(to.data) {
				to.segment = v
			}
		case level == unix.IPPROTO_IP && kind == unix.IP_TOS && len(data) > 0:
			to.trafficClass = data[0] // one byte
		case level == unix.IPPROTO_IP && kind == unix.IP_TTL, level == unix.IPPROTO_IPV6 && kind == unix.IPV6_HOPLIMIT:
			to.hopLimit = uint8(v)
		case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_TCLASS:
			to.trafficClass = uint8(v)
		case level == unix.IPPROTO_IPV6 && kind == ipv6FlowInfo && len(data) >= 4:
			to.flowLabel = uint32(data[1]&0xf)<<16 | uint32(data[2])<<8 | uint32(data[3])
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
