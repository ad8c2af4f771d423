package mad

import (
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
)

// ClassVersionSMP is the class version of both subnet management classes.
const ClassVersionSMP = 1

// Attribute IDs of the subnet management classes (IBA 14.2.5).
const (
	AttrNotice                   = 0x0002
	AttrNodeDescription          = 0x0010
	AttrNodeInfo                 = 0x0011
	AttrSwitchInfo               = 0x0012
	AttrGUIDInfo                 = 0x0014
	AttrPortInfo                 = 0x0015
	AttrPKeyTable                = 0x0016
	AttrSLtoVLMappingTable       = 0x0017
	AttrVLArbitrationTable       = 0x0018
	AttrLinearForwardingTable    = 0x0019
	AttrRandomForwardingTable    = 0x001a
	AttrMulticastForwardingTable = 0x001b
	AttrSMInfo                   = 0x0020
	AttrVendorDiag               = 0x0030
	AttrLEDInfo                  = 0x0031
	AttrMellanoxExtendedPortInfo = 0xff90
)

// Attribute IDs of the vendor's virtual ports, as the headers of NVIDIA's OpenSM and ibdiagnet have them.
const (
	AttrGeneralInfo        = 0xff17
	AttrVirtualizationInfo = 0xffb0
	AttrVPortInfo          = 0xffb1
	AttrVNodeInfo          = 0xffb2
	AttrVPortState         = 0xffb3
	AttrVNodeDescription   = 0xffb4
	AttrVPortGUIDInfo      = 0xffb5
	AttrVPortPKeyTable     = 0xffb6
)

const (
	smpMKey        = 24
	smpDrSLID      = 32
	smpDrDLID      = 34
	smpData        = 64
	smpInitialPath = 128
	smpReturnPath  = 192
	smpDirection   = 1 << 15 // of the status
)

// SMPDataLen is the length of the attribute in a subnet management packet.
const SMPDataLen = 64

// MaxHops is the maximum hop count of a directed route (IBA 14.2.2).
const MaxHops = 63

// SMP is a subnet management packet, LID routed (IBA 14.2.1.1) or with a directed route (IBA 14.2.1.2).
// The two share one layout: in a LID-routed one the fields of the route are reserved, written and read as
// zeros. In a directed one the header's Status and ClassSpecific hold the direction bit and the hops; see
// the methods.
type SMP struct {
	Header
	MKey           uint64
	DrSLID, DrDLID ib.LID // ib.LIDPermissive if the route is directed from its first hop or to its last
	Data           [SMPDataLen]byte
	// The ports by which the packet leaves, and those by which it arrived. Hop n is at [n]; [0] is not
	// used.
	InitialPath, ReturnPath [MaxHops + 1]uint8
}

// NewSMP returns a LID-routed SMP without contents.
func NewSMP(method uint8, attribute uint16, modifier uint32, transaction uint64) SMP {
	return SMP{Header: Header{BaseVersion: BaseVersion, Class: ClassSubnetLID, ClassVersion: ClassVersionSMP, Method: method,
		TransactionID: transaction, AttributeID: attribute, AttributeModifier: modifier}}
}

// Direct gives s a directed route: path is the ports by which it leaves the nodes, beginning at the
// sender. With an empty path it stays at the sender. The error is an *Error.
func (s *SMP) Direct(path []uint8) error {
	if len(path) > MaxHops {
		return &Error{"hop count", uint64(len(path)), "at most 63"}
	}
	s.Class, s.DrSLID, s.DrDLID = ClassSubnetDir, ib.LIDPermissive, ib.LIDPermissive
	s.InitialPath, s.ReturnPath = [MaxHops + 1]uint8{}, [MaxHops + 1]uint8{}
	copy(s.InitialPath[1:], path)
	s.SetHops(0, uint8(len(path)))
	return nil
}

// Directed reports whether the SMP has a directed route.
func (s *SMP) Directed() bool { return s.Class == ClassSubnetDir }

// Returning reports whether the direction bit is set: the SMP is on its way back to the requester.
func (s *SMP) Returning() bool { return s.Directed() && s.Status&smpDirection != 0 }

// StatusCode returns the status without the direction bit.
func (s *SMP) StatusCode() uint16 {
	if s.Directed() {
		return s.Status &^ smpDirection
	}
	return s.Status
}

// SetStatus sets the status and, unless the SMP is LID routed, the direction bit.
func (s *SMP) SetStatus(code uint16, returning bool) {
	s.Status = code
	if s.Directed() {
		s.Status &^= smpDirection
		if returning {
			s.Status |= smpDirection
		}
	}
}

// HopPointer returns the hop at which a directed SMP is.
func (s *SMP) HopPointer() uint8 { return uint8(s.ClassSpecific >> 8) }

// HopCount returns the number of hops of the directed part of the route.
func (s *SMP) HopCount() uint8 { return uint8(s.ClassSpecific) }

// SetHops sets the hop pointer and the hop count.
func (s *SMP) SetHops(pointer, count uint8) { s.ClassSpecific = uint16(pointer)<<8 | uint16(count) }

// Append appends the MAD's Len bytes to b.
func (s *SMP) Append(b []byte) []byte {
	b = s.Header.Append(b)
	b, p := zeros(b, Len-HeaderLen)
	put64(p[smpMKey-HeaderLen:], s.MKey)
	copy(p[smpData-HeaderLen:], s.Data[:])
	if s.Directed() {
		put16(p[smpDrSLID-HeaderLen:], uint16(s.DrSLID))
		put16(p[smpDrDLID-HeaderLen:], uint16(s.DrDLID))
		copy(p[smpInitialPath-HeaderLen:], s.InitialPath[:])
		copy(p[smpReturnPath-HeaderLen:], s.ReturnPath[:])
	}
	return b
}

// ParseSMP reads a MAD of either subnet management class. It checks length, base version, class, class
// version and the hop count of a directed route. The error is an *Error.
func ParseSMP(b []byte) (SMP, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return SMP{}, err
	}
	switch {
	case h.Class != ClassSubnetLID && h.Class != ClassSubnetDir:
		return SMP{}, &Error{"management class", uint64(h.Class), "0x1 or 0x81, subnet management"}
	case h.ClassVersion != ClassVersionSMP:
		return SMP{}, &Error{"class version", uint64(h.ClassVersion), "1"}
	}
	s := SMP{Header: h, MKey: get64(b[smpMKey:]), Data: [SMPDataLen]byte(b[smpData:])}
	if !s.Directed() {
		return s, nil
	}
	if s.HopCount() > MaxHops {
		return SMP{}, &Error{"hop count", uint64(s.HopCount()), "at most 63"}
	}
	s.DrSLID, s.DrDLID = ib.LID(get16(b[smpDrSLID:])), ib.LID(get16(b[smpDrDLID:]))
	s.InitialPath = [MaxHops + 1]uint8(b[smpInitialPath:])
	s.ReturnPath = [MaxHops + 1]uint8(b[smpReturnPath:])
	return s, nil
}

// zeros appends n zero bytes to b and returns the extended slice and those bytes in it. Room is doubled: tables of many records
// grow to megabytes, one record after the other.
func zeros(b []byte, n int) (all, added []byte) {
	var z [Len]byte
	if b != nil && cap(b)-len(b) < n {
		b = slices.Grow(b, max(n, len(b)))
	}
	b = append(b, z[:n]...)
	return b, b[len(b)-n:]
}
