package ib

import "fmt"

// Packet is a dissected transport packet: views of the parts between the UDP header (or GRH, or LRH) and
// the ICRC. Headers that the opcode does not have are nil.
type Packet struct {
	BTH       BTH
	XRCETH    XRCETH
	FETH      FETH
	RETH      RETH
	AETH      AETH
	AtomicETH AtomicETH
	AtomicAck AtomicAckETH
	DETH      DETH
	ImmDt     ImmDt
	IETH      IETH
	Payload   []byte // without the pad
	Pad       []byte // 0 to 3 bytes
}

// PacketError says what is wrong with a packet. Test for it with errors.As.
type PacketError struct {
	Field string // the header or field
	Got   int    // its value or length
	Want  string // what is allowed
}

// Error implements error.
func (e *PacketError) Error() string {
	return fmt.Sprintf("packet: %s is %d, want %s", e.Field, e.Got, e.Want)
}

// ParsePacket dissects b, which begins with the BTH and ends before the ICRC. It checks lengths, the
// opcode and the transport version; the rules of the protocol (payload against MTU, PSNs, keys) are left
// to the transport. The views share b's memory. The error is a *PacketError.
func ParsePacket(b []byte) (Packet, error) {
	if len(b) < BTHLen {
		return Packet{}, &PacketError{"BTH length", len(b), "at least 12"}
	}
	p := Packet{BTH: BTH(b[:BTHLen])}
	op := p.BTH.Opcode()
	n, known := HeaderLength(op)
	if !known {
		return Packet{}, &PacketError{"opcode", int(op), "an RC, UC, UD or XRC opcode or CNP (129)"}
	}
	if v := p.BTH.TVer(); v != 0 {
		return Packet{}, &PacketError{"transport version", int(v), "0"}
	}
	rest := b[BTHLen:]
	pad := p.BTH.PadCount()
	if len(rest) < n+pad {
		return Packet{}, &PacketError{"length after the BTH", len(rest), fmt.Sprintf("at least %d for %v with pad %d", n+pad, op, pad)}
	}
	p.headers(op, rest)
	rest = rest[n:]
	p.Payload, p.Pad = rest[:len(rest)-pad], rest[len(rest)-pad:]
	if op == CNP {
		if len(rest) != CNPReservedLen || pad != 0 {
			return Packet{}, &PacketError{"CNP reserved length", len(rest), "16 without pad"}
		}
		return p, nil
	}
	if !op.HasPayload() && len(rest) != 0 {
		return Packet{}, &PacketError{"payload of " + op.String(), len(rest), "0"}
	}
	return p, nil
}

// headers sets the views of the extended headers; the caller has checked that b contains them.
func (p *Packet) headers(op Opcode, b []byte) {
	take := func(n int) []byte {
		h := b[:n:n]
		b = b[n:]
		return h
	}
	if op.HasXRCETH() {
		p.XRCETH = take(XRCETHLen)
	}
	if op.HasDETH() {
		p.DETH = take(DETHLen)
	}
	if op.HasFETH() {
		p.FETH = take(FETHLen)
	}
	if op.HasRETH() {
		p.RETH = take(RETHLen)
	}
	if op.HasAtomicETH() {
		p.AtomicETH = take(AtomicETHLen)
	}
	if op.HasAETH() {
		p.AETH = take(AETHLen)
	}
	if op.HasAtomicAck() {
		p.AtomicAck = take(AtomicAckETHLen)
	}
	if op.HasImm() {
		p.ImmDt = take(ImmDtLen)
	}
	if op.HasIETH() {
		p.IETH = take(IETHLen)
	}
}

// Append adds the packet's bytes, without ICRC, to b.
func (p *Packet) Append(b []byte) []byte {
	for _, part := range [...][]byte{p.BTH, p.XRCETH, p.DETH, p.FETH, p.RETH, p.AtomicETH, p.AETH, p.AtomicAck, p.ImmDt, p.IETH,
		p.Payload, p.Pad} {
		b = append(b, part...)
	}
	return b
}
