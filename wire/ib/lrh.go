package ib

import "encoding/binary"

const (
	lrhVL     = 0 // virtual lane, link version
	lrhSL     = 1 // service level, reserved, link next header
	lrhDLID   = 2
	lrhPktLen = 4
	lrhSLID   = 6
)

// LID is a local identifier: the address of a port inside one InfiniBand subnet.
type LID uint16

// The LIDs that no port has (IBA 4.1.3).
const (
	LIDMaxUnicast     LID = 0xbfff
	LIDFirstMulticast LID = 0xc000
	LIDPermissive     LID = 0xffff // accepted by any receiver; used at both ends of directed routes
)

// Values of the link next header field (IBA 7.7.5).
const (
	LNHRaw    = 0 // raw, ethertype
	LNHIPv6   = 1 // raw, IPv6
	LNHLocal  = 2 // a BTH follows
	LNHGlobal = 3 // a GRH follows
)

// LRH is a view of a local route header (IBA 7.7), LRHLen bytes. InfiniBand links carry it; RoCE does not.
type LRH []byte

// VL is the virtual lane, four bits.
func (h LRH) VL() uint8 { return h[lrhVL] >> 4 }

// Version is the link version, which is 0.
func (h LRH) Version() uint8 { return h[lrhVL] & 0x0f }

// SL is the service level, four bits.
func (h LRH) SL() uint8 { return h[lrhSL] >> 4 }

// NextHeader is one of the LNH values.
func (h LRH) NextHeader() uint8 { return h[lrhSL] & 3 }

// DLID is the destination.
func (h LRH) DLID() LID { return LID(binary.BigEndian.Uint16(h[lrhDLID:])) }

// PktLen is the length in four-byte words from the LRH to the ICRC, both included; 11 bits.
func (h LRH) PktLen() int { return int(binary.BigEndian.Uint16(h[lrhPktLen:]) & 0x7ff) }

// SLID is the source.
func (h LRH) SLID() LID { return LID(binary.BigEndian.Uint16(h[lrhSLID:])) }

// SetVL sets the virtual lane.
func (h LRH) SetVL(v uint8) { h[lrhVL] = v<<4 | h[lrhVL]&0x0f }

// SetVersion sets the link version.
func (h LRH) SetVersion(v uint8) { h[lrhVL] = h[lrhVL]&0xf0 | v&0x0f }

// SetSL sets the service level.
func (h LRH) SetSL(v uint8) { h[lrhSL] = v<<4 | h[lrhSL]&0x0f }

// SetNextHeader sets the link next header.
func (h LRH) SetNextHeader(v uint8) { h[lrhSL] = h[lrhSL]&^3 | v&3 }

// SetDLID sets the destination.
func (h LRH) SetDLID(l LID) { binary.BigEndian.PutUint16(h[lrhDLID:], uint16(l)) }

// SetPktLen sets the length in words and the reserved bits above it to zero.
func (h LRH) SetPktLen(n int) { binary.BigEndian.PutUint16(h[lrhPktLen:], uint16(n)&0x7ff) }

// SetSLID sets the source.
func (h LRH) SetSLID(l LID) { binary.BigEndian.PutUint16(h[lrhSLID:], uint16(l)) }
