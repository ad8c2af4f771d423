package mad

import "time"

// RMPPHeaderEnd is where the RMPP (reliable multi-packet protocol) header ends in a MAD.
const RMPPHeaderEnd = 36

// Types of RMPP packets (IBA 13.6.2.1).
const (
	RMPPData  = 1
	RMPPAck   = 2
	RMPPStop  = 3
	RMPPAbort = 4
)

// Flags of RMPP packets.
const (
	RMPPActive = 1
	RMPPFirst  = 2
	RMPPLast   = 4
)

// Statuses of RMPP (IBA 13.6.2.4).
const (
	RMPPStatusNormal         = 0
	RMPPStatusResources      = 1   // stop
	RMPPStatusTimeTooLong    = 118 // abort
	RMPPStatusInconsistent   = 119 // last and payload length
	RMPPStatusBadFirst       = 120
	RMPPStatusBadType        = 121
	RMPPStatusWindowTooSmall = 122
	RMPPStatusSegmentTooBig  = 123
	RMPPStatusIllegalStatus  = 124
	RMPPStatusVersion        = 125
	RMPPStatusTooManyRetries = 126
	RMPPStatusUnspecified    = 127
	rmppVersion              = 1
	rmppNoRespTime           = 31
	rmppSegmentData          = SADataLen
	rmppMaxData              = 1 << 28 // a receiver treats more as an error
	rmppWindow               = 64
	rmppTimeout              = 500 * time.Millisecond
	rmppRetries              = 4
)

// RMPP is the header of the reliable multi-packet protocol (IBA 13.6.2).
type RMPP struct {
	Version  uint8
	Type     uint8
	RespTime uint8 // 5 bits; 31: not given
	Flags    uint8 // 3 bits
	Status   uint8
	Data1    uint32 // segment number
	Data2    uint32 // of data its payload length; of an acknowledgement the last segment of the new window
}

func (r *RMPP) put(p []byte) {
	p[0], p[1], p[2], p[3] = r.Version, r.Type, r.RespTime<<3|r.Flags&7, r.Status
	put32(p[4:], r.Data1)
	put32(p[8:], r.Data2)
}

func getRMPP(p []byte) RMPP {
	return RMPP{Version: p[0], Type: p[1], RespTime: p[2] >> 3, Flags: p[2] & 7, Status: p[3], Data1: get32(p[4:]), Data2: get32(p[8:])}
}

// Active reports whether a MAD of subnet administration belongs to a multi-packet transfer.
func (s *SA) Active() bool { return s.RMPP.Flags&RMPPActive != 0 }

// RMPPSender sends the records of a response, or of a request with many, in segments. The caller drives
// it: it passes in the time, as a duration since any origin, and takes out segments.
type RMPPSender struct {
	head     SA // of every segment
	data     []byte
	segments uint32
	acked    uint32 // segments that the receiver has acknowledged
	window   uint32 // last segment that may be sent
	next     uint32 // next to send
	deadline time.Duration
	tries    int
	done     bool
	failed   bool
}

// NewRMPPSender starts a transfer of data. head is the header of all segments, with RMPP filled in.
func NewRMPPSender(head SA, data []byte) *RMPPSender {
	n := max(1, (len(data)+rmppSegmentData-1)/rmppSegmentData)
	return &RMPPSender{head: head, data: data, segments: uint32(n), window: 1, next: 1}
}

// segment returns segment n.
func (s *RMPPSender) segment(n uint32) SA {
	m := s.head
	m.RMPP = RMPP{Version: rmppVersion, Type: RMPPData, RespTime: rmppNoRespTime, Flags: RMPPActive, Data1: n}
	part := s.data[int(n-1)*rmppSegmentData:]
	if n == 1 {
		m.RMPP.Flags |= RMPPFirst
		m.RMPP.Data2 = s.segments*saRepeated + uint32(len(s.data))
	}
	if n == s.segments {
		m.RMPP.Flags |= RMPPLast
		m.RMPP.Data2 = saRepeated + uint32(len(part))
	}
	if s.segments == 1 {
		m.RMPP.Data2 = saRepeated + uint32(len(s.data))
	}
	m.Data = [SADataLen]byte{}
	copy(m.Data[:], part)
	return m
}

// Next returns the segment to send now; false: there is none at the moment.
func (s *RMPPSender) Next(now time.Duration) (SA, bool) {
	if s.done || s.next > s.window || s.next > s.segments {
		return SA{}, false
	}
	m := s.segment(s.next)
	s.next++
	s.deadline = now + rmppTimeout
	return m, true
}

