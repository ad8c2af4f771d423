package lldp

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
)

// EtherType is that of frames with an LLDP data unit (IEEE 802.1AB, 7.3).
const EtherType eth.EtherType = 0x88cc

// NearestBridge is where data units of a port go whose peer is at the other end of its wire: no bridge forwards them (IEEE 802.1AB,
// table 7-1).
var NearestBridge = eth.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Type is the type of a TLV (IEEE 802.1AB, table 8-1).
type Type uint8

// Types of TLVs.
const (
	TypeEnd               Type = 0
	TypeChassisID         Type = 1
	TypePortID            Type = 2
	TypeTTL               Type = 3
	TypePortDescription   Type = 4
	TypeSystemName        Type = 5
	TypeSystemDescription Type = 6
	TypeCapabilities      Type = 7
	TypeManagementAddress Type = 8
	TypeOrganization      Type = 127
)

// headerLen is the length of type and length, and mostLen that of the longest information string.
const (
	headerLen = 2
	mostLen   = 511
	organized = 4 // bytes of the OUI and subtype
)

// OUI names an organization that has TLVs of its own.
type OUI [3]byte

// Organizations with TLVs of DCBX, and IEEE 802.3.
var (
	OUI8021 = OUI{0x00, 0x80, 0xc2}
	OUI8023 = OUI{0x00, 0x12, 0x0f}
	OUICEE  = OUI{0x00, 0x1b, 0x21}
)

// String returns an OUI as it is written.
func (o OUI) String() string { return fmt.Sprintf("%02x-%02x-%02x", o[0], o[1], o[2]) }

// TLV is one of a type that this package does not know.
type TLV struct {
	Type Type
	// OUI and Subtype are those of TypeOrganization, and Value what follows them.
	OUI     OUI
	Subtype uint8
	Value   []byte
}

// String describes a TLV.
func (t TLV) String() string {
	if t.Type == TypeOrganization {
		return fmt.Sprintf("%v subtype %d: % x", t.OUI, t.Subtype, t.Value)
	}
	return fmt.Sprintf("type %d: % x", t.Type, t.Value)
}

// append adds the TLV to a data unit; what does not fit into one is left out.
func (t *TLV) append(b []byte) []byte {
	if t.Type != TypeOrganization {
		return appendTLV(b, t.Type, t.Value)
	}
	return appendOrganization(b, t.OUI, t.Subtype, t.Value)
}

func appendTLV(b []byte, t Type, value []byte) []byte {
	value = value[:min(len(value), mostLen)]
	b = binary.BigEndian.AppendUint16(b, uint16(t)<<9|uint16(len(value)))
	return append(b, value...)
}

func appendOrganization(b []byte, o OUI, subtype uint8, value []byte) []byte {
	value = value[:min(len(value), mostLen-organized)]
	b = binary.BigEndian.AppendUint16(b, uint16(TypeOrganization)<<9|uint16(organized+len(value)))
	b = append(append(b, o[:]...), subtype)
	return append(b, value...)
}

// next takes the first TLV off a data unit. ok is false if it extends past the end.
func next(b []byte) (t Type, value, rest []byte, ok bool) {
	if len(b) < headerLen {
		return 0, nil, nil, false
	}
	h := binary.BigEndian.Uint16(b)
	n := int(h & mostLen)
	if b = b[headerLen:]; len(b) < n {
		return 0, nil, nil, false
	}
	return Type(h >> 9), b[:n:n], b[n:], true
}
