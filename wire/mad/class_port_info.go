package mad

import "github.com/softvpi/softvpi/wire/ib"

// ClassPortInfoLen is the length of a ClassPortInfo attribute.
const ClassPortInfoLen = 72

// Bits of ClassPortInfo.CapabilityMask that the communication management class defines (IBA 16.7.3.1).
const (
	CapReliableConnection   = 1 << 9
	CapReliableDatagram     = 1 << 10
	CapRawDatagram          = 1 << 11
	CapUnreliableConnection = 1 << 12
	CapSIDR                 = 1 << 13
)

// ClassAddress is one of the two addresses in a ClassPortInfo: where to redirect to, and where to send
// traps.
type ClassAddress struct {
	GID          ib.GID
	TrafficClass uint8
	SL           uint8  // 4 bits
	FlowLabel    uint32 // 20 bits
	LID          ib.LID
	PKey         ib.PKey
	HopLimit     uint8 // of traps; reserved for redirection
	QPN          ib.QPN
	QKey         uint32
}

const classAddressLen = 32

func (a *ClassAddress) append(b []byte) []byte {
	b = append(b, a.GID[:]...)
	var p [classAddressLen - 16]byte
	put32(p[:], uint32(a.TrafficClass)<<24|uint32(a.SL&15)<<20|a.FlowLabel&0xfffff)
	put16(p[4:], uint16(a.LID))
	put16(p[6:], uint16(a.PKey))
	put32(p[8:], uint32(a.HopLimit)<<24|uint32(a.QPN&ib.QPNMask))
	put32(p[12:], a.QKey)
	return append(b, p[:]...)
}

func getClassAddress(b []byte) ClassAddress {
	w := get32(b[16:])
	return ClassAddress{
		GID: ib.GID(b[:16]), TrafficClass: uint8(w >> 24), SL: uint8(w>>20) & 15, FlowLabel: w & 0xfffff,
		LID: ib.LID(get16(b[20:])), PKey: ib.PKey(get16(b[22:])), HopLimit: b[24], QPN: getQPN(b[25:]), QKey: get32(b[28:]),
	}
}

// ClassPortInfo says what a management class supports at a port (IBA 13.4.8.1). It is also the additional
// information of redirecting REJs.
type ClassPortInfo struct {
	BaseVersion     uint8
	ClassVersion    uint8
	CapabilityMask  uint16
	CapabilityMask2 uint32 // 27 bits
	RespTime        uint8  // 5 bits: see ib.CMTimeout
	Redirect, Trap  ClassAddress
}

// Append appends the attribute's ClassPortInfoLen bytes to b.
func (c *ClassPortInfo) Append(b []byte) []byte {
	b = append(b, c.BaseVersion, c.ClassVersion)
	var p [6]byte
	put16(p[:], c.CapabilityMask)
	put32(p[2:], c.CapabilityMask2<<5|uint32(c.RespTime&0x1f))
	b = append(b, p[:]...)
	b = c.Redirect.append(b)
	return c.Trap.append(b)
}

// ParseClassPortInfo reads the attribute from the start of b. The error is an *Error.
func ParseClassPortInfo(b []byte) (ClassPortInfo, error) {
	if len(b) < ClassPortInfoLen {
		return ClassPortInfo{}, &Error{"ClassPortInfo length", uint64(len(b)), "at least 72"}
	}
	w := get32(b[4:])
	return ClassPortInfo{
		BaseVersion: b[0], ClassVersion: b[1], CapabilityMask: get16(b[2:]), CapabilityMask2: w >> 5, RespTime: uint8(w & 0x1f),
		Redirect: getClassAddress(b[8:]), Trap: getClassAddress(b[8+classAddressLen:]),
	}, nil
}

// AppendClassPortInfo appends to b the MAD that answers request, a Get(ClassPortInfo), with c.
func AppendClassPortInfo(b []byte, request Header, c *ClassPortInfo) []byte {
	request.Method, request.Status = MethodGetResp, StatusOK
	b = request.Append(b)
	b = c.Append(b)
	return append(b, make([]byte, Len-HeaderLen-ClassPortInfoLen)...)
}
