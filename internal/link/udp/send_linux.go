package udp

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
)

const (
	sendMessagesMax = 64
	sendVectors     = 1024
	sendControl     = 3 * controlSpace // segment size, traffic class, hop limit
	// A message may have at most UIO_MAXIOV vectors; a burst needs three per packet.
	burstVectors = 3 * maxSegments
	// Packets with a payload of up to shortPayload are copied together, which costs less than the kernel's
	// walk over their vectors; computing the ICRC has just loaded the payload. shortSpace holds a batch of
	// them.
	shortPayload = 1024
	shortSpace   = 160 << 10
)

// sender holds what sendmmsg reads: one message per burst. All go to one socket.
type sender struct {
	messages [sendMessagesMax]message
	frames   [sendMessagesMax]int    // frames of each message
	staged   [sendMessagesMax][]byte // of each message that is spliced
	control  [sendMessagesMax][sendControl]byte
	vectors  [sendVectors]unix.Iovec
	short    [shortSpace]byte // short packets, back to back
	n        int              // messages in use
	used     int              // vectors in use
	copied   int              // bytes of short in use
	packed   int              // vectors in use when the last vector was one into short
	socket   uint16
	heads    [sendMessagesMax][packet.BurstHead]byte
	head     int // length of what precedes a burst that leaves as a frame; 0: they are no frames
}

func (s *sender) init() {
	for i := range s.messages {
		s.messages[i].header.Control = &s.control[i][0]
	}
}

// Send implements link.Link.
func (l *socketLink) Send(frames []frame.Out) (int, error) {
	if l.closed {
		return 0, net.ErrClosed
	}
	taken := 0
	for taken < len(frames) {
		rest := frames[taken:]
		if l.pool.path(rest[0].Route) == nil && l.prepare(rest[0].Route) != nil {
			l.refuse(&rest[0], link.HostUnreachable)
			taken++
			continue
		}
		if l.sendFrame(rest) {
			taken++
			continue
		}
		l.build(rest)
		n, full := l.flush(rest)
		taken += n
		l.send.clear()
		if full {
			l.stats.SendBlocked++
			break
		}
	}
	return taken, nil
}

// build makes messages of the first frames, as long as one socket sends them, or the one for frames.
func (l *socketLink) build(frames []frame.Out) {
	s := &l.send
	s.n, s.used, s.copied, s.packed, s.socket, s.head = 0, 0, 0, 0, l.pool.path(frames[0].Route).socket, 0
	for i := 0; i < len(frames); {
		w := l.pool.path(frames[i].Route)
		if s.n == len(s.messages) || s.used+burstVectors > len(s.vectors) || w == nil || w.socket != s.socket {
			return
		}
		if frames[i].Segment != 0 { // its burst was split
			link.Single(&frames[i], l.caps.SegmentIDs)
		}
		n := 1
		if !w.single && l.gso {
			n = burst(frames[i:])
		}
		head := l.beginFrame(s.heads[s.n][:], w, frames[i:i+n])
		if s.n == 0 {
			s.head = len(head)
		} else if len(head) != s.head {
			return
		}
		s.add(w, frames[i:i+n], l.v4, head)
		i += n
	}
}

// burst returns how many of the first frames form one burst that the kernel can segment: of equal length
// except the last, which may be shorter.
func burst(frames []frame.Out) int {
	route, size := frames[0].Route, frames[0].Len()
	total, n := size, 1
	for n < len(frames) && n < maxSegments {
		f := &frames[n]
		length := f.Len()
		if int(f.Segment) != n || f.Route != route || length > size || total+length > maxBurst {
			break
		}
		total += length
		n++
		if length < size {
			break
		}
	}
	return n
}

// add appends a message of one burst, which goes by a path. head precedes it if it leaves as a frame.
func (s *sender) add(w *path, frames []frame.Out, v4 bool, head []byte) {
	m := &s.messages[s.n]
	s.frames[s.n] = len(frames)
	first := s.used
	if len(head) > 0 {
		s.vectors[first].Base = &head[0]
		s.vectors[first].SetLen(len(head))
		s.used++
	}
	if s.staged[s.n] = staged(frames); s.staged[s.n] == nil {
		for i := range frames {
			if !s.pack(&frames[i], i > 0) {
				s.vector(&frames[i])
			}
		}
	}
	h := &m.header
	h.Iov = &s.vectors[first]
	h.SetIovlen(s.used - first)
	if len(head) > 0 {
		h.Name, h.Namelen = nil, 0
		h.SetControllen(0)
	} else {
		h.Name, h.Namelen = &w.sockaddr[0], uint32(w.length)
		h.SetControllen(s.options(frames[0].Route, frames, v4))
	}
	s.n++
}

