// Package eth holds the packet formats under RoCE: Ethernet with VLAN tags, ARP, IPv4, IPv6,
// UDP, and the ICMP, IGMP and MLD messages that an adapter needs.
//
// IPv4, IPv6 and UDP are views: byte slices with accessors for their fields, which neither allocate nor
// check lengths. Their Parse functions validate the input. The control messages are structs.
package eth

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// EtherType says what an Ethernet frame carries.
type EtherType uint16

// Ethernet types.
const (
	TypeIPv4 EtherType = 0x0800
	TypeARP  EtherType = 0x0806
	TypeVLAN EtherType = 0x8100 // an 802.1Q tag
	// TypeServiceVLAN is that of a tag of a provider, before others (IEEE 802.1ad).
	TypeServiceVLAN EtherType = 0x88a8
	TypeIPv6        EtherType = 0x86dd
	TypeRoCEv1      EtherType = 0x8915 // a GRH (IBA annex A16)
)

const (
	// EthernetLen is the length of an Ethernet header without a tag.
	EthernetLen = 14
	// VLANLen is the length that a tag adds.
	VLANLen = 4
	// VIDMask is the part of a tag's control information that is the VLAN ID;
	// above it are the drop-eligible bit and, in the top three bits, the priority.
	VIDMask = 0x0fff
)

// MAC is an Ethernet address.
type MAC [6]byte

// Broadcast is the address of every station.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// String is the address in the usual form, 02:00:00:00:00:01.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// MulticastMAC is the Ethernet address for a multicast group (RFC 1112, RFC 2464); ok is false if a is not
// a multicast address.
func MulticastMAC(a netip.Addr) (m MAC, ok bool) {
	a = a.Unmap()
	if !a.IsMulticast() {
		return MAC{}, false
	}
	if a.Is4() {
		b := a.As4()
		return MAC{0x01, 0x00, 0x5e, b[1] & 0x7f, b[2], b[3]}, true
	}
	b := a.As16()
	return MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}, true
}

// Ethernet is an Ethernet header, with at most one 802.1Q tag. Its zero value has no tag.
type Ethernet struct {
	Dst, Src MAC
	Tagged   bool
	TCI      uint16 // the tag's control information: priority, drop-eligible bit, VLAN ID
	Type     EtherType
}

// Len is the length of the header in bytes.
func (h *Ethernet) Len() int {
	if h.Tagged {
		return EthernetLen + VLANLen
	}
	return EthernetLen
}

// Put writes the header to the first Len bytes of b.
func (h *Ethernet) Put(b []byte) {
	*(*MAC)(b), *(*MAC)(b[6:]) = h.Dst, h.Src
	at := 12
	if h.Tagged {
		binary.BigEndian.PutUint16(b[at:], uint16(TypeVLAN))
		binary.BigEndian.PutUint16(b[at+2:], h.TCI)
		at += VLANLen
	}
	binary.BigEndian.PutUint16(b[at:], uint16(h.Type))
}

// Append adds the header to b.
func (h *Ethernet) Append(b []byte) []byte {
	var p [EthernetLen + VLANLen]byte
	h.Put(p[:])
	return append(b, p[:h.Len()]...)
}

// ParseEthernet decodes the header and returns it with what follows, which shares b's memory and may end
// in padding. The error is a *LengthError.
func ParseEthernet(b []byte) (h Ethernet, payload []byte, err error) {
	if len(b) < EthernetLen {
		return Ethernet{}, nil, short("ethernet header", len(b), EthernetLen)
	}
	h = Ethernet{Dst: MAC(b), Src: MAC(b[6:]), Type: EtherType(binary.BigEndian.Uint16(b[12:]))}
	if h.Type != TypeVLAN {
		return h, b[EthernetLen:], nil
	}
	if len(b) < EthernetLen+VLANLen {
		return Ethernet{}, nil, short("vlan tag", len(b)-EthernetLen, VLANLen)
	}
	h.Tagged, h.TCI = true, binary.BigEndian.Uint16(b[14:])
	h.Type = EtherType(binary.BigEndian.Uint16(b[16:]))
	return h, b[EthernetLen+VLANLen:], nil
}

// LengthError reports that a header or message is longer than the bytes given. Test for it with errors.As.
type LengthError struct {
	What      string
	Got, Need int // bytes
}

// Error implements error.
func (e *LengthError) Error() string {
	return fmt.Sprintf("%s is cut off: %d bytes, need %d", e.What, e.Got, e.Need)
}

func short(what string, got, need int) error { return &LengthError{what, got, need} }

// FieldError reports that a field has an impossible value. Test for it with errors.As.
type FieldError struct {
	Field string
	Got   int
	Want  string // what is allowed
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s is %d, want %s", e.Field, e.Got, e.Want) }

func bad(field string, got int, want string) error { return &FieldError{field, got, want} }
