// Package tunnel holds the headers of Ethernet frames inside IP packets: VXLAN (RFC 7348) and NVGRE (RFC 7637), which adapters
// recognize to do for the frames inside what they do for others (WinOF 5.50, 4.1.15 and 4.5.2; WinOF-2 24.4, NVGRE).
package tunnel

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
)

// Kind is how frames are put into a tunnel.
type Kind uint8

// The kinds. VXLAN is over UDP, NVGRE over IP itself.
const (
	VXLAN Kind = iota + 1
	NVGRE
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case VXLAN:
		return "VXLAN"
	case NVGRE:
		return "NVGRE"
	}
	return fmt.Sprintf("tunnel %d", uint8(k))
}

const (
	// HeaderLen is the length of either header.
	HeaderLen = 8
	// Port is the UDP port of VXLAN (RFC 7348, 5).
	Port = 4789
	// ProtocolGRE is the number of GRE as an IP protocol.
	ProtocolGRE = 47
	// MostID is the largest virtual network or subnet: they have 24 bits.
	MostID = 1<<24 - 1

	// FirstSource is the first source port of VXLAN: they are those that nobody is assigned (RFC 7348, 5).
	FirstSource = 49152

	vxlanID   = 0x08   // its only flag that counts: there is an identifier
	greKey    = 0x2000 // the only flag of NVGRE: there is a key (RFC 7637, 3.2)
	greIgnore = 0x03f8 // bits that receivers ignore (RFC 2784, 2.3): 6 to 12
	bridged   = 0x6558 // transparent Ethernet bridging
)

// Header is that of a tunnel.
type Header struct {
	Kind Kind
	// ID is the virtual network (VNI) or subnet (VSID), of 24 bits.
	ID uint32
	// Flow is NVGRE's number of the flow inside, which helps to spread flows; VXLAN has its source port for that.
	Flow uint8
}

// Append adds the header to b. An ID of more than 24 bits is cut.
func (h Header) Append(b []byte) []byte {
	if h.Kind == VXLAN {
		b = append(b, vxlanID, 0, 0, 0)
		return binary.BigEndian.AppendUint32(b, h.ID<<8)
	}
	b = binary.BigEndian.AppendUint16(b, greKey)
	b = binary.BigEndian.AppendUint16(b, bridged)
	return binary.BigEndian.AppendUint32(b, h.ID<<8|uint32(h.Flow))
}

// ParseVXLAN decodes the header at the start of a UDP payload and returns it with the frame, which shares b's memory. Bits that are
// reserved are ignored. The error is a *eth.LengthError or a *eth.FieldError.
func ParseVXLAN(b []byte) (h Header, frame []byte, err error) {
	if len(b) < HeaderLen {
		return h, nil, &eth.LengthError{What: "vxlan header", Got: len(b), Need: HeaderLen}
	}
	if b[0]&vxlanID == 0 {
		return h, nil, &eth.FieldError{Field: "vxlan flags", Got: int(b[0]), Want: "some with 0x08"}
	}
	return Header{Kind: VXLAN, ID: binary.BigEndian.Uint32(b[4:]) >> 8}, b[HeaderLen:], nil
}

// ParseNVGRE decodes the header at the start of an IP payload and returns it with the frame, which shares b's memory. The error is
// a *eth.LengthError or a *eth.FieldError: GRE with a checksum, a sequence number or another protocol is not NVGRE.
func ParseNVGRE(b []byte) (h Header, frame []byte, err error) {
	if len(b) < HeaderLen {
		return h, nil, &eth.LengthError{What: "nvgre header", Got: len(b), Need: HeaderLen}
	}
	if f := binary.BigEndian.Uint16(b) &^ greIgnore; f != greKey {
		return h, nil, &eth.FieldError{Field: "gre flags and version", Got: int(f), Want: "0x2000: a key alone, version 0"}
	}
	if p := binary.BigEndian.Uint16(b[2:]); p != bridged {
		return h, nil, &eth.FieldError{Field: "gre protocol", Got: int(p), Want: "0x6558: Ethernet"}
	}
	k := binary.BigEndian.Uint32(b[4:])
	return Header{Kind: NVGRE, ID: k >> 8, Flow: uint8(k)}, b[HeaderLen:], nil
}

// Recognition says which tunnels are looked for.
type Recognition struct {
	// VXLANPort is the UDP destination port of VXLAN; 0: it is not looked for.
	VXLANPort uint16
	NVGRE     bool
}

// Frame is a frame with another in a tunnel. All places are from the start of the outer frame.
type Frame struct {
	Header
	Outer, Inner eth.Headers
	// At is where the frame inside begins.
	At int
}

// Find looks for a tunnel in a frame with these headers. The frame inside has a whole Ethernet header then, and ends where the
// outer datagram or packet does. Fragments of a packet are no tunnel.
func (f *Frame) Find(h *eth.Headers, b []byte, r Recognition) bool {
	if h.Version == 0 || h.Fragment {
		return false
	}
	var rest []byte
	var err error
	switch {
	case h.Protocol == eth.ProtocolUDP && h.Data != 0 && r.VXLANPort != 0:
		udp := eth.UDP(b[h.Transport:])
		if udp.DstPort() != r.VXLANPort {
			return false
		}
		f.Header, rest, err = ParseVXLAN(b[h.Data : h.Transport+udp.Length()])
		f.At = h.Data + HeaderLen
	case h.Protocol == ProtocolGRE && r.NVGRE:
		f.Header, rest, err = ParseNVGRE(b[h.Transport:h.End])
		f.At = h.Transport + HeaderLen
	default:
		return false
	}
	if err != nil || !f.Inner.Parse(rest) {
		return false
	}
	f.Outer = *h
	shift(&f.Inner, f.At)
	return true
}

// shift moves the places of the headers inside to those from the start of the outer frame.
func shift(h *eth.Headers, by int) {
	h.Network += by
	for _, at := range [...]*int{&h.Transport, &h.End, &h.Data, &h.HomeAddress, &h.Routing} {
		if *at != 0 {
			*at += by
		}
	}
}
