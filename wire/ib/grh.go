package ib

import "encoding/binary"

const (
	grhVersion  = 0 // IP version, traffic class, flow label
	grhPayLen   = 4
	grhNextHdr  = 6
	grhHopLimit = 7
	grhSGID     = 8
	grhDGID     = 24
)

// GRHNextHeader is the next-header value for a BTH (IBA 8.3).
const GRHNextHeader = 0x1b

// GRH is a view of a global route header (IBA 8.3), GRHLen bytes, laid out like an IPv6 header.
type GRH []byte

// Version is the IP version, which is 6.
func (h GRH) Version() uint8 { return h[grhVersion] >> 4 }

// TrafficClass is the traffic class.
func (h GRH) TrafficClass() uint8 { return uint8(binary.BigEndian.Uint16(h[grhVersion:]) >> 4) }

// FlowLabel is the flow label, 20 bits.
func (h GRH) FlowLabel() uint32 { return binary.BigEndian.Uint32(h[grhVersion:]) & 0xfffff }

// PayLen is the length in bytes from the end of the GRH to the end of the ICRC.
func (h GRH) PayLen() int { return int(binary.BigEndian.Uint16(h[grhPayLen:])) }

// NextHeader is the type of what follows: GRHNextHeader for a BTH.
func (h GRH) NextHeader() uint8 { return h[grhNextHdr] }

// HopLimit is how many routers the packet may still pass.
func (h GRH) HopLimit() uint8 { return h[grhHopLimit] }

// SGID is the source GID.
func (h GRH) SGID() GID { return GID(h[grhSGID:grhDGID]) }

// DGID is the destination GID.
func (h GRH) DGID() GID { return GID(h[grhDGID:GRHLen]) }

// SetVersion sets the IP version to the low four bits of v.
func (h GRH) SetVersion(v uint8) { h[grhVersion] = v<<4 | h[grhVersion]&0x0f }

// SetTrafficClass sets the traffic class.
func (h GRH) SetTrafficClass(tc uint8) {
	h[0] = h[0]&0xf0 | tc>>4
	h[1] = tc<<4 | h[1]&0x0f
}

// SetFlowLabel sets the flow label to the low 20 bits of fl.
func (h GRH) SetFlowLabel(fl uint32) {
	h[1] = h[1]&0xf0 | byte(fl>>16)&0x0f
	h[2], h[3] = byte(fl>>8), byte(fl)
}

// SetPayLen sets the length of what follows, ICRC included.
func (h GRH) SetPayLen(n int) { binary.BigEndian.PutUint16(h[grhPayLen:], uint16(n)) }

// SetNextHeader sets the type of what follows.
func (h GRH) SetNextHeader(v uint8) { h[grhNextHdr] = v }

// SetHopLimit sets the hop limit.
func (h GRH) SetHopLimit(v uint8) { h[grhHopLimit] = v }

// SetSGID sets the source GID.
func (h GRH) SetSGID(g GID) { *(*GID)(h[grhSGID:]) = g }

// SetDGID sets the destination GID.
func (h GRH) SetDGID(g GID) { *(*GID)(h[grhDGID:]) = g }

// Encode writes a whole GRH with version 6 and a BTH as next header.
func (h GRH) Encode(tc uint8, flowLabel uint32, payLen int, hopLimit uint8, src, dst GID) {
	_ = h[GRHLen-1]
	binary.BigEndian.PutUint32(h[grhVersion:], 6<<28|uint32(tc)<<20|flowLabel&0xfffff)
	h.SetPayLen(payLen)
	h.SetNextHeader(GRHNextHeader)
	h.SetHopLimit(hopLimit)
	h.SetSGID(src)
	h.SetDGID(dst)
}
