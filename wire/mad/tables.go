package mad

import "github.com/softvpi/softvpi/wire/ib"

// GUIDInfoLen, PKeyTableLen and so on are the lengths of one block of the tables.
const (
	GUIDInfoLen                 = 64
	PKeyTableLen                = 64
	SLtoVLMappingTableLen       = 8
	VLArbitrationTableLen       = 64
	LinearForwardingTableLen    = 64
	MulticastForwardingTableLen = 64
)

// GUIDInfo is a block of eight GUIDs of a port (IBA 14.2.5.5); the attribute modifier is the number of the
// block. Zero marks an unused entry.
type GUIDInfo [8]uint64

// Append appends the attribute's GUIDInfoLen bytes to b.
func (g *GUIDInfo) Append(b []byte) []byte {
	b, p := zeros(b, GUIDInfoLen)
	for i, v := range g {
		put64(p[8*i:], v)
	}
	return b
}

// ParseGUIDInfo reads the attribute from the start of b. The error is an *Error.
func ParseGUIDInfo(b []byte) (g GUIDInfo, err error) {
	if err := atLeast("GUIDInfo", b, GUIDInfoLen); err != nil {
		return g, err
	}
	for i := range g {
		g[i] = get64(b[8*i:])
	}
	return g, nil
}

// PKeyTable is a block of 32 P_Keys (IBA 14.2.5.7). The low 16 bits of the attribute modifier are the
// number of the block, the high ones the port of a switch.
type PKeyTable [32]ib.PKey

// Append appends the attribute's PKeyTableLen bytes to b.
func (t *PKeyTable) Append(b []byte) []byte {
	b, p := zeros(b, PKeyTableLen)
	for i, v := range t {
		put16(p[2*i:], uint16(v))
	}
	return b
}

// ParsePKeyTable reads the attribute from the start of b. The error is an *Error.
func ParsePKeyTable(b []byte) (t PKeyTable, err error) {
	if err := atLeast("P_KeyTable", b, PKeyTableLen); err != nil {
		return t, err
	}
	for i := range t {
		t[i] = ib.PKey(get16(b[2*i:]))
	}
	return t, nil
}

// SLtoVLMappingTable holds the virtual lane, 0 to 15, of each service level (IBA 14.2.5.8); lane 15 drops.
// At a switch the attribute modifier is the input port times 256 plus the output port.
type SLtoVLMappingTable [16]uint8

// Append appends the attribute's SLtoVLMappingTableLen bytes to b.
func (t *SLtoVLMappingTable) Append(b []byte) []byte {
	b, p := zeros(b, SLtoVLMappingTableLen)
	for i := range p {
		p[i] = t[2*i]<<4 | t[2*i+1]&15
	}
	return b
}

// ParseSLtoVLMappingTable reads the attribute from the start of b. The error is an *Error.
func ParseSLtoVLMappingTable(b []byte) (t SLtoVLMappingTable, err error) {
	if err := atLeast("SLtoVLMappingTable", b, SLtoVLMappingTableLen); err != nil {
		return t, err
	}
	for i := range t[:8] {
		t[2*i], t[2*i+1] = b[i]>>4, b[i]&15
	}
	return t, nil
}

// VLArbitration is an entry of a VLArbitrationTable: the lane may send Weight times 64 bytes. An entry of
// weight 0 is skipped.
type VLArbitration struct {
	VL     uint8 // 4 bits
	Weight uint8
}

// VLArbitrationTable is half of one of the two tables by which a port shares its link among virtual lanes
// (IBA 14.2.5.9). The high 16 bits of the attribute modifier select it: 1 and 2 of the low-priority table,
// 3 and 4 of the high-priority one; the low 16 bits are the port of a switch.
type VLArbitrationTable [32]VLArbitration

// Append appends the attribute's VLArbitrationTableLen bytes to b.
func (t *VLArbitrationTable) Append(b []byte) []byte {
	b, p := zeros(b, VLArbitrationTableLen)
	for i, v := range t {
		p[2*i], p[2*i+1] = v.VL&15, v.Weight
	}
	return b
}

// ParseVLArbitrationTable reads the attribute from the start of b. The error is an *Error.
func ParseVLArbitrationTable(b []byte) (t VLArbitrationTable, err error) {
	if err := atLeast("VLArbitrationTable", b, VLArbitrationTableLen); err != nil {
		return t, err
	}
	for i := range t {
		t[i] = VLArbitration{b[2*i] & 15, b[2*i+1]}
	}
	return t, nil
}

// NoPort in a LinearForwardingTable means that packets are dropped.
const NoPort = 0xff

// LinearForwardingTable holds the ports of 64 LIDs (IBA 14.2.5.10); the first LID is 64 times the
// attribute modifier.
type LinearForwardingTable [64]uint8

// Append appends the attribute's LinearForwardingTableLen bytes to b.
func (t *LinearForwardingTable) Append(b []byte) []byte { return append(b, t[:]...) }

// ParseLinearForwardingTable reads the attribute from the start of b. The error is an *Error.
func ParseLinearForwardingTable(b []byte) (t LinearForwardingTable, err error) {
	if err := atLeast("LinearForwardingTable", b, LinearForwardingTableLen); err != nil {
		return t, err
	}
	return LinearForwardingTable(b), nil
}

// MulticastForwardingTable holds a mask of 16 ports for each of 32 multicast LIDs (IBA 14.2.5.12). The
// first LID is 0xc000 plus 32 times bits 0 to 8 of the attribute modifier, the port of bit 0 is 16 times
// bits 28 to 31.
type MulticastForwardingTable [32]uint16

// Append appends the attribute's MulticastForwardingTableLen bytes to b.
func (t *MulticastForwardingTable) Append(b []byte) []byte {
	b, p := zeros(b, MulticastForwardingTableLen)
	for i, v := range t {
		put16(p[2*i:], v)
	}
	return b
}

// ParseMulticastForwardingTable reads the attribute from the start of b. The error is an *Error.
func ParseMulticastForwardingTable(b []byte) (t MulticastForwardingTable, err error) {
	if err := atLeast("MulticastForwardingTable", b, MulticastForwardingTableLen); err != nil {
		return t, err
	}
	for i := range t {
		t[i] = get16(b[2*i:])
	}
	return t, nil
}
