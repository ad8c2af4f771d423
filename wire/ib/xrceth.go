package ib

import "encoding/binary"

// XRCETH is a view of an extended reliable connection extended transport header (IBA annex A14.4), XRCETHLen bytes: eight
// reserved bits and the number of the shared receive queue that the request is for.
type XRCETH []byte

// SRQ is the number of the shared receive queue.
func (h XRCETH) SRQ() uint32 { return binary.BigEndian.Uint32(h) & 0xffffff }

// SetSRQ sets the number to the low 24 bits of n, and the reserved bits to 0.
func (h XRCETH) SetSRQ(n uint32) { binary.BigEndian.PutUint32(h, n&0xffffff) }