// Take handles an ACK, STOP or ABORT from the receiver.
func (s *RMPPSender) Take(m *SA, now time.Duration) {
	switch m.RMPP.Type {
	case RMPPAck:
		n := m.RMPP.Data1
		if n > s.segments || n < s.acked || m.RMPP.Data2 < n {
			return // late, or of another transfer
		}
		if n > s.acked {
			s.tries = 0
		}
		s.acked, s.window = n, m.RMPP.Data2
		s.next = max(s.next, n+1)
		s.deadline = now + rmppTimeout
		s.done = n == s.segments
	case RMPPStop, RMPPAbort:
		s.done, s.failed = true, true
	}
}

// Advance, when it is due, retransmits from the first unacknowledged segment on, and finally gives up.
func (s *RMPPSender) Advance(now time.Duration) {
	if s.done || s.deadline == 0 || now < s.deadline {
		return
	}
	if s.tries++; s.tries > rmppRetries {
		s.done, s.failed = true, true
		return
	}
	s.next, s.deadline = s.acked+1, now+rmppTimeout
}

// Deadline returns when Advance must be called.
func (s *RMPPSender) Deadline() time.Duration { return s.deadline }

// Done reports whether the transfer is over, and whether it failed.
func (s *RMPPSender) Done() (over, failed bool) { return s.done, s.failed }

// RMPPReceiver reassembles the segments of a transfer.
type RMPPReceiver struct {
	first    SA
	data     []byte
	expected uint32
	last     uint32
}

// RMPPError is a transfer that was aborted. Status is that of RMPP.
type RMPPError struct{ Status uint8 }

// Error implements error.
func (e *RMPPError) Error() string {
	if e.Status == RMPPStatusResources {
		return "mad: the multi-packet transfer was stopped: the other end has no resources"
	}
	return "mad: the multi-packet transfer was aborted, RMPP status " + itoa(e.Status)
}

func itoa(v uint8) string {
	var b [3]byte
	i := len(b)
	for {
		i--
		b[i] = '0' + v%10
		if v /= 10; v == 0 {
			return string(b[i:])
		}
	}
}

// Take handles a segment. If answered, answer must be sent back. done: the transfer is complete. The error
// is an *RMPPError; answer is then the ABORT, unless the sender itself has aborted.
func (r *RMPPReceiver) Take(m *SA) (answer SA, answered, done bool, err error) {
	switch {
	case m.RMPP.Type == RMPPStop || m.RMPP.Type == RMPPAbort:
		return SA{}, false, false, &RMPPError{m.RMPP.Status}
	case m.RMPP.Version != rmppVersion:
		return r.abort(m, RMPPStatusVersion)
	case m.RMPP.Type != RMPPData:
		return r.abort(m, RMPPStatusBadType)
	}
	n := m.RMPP.Data1
	if r.expected == 0 {
		r.expected = 1
	}
	first, last := m.RMPP.Flags&RMPPFirst != 0, m.RMPP.Flags&RMPPLast != 0
	if n == 0 || first != (n == 1) {
		return r.abort(m, RMPPStatusBadFirst)
	}
	if n != r.expected || r.last != 0 {
		return r.ack(m), true, r.last != 0, nil // a duplicate, or out of order: say what has arrived
	}
	length := uint32(rmppSegmentData)
	if last {
		if m.RMPP.Data2 < saRepeated || m.RMPP.Data2 > saRepeated+rmppSegmentData {
			return r.abort(m, RMPPStatusInconsistent)
		}
		length = m.RMPP.Data2 - saRepeated
		r.last = n
	}
	if len(r.data) > rmppMaxData {
		return r.abort(m, RMPPStatusUnspecified)
	}
	if first {
		r.first = *m
	}
	r.data = append(r.data, m.Data[:length]...)
	r.expected++
	// One acknowledgement for each half window, and for the first and last segment.
	if last || first || n%(rmppWindow/2) == 0 {
		return r.ack(m), true, last, nil
	}
	return SA{}, false, false, nil
}

// ack acknowledges all segments received in order.
func (r *RMPPReceiver) ack(m *SA) SA {
	a := *m
	a.Data = [SADataLen]byte{}
	a.Method ^= 0x80 // the other direction (IBA 13.6.2.2)
	a.RMPP = RMPP{Version: rmppVersion, Type: RMPPAck, RespTime: rmppNoRespTime, Flags: RMPPActive, Data1: r.expected - 1,
		Data2: r.expected - 1 + rmppWindow}
	return a
}

func (r *RMPPReceiver) abort(m *SA, status uint8) (SA, bool, bool, error) {
	a := *m
	a.Data = [SADataLen]byte{}
	a.Method ^= 0x80
	a.RMPP = RMPP{Version: rmppVersion, Type: RMPPAbort, RespTime: rmppNoRespTime, Flags: RMPPActive, Status: status}
	return a, true, false, &RMPPError{status}
}

// Result returns the header of the first segment and the data of all.
func (r *RMPPReceiver) Result() (SA, []byte) { return r.first, r.data }
