package lacp

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// Marker is a marker, or the response to one: what was sent before it has been collected (6.5.3.3).
type Marker struct {
	Response bool
	// Port, System and Transaction are the requester's, and come back in the response.
	Port        uint16
	System      eth.MAC
	Transaction uint32
}

// ParseMarker reads a marker: what follows the Ethernet header of a frame. The error is an *Error.
func ParseMarker(b []byte) (m Marker, err error) {
	switch {
	case len(b) < markerUsed:
		return m, bad("length", len(b), "18 or more")
	case Subtype(b[0]) != SubtypeMarker:
		return m, bad("subtype", b[0], "2")
	case b[1] == 0:
		return m, bad("version", b[1], "1 or more")
	case b[2] != tlvMarker && b[2] != tlvMarkerResponse:
		return m, bad("marker TLV type", b[2], "1 or 2")
	case b[3] != lenMarker:
		return m, bad("marker length", b[3], "16")
	}
	m.Response = b[2] == tlvMarkerResponse
	m.Port = binary.BigEndian.Uint16(b[4:])
	m.System = eth.MAC(b[6:])
	m.Transaction = binary.BigEndian.Uint32(b[12:])
	return m, nil
}

// Frame returns the Ethernet frame of a marker from a port.
func (m *Marker) Frame(src eth.MAC) []byte {
	f, b := frame(src, SubtypeMarker, 1)
	b[2], b[3] = tlvMarker, lenMarker
	if m.Response {
		b[2] = tlvMarkerResponse
	}
	binary.BigEndian.PutUint16(b[4:], m.Port)
	copy(b[6:], m.System[:])
	binary.BigEndian.PutUint32(b[12:], m.Transaction)
	return f
}