// pack copies a short packet behind the one before, and returns false for others. joined means that both
// belong to one message: they share a vector then.
func (s *sender) pack(o *frame.Out, joined bool) bool {
	head := o.Head[o.HeadStart:o.HeadEnd]
	n := len(head) + len(o.Payload) + int(o.TailLen)
	if len(o.Payload) > shortPayload || n > len(s.short)-s.copied {
		return false
	}
	b := s.short[s.copied : s.copied+n]
	at := copy(b, head)
	at += copy(b[at:], o.Payload)
	copy(b[at:], o.Tail[:o.TailLen])
	s.copied += n
	if joined && s.packed == s.used {
		v := &s.vectors[s.used-1]
		v.SetLen(int(v.Len) + n)
		return true
	}
	v := &s.vectors[s.used]
	v.Base = &b[0]
	v.SetLen(n)
	s.used++
	s.packed = s.used
	return true
}

// vector describes the three parts of a packet. Without a payload, the pad and ICRC are copied behind the
// headers if there is room, which saves a part.
func (s *sender) vector(o *frame.Out) {
	v := &s.vectors[s.used]
	v.Base = &o.Head[o.HeadStart]
	if len(o.Payload) == 0 && int(o.HeadEnd)+int(o.TailLen) <= len(o.Head) {
		copy(o.Head[o.HeadEnd:], o.Tail[:o.TailLen])
		v.SetLen(int(o.HeadEnd-o.HeadStart) + int(o.TailLen))
		s.used++
		return
	}
	v.SetLen(int(o.HeadEnd - o.HeadStart))
	v = &s.vectors[s.used+1]
	v.Base = unsafe.SliceData(o.Payload)
	v.SetLen(len(o.Payload))
	v = &s.vectors[s.used+2]
	v.Base = &o.Tail[0]
	v.SetLen(int(o.TailLen))
	s.used += 3
}

// options writes the control messages of a burst and returns their length.
func (s *sender) options(r *frame.Route, frames []frame.Out, v4 bool) int {
	b := s.control[s.n][:]
	n := 0
	if len(frames) > 1 {
		n = putControl(b, unix.SOL_UDP, unix.UDP_SEGMENT, uint32(frames[0].Len()), 2)
	}
	if r.TrafficClass != 0 {
		if v4 {
			n += putControl(b[n:], unix.IPPROTO_IP, unix.IP_TOS, uint32(r.TrafficClass), 4)
		} else {
			n += putControl(b[n:], unix.IPPROTO_IPV6, unix.IPV6_TCLASS, uint32(r.TrafficClass), 4)
		}
	}
	if frame.Hops(r.HopLimit) != frame.DefaultHopLimit {
		if v4 {
			n += putControl(b[n:], unix.IPPROTO_IP, unix.IP_TTL, uint32(r.HopLimit), 4)
		} else {
			n += putControl(b[n:], unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT, uint32(r.HopLimit), 4)
		}
	}
	return n
}

// clear drops references to the frames, so that their memory can be freed.
func (s *sender) clear() {
	clear(s.vectors[:s.used])
	for i := range s.messages[:s.n] {
		s.messages[i].header.Name = nil
		s.messages[i].header.Iov = nil
		s.staged[i] = nil
	}
	s.n, s.used = 0, 0
}

