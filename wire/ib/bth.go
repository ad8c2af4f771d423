package ib

import "encoding/binary"

// Lengths of the headers, in bytes.
const (
	BTHLen          = 12
	RETHLen         = 16
	AETHLen         = 4
	AtomicETHLen    = 28
	AtomicAckETHLen = 8
	ImmDtLen        = 4
	IETHLen         = 4
	DETHLen         = 8
	XRCETHLen       = 4
	FETHLen         = 4
	GRHLen          = 40
	LRHLen          = 8
	ICRCLen         = 4
	VCRCLen         = 2
)

// Offsets of the fields of a BTH.
const (
	bthOpcode = 0
	bthFlags  = 1 // SE, MigReq, pad count, transport version
	bthPKey   = 2
	bthECN    = 4 // FECN, BECN, six reserved bits: the byte that the ICRC masks
	bthDestQP = 5
	bthAckReq = 8
	bthPSN    = 9

	bthSE     = 0x80
	bthMigReq = 0x40
	bthPad    = 0x30
	bthTVer   = 0x0f
	bthFECN   = 0x80
	bthBECN   = 0x40
	bthAck    = 0x80
)

// BTH is a view of a base transport header (IBA 9.2), BTHLen bytes.
type BTH []byte

// Opcode says what the packet is and which headers follow.
func (h BTH) Opcode() Opcode { return Opcode(h[bthOpcode]) }

// Solicited is the SE bit: the responder raises a solicited event.
func (h BTH) Solicited() bool { return h[bthFlags]&bthSE != 0 }

// MigReq is the migration state bit.
func (h BTH) MigReq() bool { return h[bthFlags]&bthMigReq != 0 }

// PadCount is how many bytes (0 to 3) were added after the payload to reach a multiple of four.
func (h BTH) PadCount() int { return int(h[bthFlags]&bthPad) >> 4 }

// TVer is the transport header version; it is 0 in IBA.
func (h BTH) TVer() uint8 { return h[bthFlags] & bthTVer }

// PKey is the partition key of the sender.
func (h BTH) PKey() PKey { return PKey(binary.BigEndian.Uint16(h[bthPKey:])) }

// FECN reports that the packet met congestion on its way.
func (h BTH) FECN() bool { return h[bthECN]&bthFECN != 0 }

// BECN reports that packets in the other direction met congestion.
func (h BTH) BECN() bool { return h[bthECN]&bthBECN != 0 }

// DestQP is the number of the queue pair that the packet is for.
func (h BTH) DestQP() QPN { return QPN(binary.BigEndian.Uint32(h[bthECN:]) & 0xffffff) }

// AckReq reports that the requester wants an acknowledgement of this packet.
func (h BTH) AckReq() bool { return h[bthAckReq]&bthAck != 0 }

// PSN is the packet sequence number.
func (h BTH) PSN() PSN { return PSN(binary.BigEndian.Uint32(h[bthAckReq:]) & PSNMask) }

// SetOpcode sets the opcode.
func (h BTH) SetOpcode(op Opcode) { h[bthOpcode] = byte(op) }

// SetSolicited sets the SE bit.
func (h BTH) SetSolicited(on bool) { h[bthFlags] = h[bthFlags]&^bthSE | bit(on, bthSE) }

// SetMigReq sets the migration state bit.
func (h BTH) SetMigReq(on bool) { h[bthFlags] = h[bthFlags]&^bthMigReq | bit(on, bthMigReq) }

// SetPadCount sets the pad count to the low two bits of n.
func (h BTH) SetPadCount(n int) { h[bthFlags] = h[bthFlags]&^bthPad | byte(n&3)<<4 }

// SetTVer sets the transport header version.
func (h BTH) SetTVer(v uint8) { h[bthFlags] = h[bthFlags]&^bthTVer | v&bthTVer }

// SetPKey sets the partition key.
func (h BTH) SetPKey(k PKey) { binary.BigEndian.PutUint16(h[bthPKey:], uint16(k)) }

// SetFECN sets the forward congestion bit.
func (h BTH) SetFECN(on bool) { h[bthECN] = h[bthECN]&^bthFECN | bit(on, bthFECN) }

// SetBECN sets the backward congestion bit.
func (h BTH) SetBECN(on bool) { h[bthECN] = h[bthECN]&^bthBECN | bit(on, bthBECN) }

// SetDestQP sets the destination queue pair and leaves the congestion bits as they are.
func (h BTH) SetDestQP(q QPN) { put24(h[bthDestQP:], uint32(q)) }

// SetAckReq sets the acknowledgement request bit.
func (h BTH) SetAckReq(on bool) { h[bthAckReq] = h[bthAckReq]&^bthAck | bit(on, bthAck) }

// SetPSN sets the packet sequence number and leaves the acknowledgement request as it is.
func (h BTH) SetPSN(p PSN) { put24(h[bthPSN:], uint32(p)) }

// Encode writes a whole BTH with the congestion, migration, version and reserved bits zero. It is cheaper
// than calling the setters one by one.
func (h BTH) Encode(op Opcode, solicited, ackReq bool, pad int, key PKey, dest QPN, psn PSN) {
	_ = h[BTHLen-1]
	h[bthOpcode] = byte(op)
	h[bthFlags] = bit(solicited, bthSE) | byte(pad&3)<<4
	binary.BigEndian.PutUint16(h[bthPKey:], uint16(key))
	binary.BigEndian.PutUint32(h[bthECN:], uint32(dest)&0xffffff)
	binary.BigEndian.PutUint32(h[bthAckReq:], uint32(bit(ackReq, bthAck))<<24|uint32(psn)&PSNMask)
}

// bit is mask if on is true, else 0.
func bit(on bool, mask byte) byte {
	if on {
		return mask
	}
	return 0
}

func get24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func put24(b []byte, v uint32) {
	_ = b[2]
	b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
}
