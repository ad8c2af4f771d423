package agent

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	rmppVersion = 1
	noRespTime  = 31 << 3 // the time to respond is not given
	// payload is the payload length that a packet gives for a full segment: everything after the RMPP
	// header (IBA 13.6.2.3).
	payload = mad.Len - mad.RMPPHeaderEnd
)

// begin sends the first segment of a transfer. The others wait for the window that the other end grants.
func (s *send) begin(now clock.Time) {
	s.transfer = true
	own := mad.Len - headerLen(s.key.class)
	rest := max(len(s.data)-headerLen(s.key.class), 0)
	s.segments = uint32(max(1, (rest+own-1)/own))
	s.window = 1
	s.some(now)
}

// some sends as many segments as the window permits.
func (s *send) some(now clock.Time) {
	wait := s.timeout
	if wait == 0 || wait > acknowledgeIn {
		wait = acknowledgeIn
	}
	s.agent.port.due.Set(&s.timer, now.Add(wait))
	for s.next < s.segments && s.next < s.window {
		s.next++
		s.part(s.next)
	}
}

// part sends one segment, which begins with the headers common to all.
func (s *send) part(n uint32) {
	k := s.packet()
	m, head := &k.MAD, headerLen(s.key.class)
	own := mad.Len - head
	copy(m[:], s.data[:min(head, len(s.data))])
	at := head + int(n-1)*own
	end := min(at+own, len(s.data))
	if at < end {
		copy(m[head:], s.data[at:end])
	}
	pad := head + int(s.segments)*own - max(len(s.data), head)
	flags, length := byte(mad.RMPPActive), 0
	if n == 1 {
		flags |= mad.RMPPFirst
		length = int(s.segments)*payload - pad
	}
	if n == s.segments {
		flags |= mad.RMPPLast
		length = payload - pad
	}
	m[atRMPP], m[atRMPP+1], m[atFlags], m[atStatus] = rmppVersion, mad.RMPPData, m[atFlags]&^7|flags, 0
	putBE32(m[atData1:], n)
	putBE32(m[atData2:], uint32(length))
}

// control handles an ACK, STOP or ABORT for a transfer from the agent.
func (a *agent) control(now clock.Time, k *Packet) {
	m := &k.MAD
	// It travels against the transfer, so its direction bit is the opposite of the transfer's.
	about := sendKey{uint64(be32(m[atTID:]))<<32 | uint64(be32(m[atTID+4:])), m[atClass], m[atMethod]&responding == 0}
	s := a.sends[about]
	if s == nil || !s.transfer || s.acked == s.segments {
		return
	}
	if m[atRMPP+1] != mad.RMPPAck || m[atStatus] != 0 {
		s.brokenOff()
		return
	}
	n, window := be32(m[atData1:]), be32(m[atData2:])
	switch {
	case window < n:
		a.abort(k, mad.RMPPStatusWindowTooSmall)
		s.brokenOff()
		return
	case n > s.segments || n > s.next:
		a.abort(k, mad.RMPPStatusSegmentTooBig)
		s.brokenOff()
		return
	case n < s.acked || window < s.window:
		return // an old one
	}
	if n > s.acked {
		s.acked, s.left = n, int(min(s.header.Retries, 1<<16))
	}
	s.window = window
	s.next = max(s.next, n)
	if s.acked < s.segments {
		s.some(now)
		return
	}
	if s.timeout == 0 {
		a.end(s)
		return
	}
	a.port.due.Set(&s.timer, now.Add(s.timeout))
	if !about.response {
		a.turn(k)
	}
}

// brokenOff ends a transfer that the other end does not want, or that went wrong.
func (s *send) brokenOff() {
	if s.timeout == 0 {
		s.agent.end(s)
		return
	}
	s.fail() // or the program would wait forever
}

// turn lets the other end begin with the response to a request of several packets (IBA 13.6.6.3).
func (a *agent) turn(k *Packet) {
	r := a.back(k, mad.RMPPAck, 0)
	putBE32(r.MAD[atData1:], 0)
	putBE32(r.MAD[atData2:], 1)
}

// abort aborts a transfer.
func (a *agent) abort(k *Packet, status uint8) { a.back(k, mad.RMPPAbort, status) }

// back returns an RMPP control packet to the sender of k.
func (a *agent) back(k *Packet, kind, status uint8) *Packet {
	from := *k // the queue may be where k is
	r := a.port.transmit()
	r.DLID, r.DQP, r.SQP, r.SL, r.PKeyIndex, r.HasGRH, r.GRH = from.SLID, from.SQP, a.qpn, from.SL, from.PKeyIndex, from.HasGRH, from.GRH
	copy(r.MAD[:], from.MAD[:headerLen(from.MAD[atClass])])
	m := &r.MAD
	m[atMethod] ^= responding
	m[atRMPP], m[atRMPP+1], m[atFlags], m[atStatus] = rmppVersion, kind, noRespTime|mad.RMPPActive, status
	putBE32(m[atData1:], 0)
	putBE32(m[atData2:], 0)
	return r
}
