package encap

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// Open checks a received batch and moves the good packets to its front, in order; it
// returns how many they are. Their Data then runs from the BTH to the end of the pad, at
// least a BTH, and for whole frames the outer fields are filled in. What is dropped is counted.
// Payload stays what it is; it counts as standing between the BTH in Data and the ICRC.
func (e *Encap) Open(in []frame.In) int {
	n := 0
	for i := range in {
		p := &in[i]
		var ok bool
		if p.Raw {
			ok = e.openRaw(p)
		} else {
			ok = e.openDatagram(p)
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

// openDatagram checks what came from a UDP socket.
func (e *Encap) openDatagram(p *frame.In) bool {
	if !e.wellFormed(p.Len()) {
		return false
	}
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
	length := p.Len()
	body := p.Data[:len(p.Data)-ib.ICRCLen]
	id := e.identification(p)
	f := flow{p.Src, p.Dst, p.SrcPort, e.port}
	crc, n := e.begin(&f, length, id, body, p.Payload)
	if n < len(body) {
		crc, n = ib.ICRCUpdate(crc, body[n:]), len(body)
	}
	if rest := p.Payload; n-len(body) < len(rest) {
		crc = ib.ICRCUpdate(crc, rest[n-len(body):])
	}
	if wire := ib.ICRC(p.Data[len(body):]); crc != wire {
		other, ok := e.infer(p, crc, wire)
		if !ok {
			e.counters.ICRCErrors++
			return false
		}
		id ^= other
	}
	e.identified(p, id)
	p.Data = body
	return true
}

// identification is what the IPv4 identification of a packet is taken for at first.
func (e *Encap) identification(p *frame.In) uint16 {
	switch {
	case p.IDKnown:
		return p.ID
	case e.nextID != 0:
		return e.nextID
	}
	return p.Segment
}

// infer looks for an identification that makes the ICRC of an IPv4 packet right, which came
// out as crc. It returns how that differs from the one that crc was made with.
func (e *Encap) infer(p *frame.In, crc, wire uint32) (other uint16, ok bool) {
	if p.IDKnown || !p.Dst.Is4() {
		return 0, false
	}
	return ib.SolveID(crc, wire, bytesAfterID(p.Len()))
}

// identified notes the identification of a packet. Where a burst is cut on the way its
// packets come singly, and the socket does not show the place that each had in it: the one
// behind this is most likely next. To find it from the ICRC takes as long as the ICRC of
// some hundred bytes.
func (e *Encap) identified(p *frame.In, id uint16) {
	if p.IDKnown || !p.Dst.Is4() || e.nextID == 0 && id == p.Segment {
		return
	}
	// Packets that were sent singly have 0, and the kernel may have joined them.
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

// wellFormed counts and refuses what cannot be a packet: Annex A17 wants a BTH, a multiple
// of four bytes and an ICRC.
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
