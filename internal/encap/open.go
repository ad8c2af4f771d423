package encap

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// Open checks a received batch and moves the good packets to its front, in order; it returns their number.
// Their Data then extends from the BTH to the end of the pad, at least a BTH, and for whole frames the
// outer fields are filled in. Dropped packets are counted.
func (e *Encap) Open(in []frame.In) int { return e.OpenNext(in, nil) }

// OpenNext is Open with a prediction of the next packets, unless next is nil. The payloads of predicted
// packets are copied to their destination while their ICRCs are computed, and Payload then points there.
// The destination of a packet with a wrong ICRC is overwritten as well: its content is undefined until the
// packet has arrived.
func (e *Encap) OpenNext(in []frame.In, next *frame.Next) int {
	n := 0
	for i := range in {
		p := &in[i]
		p.Payload = nil
		var ok bool
		if p.Raw {
			ok = e.openRaw(p)
		} else {
			ok = e.openDatagram(p, next)
		}
		if !ok {
			continue
		}
		if n != i {
			in[n] = *p
		}
		n++
	}
	return n
}

// openDatagram checks a packet from a UDP socket.
func (e *Encap) openDatagram(p *frame.In, next *frame.Next) bool {
	length := p.Len()
	if !e.wellFormed(length) {
		return false
	}
	body := p.Data[:len(p.Data)-ib.ICRCLen]
	wire := ib.ICRC(p.Data[len(body):])
	id := e.identification(p)
	s := e.came
	if !s.goesOn(p, length) || !s.numbers(id) {
		s = e.known(&p.Src, &p.Dst, p.SrcPort, e.port, length, id, common(body))
	}
	if s == nil || !s.admitted {
		if !e.admit(p) {
			return false
		}
		f := flow{p.Src, p.Dst, p.SrcPort, e.port}
		if s = e.stream(&f, length, common(body)); s == nil || !s.numbers(id) {
			crc, n := e.seed(e.outer(&f), length, id, body, nil)
			return e.accept(p, ib.ICRCUpdate(crc, body[n:]), wire, id)
		}
		s.admitted = true
	}
	e.came = s
	crc := s.begin(id, body)
	if next != nil && isNext(p, next) {
		crc = take(p, crc, next)
		e.counters.Placed++
	} else {
		crc = ib.ICRCUpdate(crc, body[ib.BTHLen:])
	}
	return e.accept(p, crc, wire, id)
}

// goesOn reports whether a packet, length bytes from the BTH to the ICRC, belongs to the stream, and may
// therefore be accepted.
func (s *stream) goesOn(p *frame.In, length int) bool {
	return s.head == common(p.Data) && s.length == length && s.known && s.admitted && s.flow.srcPort == p.SrcPort && s.flow.src == p.Src &&
		s.flow.dst == p.Dst
}

// admit completes the addresses of a packet, and reports whether it is for this port.
func (e *Encap) admit(p *frame.In) bool {
	p.Src = unmap(p.Src)
	if p.Dst.IsValid() {
		p.Dst = unmap(p.Dst)
	} else {
		p.Dst = e.own(p.Src)
	}
	if !e.local(p.Dst) || p.Src.Is4() != p.Dst.Is4() {
		e.counters.NotForUs++
		return false
	}
	return true
}

// isNext reports whether a packet is the first of next; it may request an acknowledgement.
func isNext(p *frame.In, next *frame.Next) bool {
	const psn = 0x7fffffff
	return len(next.Memory) >= next.Size && p.Len() == ib.BTHLen+next.Size+ib.ICRCLen && binary.NativeEndian.Uint64(p.Data) == next.Head &&
		binary.BigEndian.Uint32(p.Data[streamHead:])&psn == uint32(next.PSN) && p.Src == next.Src &&
		(next.SrcPort == 0 || p.SrcPort == next.SrcPort)
}

// take continues an ICRC over the payload of the first packet of next, which it copies to its destination.
func take(p *frame.In, crc uint32, next *frame.Next) uint32 {
	place := next.Memory[:next.Size:next.Size]
	next.Memory, next.PSN = next.Memory[next.Size:], next.PSN.Next()
	crc = ib.ICRCCopy(crc, place, p.Data[ib.BTHLen:ib.BTHLen+next.Size])
	p.Payload = place
	p.Data = p.Data[:ib.BTHLen+ib.ICRCLen]
	return crc
}

// accept compares the ICRC of a packet with the one on the wire, and strips it.
func (e *Encap) accept(p *frame.In, crc, wire uint32, id uint16) bool {
	if crc != wire {
		other, ok := e.infer(p, crc, wire, id)
		if !ok {
			e.counters.ICRCErrors++
			return false
		}
		id = other
	}
	e.identified(p, id)
	p.Data = p.Data[:len(p.Data)-ib.ICRCLen]
	return true
}

// identification returns the IPv4 identification to try first for a packet.
func (e *Encap) identification(p *frame.In) uint16 {
	switch {
	case p.IDKnown:
		return p.ID
	case p.IDSeen:
		return p.Segment
	case e.nextID != 0:
		return e.nextID
	}
	return p.Segment
}

// infer looks for an identification that makes the ICRC of an IPv4 packet correct, and that its sender may have used.
// crc is the ICRC for identification used.
func (e *Encap) infer(p *frame.In, crc, wire uint32, used uint16) (id uint16, ok bool) {
	if p.IDKnown || !p.Dst.Is4() {
		return 0, false
	}
	other, solved := ib.SolveID(crc, wire, bytesAfterID(p.Len()))
	id = used ^ other
	if p.IDSeen { // some senders do not choose it, and compute the ICRC with 0
		if solved && id != 0 {
			e.counters.ICRCIDRefused++
		}
		return id, solved && id == 0
	}
	switch e.ids.judge(p, id, solved) {
	case plausible:
		return id, true
	case guessed:
		e.counters.ICRCIDOpen++
		return id, true
	}
	if solved {
		e.counters.ICRCIDRefused++
	}
	return 0, false
}

// identified records the identification of a packet. If a burst is split on the way its packets arrive
// singly, and the socket does not reveal the position that each had in it: most likely the next one
// follows this one. Deriving it from the ICRC takes as long as the ICRC of some hundred bytes.
func (e *Encap) identified(p *frame.In, id uint16) {
	if p.IDKnown || !p.Dst.Is4() {
		return
	}
	if p.IDSeen {
		if id >= segmentsKept {
			e.ids.seen(p, id)
		}
		return
	}
	if e.nextID == 0 && id == p.Segment {
		return
	}
	// Packets sent singly have 0, and the kernel may have joined them.
	if id != p.Segment && id != 0 {
		e.counters.ICRCIDInferred++
	}
	switch {
	case id == 0 && e.nextID <= 1, id != 0 && id == p.Segment, id >= segmentsKept-1:
		e.nextID = 0
	default: // 0 is the first of another burst, if one went before
		e.nextID = id + 1
	}
}

// wellFormed refuses and counts what cannot be a packet: Annex A17 requires a BTH, a multiple of four
// bytes and an ICRC.
func (e *Encap) wellFormed(length int) bool {
	if length < ib.BTHLen+ib.ICRCLen || length%4 != 0 || length > maxDatagram {
		e.counters.Malformed++
		return false
	}
	return true
}

// maxDatagram is the longest UDP payload over IPv4.
const maxDatagram = 65535 - 20 - 8

func unmap(a netip.Addr) netip.Addr {
	if a.Is4In6() {
		return a.Unmap()
	}
	if a.Zone() != "" {
		return a.WithZone("")
	}
	return a
}
