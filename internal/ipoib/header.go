package ipoib

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// HeaderLen is the length of the encapsulation header (RFC 4391 6).
const HeaderLen = 4

// maxMTU is the size of the largest IP packet: an InfiniBand MTU of 4096 minus the header (WinOF 5.50,
// 4.9.3).
const maxMTU = 4096 - HeaderLen

// minMTU is the minimum of *JumboPacket according to the manual (WinOF 5.50, 4.6.3). The subnet may allow
// less.
const minMTU = 1500

// appendHeader appends the header of a datagram that carries t to b: the type, and two reserved bytes (RFC
// 4391 6).
func appendHeader(b []byte, t eth.EtherType) []byte {
	return append(b, byte(t>>8), byte(t), 0, 0)
}

// HeaderOf returns the header for an IP packet, by the version in its first byte; ok is false if that is
// neither 4 nor 6.
func HeaderOf(packet []byte) (h [HeaderLen]byte, ok bool) {
	if len(packet) == 0 {
		return h, false
	}
	switch packet[0] >> 4 {
	case 4:
		binary.BigEndian.PutUint16(h[:], uint16(eth.TypeIPv4))
	case 6:
		binary.BigEndian.PutUint16(h[:], uint16(eth.TypeIPv6))
	default:
		return h, false
	}
	return h, true
}

// parseHeader reads the header of a datagram and returns what follows it, without copying. It ignores the
// reserved bytes, as RFC 4391 6 requires. The error is a *formatError.
func parseHeader(b []byte) (t eth.EtherType, payload []byte, err error) {
	if len(b) < HeaderLen {
		return 0, nil, &formatError{"ipoib header", len(b), "4 bytes at least"}
	}
	return eth.EtherType(binary.BigEndian.Uint16(b)), b[HeaderLen:], nil
}
