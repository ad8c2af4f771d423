package ibsim

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// A datagram with a MAD. LIDs occupy the first 16 bits of their fields.
const (
	dataLen  = 288
	atDLID   = 0
	atSLID   = 4
	atDQP    = 8
	atSQP    = 12
	atFailed = 16
	atMADLen = 24
	atMAD    = 32
	timedOut = 110 // ETIMEDOUT
)

// Offsets of a MAD's transaction ID and method in a datagram, and of the RMPP flags.
const (
	atMethod      = atMAD + 3
	atTransaction = atMAD + 8
	rmppFlags     = 26   // in a MAD
	answering     = 0x80 // bit of the method
	rmppActive    = 1
)

// carry sends a MAD of an attached client through the fabric. The caller holds the server's lock.
func (s *Server) carry(c *client, b *[dataLen]byte) {
	p := &s.packet
	p.DLID, p.SLID = ib.LID(binary.BigEndian.Uint16(b[atDLID:])), ib.LID(binary.BigEndian.Uint16(b[atSLID:]))
	p.DQP, p.SQP, p.SL = ib.QPN(binary.BigEndian.Uint32(b[atDQP:])), ib.QPN(binary.BigEndian.Uint32(b[atSQP:])), 0
	p.PKey, p.PKeyIndex = 0, 0
	copy(p.MAD[:], b[atMAD:])
	now := s.now()
	switch o := s.fabric.Send(now, c.at, p); o.Result {
	case fabric.Answered:
		s.deliver(c)
	case fabric.Delivered:
		s.forward(now, c, o.At, b)
	default:
		s.unanswered(c, b)
	}
}

// expects reports whether the sender of the method waits for an answer.
func expects(method byte) bool {
	return method&answering == 0 && method != mad.MethodSend && method != mad.MethodTrap && method != mad.MethodTrapRepress
}

// unanswered returns a datagram to a sender that waits for an answer that will not come.
func (s *Server) unanswered(c *client, b *[dataLen]byte) {
	if !expects(b[atMethod]) {
		return
	}
	binary.BigEndian.PutUint32(b[atFailed:], timedOut)
	s.put(c, b)
}

// Take implements live.Taker: it takes what others than clients sent to a port, for the requesters there,
// or for the subnet manager.
func (s *Server) Take(now clock.Time, at fabric.Place, p *fabric.Packet) bool {
	method, tid := p.MAD[3], binary.BigEndian.Uint64(p.MAD[8:])
	if method&answering != 0 {
		if x := s.asked.of(nil, tid); x != nil && x.from.at == at {
			binary.BigEndian.PutUint64(p.MAD[8:], x.tid)
			s.put(x.from, s.datagram(p))
			s.goOn(now, x, p)
			return true
		}
	}
	m := s.manager(at)
	if m == nil || !live.ForManager(p) {
		return false
	}
	s.put(m, s.datagram(p))
	return true
}

// goOn keeps an exchange that is to continue, and ends others.
func (s *Server) goOn(now clock.Time, x *exchange, p *fabric.Packet) {
	if p.MAD[rmppFlags]&rmppActive != 0 && p.MAD[1] == mad.ClassSubnetAdm {
		x.until, x.begun = now.Add(patience), true
		return
	}
	s.asked.end(x)
}

// deliver sends s.packet to a client.
func (s *Server) deliver(c *client) { s.put(c, s.datagram(&s.packet)) }

// datagram returns a packet in the clients' format, valid until the next call.
func (s *Server) datagram(p *fabric.Packet) *[dataLen]byte {
	b := &s.out
	clear(b[:atMAD])
	binary.BigEndian.PutUint16(b[atDLID:], uint16(p.DLID))
	binary.BigEndian.PutUint16(b[atSLID:], uint16(p.SLID))
	binary.BigEndian.PutUint32(b[atDQP:], uint32(p.DQP))
	binary.BigEndian.PutUint32(b[atSQP:], uint32(p.SQP))
	binary.BigEndian.PutUint64(b[atMADLen:], mad.Len)
	copy(b[atMAD:], p.MAD[:])
	withoutTail(b[atMAD : atMAD+mad.Len])
	return b
}

// withoutTail hides from clients that performance agents have counters in the last 32 bytes of a MAD,
// because ibsim's own library passes on whatever was in its memory there.
func withoutTail(b []byte) {
	if b[1] != mad.ClassPerf || b[3] != mad.MethodGetResp || binary.BigEndian.Uint16(b[16:]) != mad.AttrClassPortInfo {
		return
	}
	if i, err := mad.ParseClassPortInfo(b[mad.PMADataOffset:]); err == nil {
		i.CapabilityMask2 &^= mad.Cap2PMAdditionalExtended
		i.Append(b[mad.PMADataOffset:mad.PMADataOffset])
	}
}

// forward passes what arrived at a place to the program there: a request to the subnet manager, since it
// is unknown what others accept, and an answer to the requester.
func (s *Server) forward(now clock.Time, from *client, at fabric.Place, b *[dataLen]byte) {
	transaction := s.packet.MAD[8:16]
	tid := binary.BigEndian.Uint64(transaction)
	if !expects(b[atMethod]) {
		if x := s.asked.of(from, tid); x != nil && b[atMethod]&answering != 0 {
			s.answered(now, x, from, at, b)
		} else if m := s.manager(at); m != nil && b[atMethod]&answering == 0 && m != from {
			s.deliver(m)
		} else if m != from || m == nil {
			s.rack.Deliver(now, at, &s.packet)
		}
		return
	}
	to := s.manager(at) // nil: a program that is no client may take it
	x := s.asked.ask(now, from, to, b)
	if x == nil {
		s.unanswered(from, b)
		return
	}
	binary.BigEndian.PutUint64(transaction, x.shown())
	switch {
	case to != nil:
		s.deliver(to)
	case !s.rack.Deliver(now, at, &s.packet):
		s.asked.end(x)
		s.unanswered(from, b)
	}
}

// answered passes an answer, or an acknowledgement of a part of one, to the other side of an exchange.
func (s *Server) answered(now clock.Time, x *exchange, from *client, at fabric.Place, b *[dataLen]byte) {
	to, tid := x.from, x.tid
	if from == x.from && from != x.to {
		to, tid = x.to, x.shown()
	}
	if to.at != at {
		return // it arrived at another port than the requester's
	}
	binary.BigEndian.PutUint64(s.packet.MAD[8:], tid)
	s.deliver(to)
	s.goOn(now, x, &s.packet)
}

// giveUp fails the exchanges that have waited too long.
func (s *Server) giveUp(now clock.Time) {
	s.asked.expire(now, func(x *exchange) { s.fail(x) })
}

// fail tells the requester that no answer will come.
func (s *Server) fail(x *exchange) {
	if !x.begun && s.clients[x.from.number] == x.from {
		s.unanswered(x.from, &x.request)
	}
}