// flush sends the messages and returns how many frames were accepted; full means that the socket accepted
// no more.
func (l *socketLink) flush(frames []frame.Out) (taken int, full bool) {
	s := &l.send
	if s.head > 0 {
		return l.flushFrames()
	}
	fd := l.socketFD(s.socket)
	for done, retries := 0, 0; done < s.n; {
		n, errno, again := l.sendNext(fd, done)
		if errno == 0 {
			taken = l.sent(done, n, taken)
			done += n
			continue
		}
		here := frames[taken : taken+s.frames[done]]
		switch {
		case again:
			l.stage.refuse(frames[taken:])
			return taken, false
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return taken, true
		case pending(errno) && retries < maxErrors && l.readErrors(fd) > 0:
			// The error belonged to an earlier packet: the
			// kernel reports it once, instead of sending.
			retries++
			continue
		case (errno == unix.EINVAL || errno == unix.EIO || errno == unix.EMSGSIZE) && len(here) > 1:
			// The device or this kernel refuses the burst. From now on the
			// route's packets are sent singly, including these: build again.
			l.sendSingly(here[0].Route)
			return taken, false
		}
		for i := range here {
			l.refuse(&here[i], refusal(errno))
		}
		taken += len(here)
		done++
	}
	return taken, false
}

// flushFrames sends the messages as frames and returns how many packets were accepted. What the system does not take is
// sent through the socket next, which also finds out why.
func (l *socketLink) flushFrames() (taken int, full bool) {
	s, port := &l.send, l.frames.port
	for done := 0; done < s.n; {
		n, errno := sendMessages(port.Burst(), s.messages[done:s.n])
		if errno != 0 {
			l.frames.refused = true
			break
		}
		taken = l.sent(done, n, taken)
		done += n
	}
	port.BurstSent(taken)
	return taken, false
}

// sendNext sends messages from index done on, and returns how many were sent, at least one if there is no
// error. again means that the first must be rebuilt, to be sent another way.
func (l *socketLink) sendNext(fd, done int) (n int, errno unix.Errno, again bool) {
	s := &l.send
	if s.staged[done] != nil {
		if errno, again = l.splice(fd, &s.messages[done], s.staged[done]); errno == 0 {
			l.stats.SentStaged += uint64(s.frames[done])
			n = 1
		}
		return n, errno, again
	}
	end := done + 1
	for end < s.n && s.staged[end] == nil {
		end++
	}
	n, errno = sendMessages(fd, s.messages[done:end])
	return n, errno, false
}

// sent counts n messages from the first and returns taken plus their number of frames.
func (l *socketLink) sent(first, n, taken int) int {
	for i := first; i < first+n; i++ {
		l.stats.SentPackets += uint64(l.send.frames[i])
		l.stats.SentBytes += uint64(int(l.send.messages[i].length) - l.send.head)
		taken += l.send.frames[i]
	}
	l.stats.SentBursts += uint64(n)
	return taken
}

// sendSingly records that packets to a destination cannot be sent in bursts.
func (l *socketLink) sendSingly(r *frame.Route) {
	if w := l.pool.path(r); w != nil {
		w.single = true
	}
	if len(l.single) < 1024 {
		l.single[r.Dst] = true
	}
}

// pending reports whether an error may be left on the socket by the ICMP answer to an earlier packet.
func pending(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENONET,
		unix.EOPNOTSUPP, unix.ENOPROTOOPT, unix.EPROTO, unix.EACCES, unix.EMSGSIZE:
		return true
	}
	return false
}

// refusal returns what the system's refusal of a packet says about its destination; 0 if nothing (a queue
// was full).
func refusal(errno unix.Errno) link.UnreachableKind {
	switch errno {
	case unix.ENETUNREACH, unix.ENETDOWN, unix.EADDRNOTAVAIL, unix.ENONET, unix.ENODEV:
		return link.NetworkUnreachable
	case unix.EMSGSIZE:
		return link.PacketTooBig
	case unix.ENOBUFS, unix.ENOMEM:
		return 0
	case unix.ECONNREFUSED:
		return link.PortUnreachable
	}
	return link.HostUnreachable
}

// refuse counts and reports a packet that the system refused.
func (l *socketLink) refuse(o *frame.Out, kind link.UnreachableKind) {
	l.stats.SendErrors++
	if kind == 0 {
		return
	}
	u := link.Unreachable{Dst: o.Route.Dst, Kind: kind}
	u.Quote(o.Head[o.HeadStart:o.HeadEnd], o.Payload)
	if kind == link.PacketTooBig {
		u.MTU = l.caps.MTU
	}
	l.report(u)
}
