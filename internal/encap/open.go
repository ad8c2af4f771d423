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
	id := p.Segment
	if p.IDKnown {
		id = p.ID
	}
	f := flow{p.Src, p.Dst, p.SrcPort, e.port}
	crc, n := e.begin(&f, length, id, body, p.Payload)
	if n < len(body) {
		crc, n = ib.ICRCUpdate(crc, body[n:]), len(body)
	}
	if rest := p.Payload; n-len(body) < len(rest) {
		crc = ib.ICRCUpdate(crc, rest[n-len(body):])
	}
	if wire := ib.ICRC(p.Data[len(body):]); crc != wire && !e.infer(p, crc, wire, id) {
		e.counters.ICRCErrors++
		return false
	}
	p.Data = body
	return true
}

// infer looks for an identification that makes the ICRC of an IPv4 packet right, which came
// out as crc with id.
func (e *Encap) infer(p *frame.In, crc, wire uint32, id uint16) bool {
	if p.IDKnown || !p.Dst.Is4() {
		return false
	}
	other, ok := ib.SolveID(crc, wire, bytesAfterID(p.Len()))
	if !ok {
		return false
	}
	// Packets that were sent singly have 0, and the kernel may have joined them.
	if other^id != 0 {
		e.counters.ICRCIDInferred++
	}
	return true
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
