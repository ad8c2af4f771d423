package agent

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// sendKey matches a response or an acknowledgement to its MAD. A request and a response with the same
// number have different keys.
type sendKey struct {
	tid      uint64
	class    uint8
	response bool
}

// send is a MAD in progress: it waits for a response, or is a transfer.
type send struct {
	key      sendKey
	agent    *agent
	header   Header
	data     []byte // what the program wrote, with the transaction ID to send
	timer    timer
	timeout  time.Duration
	left     int // tries left
	transfer bool
	segments uint32
	acked    uint32
	window   uint32 // last segment that may be sent
	next     uint32 // last one sent
}

// acknowledgeIn is how long a segment waits for its acknowledgement unless the program's timeout is
// shorter.
const acknowledgeIn = 2 * time.Second

// sendError says why a MAD cannot be sent.
type sendError struct {
	Field   string
	Value   uint64
	Allowed string
}

// Error implements error.
func (e *sendError) Error() string {
	return fmt.Sprintf("agent: %s is %#x; allowed: %s", e.Field, e.Value, e.Allowed)
}

// Send sends what a program wrote; it does not keep m.Data. If it returns an error, a *sendError, nothing
// was sent.
func (f *File) Send(now clock.Time, m *Message) error {
	if m.Agent >= MaxAgents || f.agents[m.Agent] == nil {
		return &sendError{"agent", uint64(m.Agent), "one that the file has registered"}
	}
	a := f.agents[m.Agent]
	if len(m.Data) < mad.RMPPHeaderEnd || len(m.Data) > MaxLength {
		return &sendError{"length", uint64(len(m.Data)), "36 to 67108864"}
	}
	transfer := a.rmpp && active(m.Data)
	if len(m.Data) > mad.Len && !transfer {
		return &sendError{"length", uint64(len(m.Data)), "up to 256 where RMPP is not active"}
	}
	answers := response(m.Data)
	if !answers {
		putBE32(m.Data[atTID:], a.high)
	}
	if !transfer && m.Timeout == 0 {
		copy(a.packet(&m.Header, m.Data[atClass]).MAD[:], m.Data)
		return nil
	}
	s := &send{agent: a, header: m.Header, left: int(min(m.Retries, 1<<16)),
		timeout: time.Duration(min(m.Timeout, 1<<30)) * time.Millisecond}
	s.key = sendKey{uint64(be32(m.Data[atTID:]))<<32 | uint64(be32(m.Data[atTID+4:])), m.Data[atClass], answers}
	if a.sends[s.key] != nil {
		return &sendError{"transaction ID", s.key.tid, "one that is not under way"}
	}
	if f.sends >= maxSends {
		return &sendError{"number of MADs under way", maxSends + 1, "up to 8192"}
	}
	size := max(len(m.Data), mad.Len)
	if a.port.ids.sending+size > maxSending {
		return &sendError{"length", uint64(len(m.Data)), "less, while so much is under way"}
	}
	a.port.ids.sending += size
	s.data = append(make([]byte, 0, size), m.Data...)
	s.timer.Of = s.expired
	a.sends[s.key] = s
	f.sends++
	if transfer {
		s.begin(now)
		return nil
	}
	a.port.due.Set(&s.timer, now.Add(s.timeout))
	s.whole()
	return nil
}

// packet returns a packet, as yet without its MAD, to the destination in the header.
func (a *agent) packet(h *Header, class uint8) *Packet {
	k := a.port.transmit()
	k.DLID, k.DQP, k.SQP, k.SL, k.PKeyIndex = h.LID, h.QPN, a.qpn, h.SL, h.PKeyIndex
	k.HasGRH, k.GRH, k.PathBits = h.HasGRH, h.GRH, h.PathBits
	if class == mad.ClassSubnetDir {
		k.SLID = ib.LIDPermissive
	}
	return k
}

// whole sends a MAD unsegmented.
func (s *send) whole() { copy(s.packet().MAD[:], s.data) }

func (s *send) packet() *Packet { return s.agent.packet(&s.header, s.key.class) }

// end forgets a completed MAD.
func (a *agent) end(s *send) {
	if a.sends[s.key] != s {
		return
	}
	a.port.due.Drop(&s.timer)
	delete(a.sends, s.key)
	a.file.sends--
	a.port.ids.sending -= cap(s.data)
}

// expired retransmits, or gives up and returns the MAD to the program.
func (s *send) expired(now clock.Time) {
	if s.left == 0 {
		s.fail()
		return
	}
	s.left--
	switch {
	case !s.transfer:
		s.agent.port.due.Set(&s.timer, now.Add(s.timeout))
		s.whole()
	case s.acked == s.segments: // all of it has arrived, only the response is missing
		s.agent.port.due.Set(&s.timer, now.Add(s.timeout))
	default:
		s.next = s.acked
		s.some(now)
	}
}

// fail tells the program that sending failed. Like the kernel, it returns the MAD's header.
func (s *send) fail() {
	a := s.agent
	a.end(s)
	m := &a.port.told
	*m = Message{s.header, s.data[:mad.HeaderLen]}
	m.Status, m.Length = timedOut, HeaderLen+mad.HeaderLen
	a.file.deliver(m)
}

// request returns the request that a response answers, or nil.
func (a *agent) request(k *Packet) *send {
	m := &k.MAD
	s := a.sends[sendKey{uint64(be32(m[atTID:]))<<32 | uint64(be32(m[atTID+4:])), m[atClass], false}]
	if s == nil || s.transfer && s.acked != s.segments {
		return nil
	}
	return s
}

// deliver passes a MAD that was received to the program.
func (a *agent) deliver(k *Packet, data []byte) {
	m := &a.port.told
	*m = Message{Header: Header{Agent: a.id, Length: uint32(HeaderLen + len(data)), QPN: k.SQP, LID: k.SLID, SL: k.SL, HasGRH: k.HasGRH,
		GRH: k.GRH, PKeyIndex: k.PKeyIndex}, Data: data}
	a.file.deliver(m)
}
