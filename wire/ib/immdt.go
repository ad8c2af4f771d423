package ib

import "encoding/binary"

// ImmDt is a view of an immediate data header (IBA 9.3.6), ImmDtLen bytes.
type ImmDt []byte

// Value is the four bytes as a big-endian number. Immediate data is opaque; the verbs pass it through in
// network order.
func (h ImmDt) Value() uint32 { return binary.BigEndian.Uint32(h) }

// SetValue sets the immediate data.
func (h ImmDt) SetValue(v uint32) { binary.BigEndian.PutUint32(h, v) }

// IETH is a view of an invalidate extended transport header (IBA 9.3.7), IETHLen bytes.
type IETH []byte

// RKey is the key that the responder is to invalidate.
func (h IETH) RKey() uint32 { return binary.BigEndian.Uint32(h) }

// SetRKey sets the key to invalidate.
func (h IETH) SetRKey(key uint32) { binary.BigEndian.PutUint32(h, key) }
