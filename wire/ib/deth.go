package ib

import "encoding/binary"

const (
	dethQKey  = 0
	dethSrcQP = 5
)

// DETH is a view of a datagram extended transport header (IBA 9.3.2), DETHLen bytes.
type DETH []byte

// QKey is the queue key, which must match the receiving queue pair's.
func (h DETH) QKey() uint32 { return binary.BigEndian.Uint32(h[dethQKey:]) }

// SrcQP is the queue pair that sent the datagram.
func (h DETH) SrcQP() QPN { return QPN(get24(h[dethSrcQP:])) }

// SetQKey sets the queue key.
func (h DETH) SetQKey(key uint32) { binary.BigEndian.PutUint32(h[dethQKey:], key) }

// SetSrcQP sets the source queue pair and leaves the reserved byte as it is.
func (h DETH) SetSrcQP(q QPN) { put24(h[dethSrcQP:], uint32(q)) }

// Encode sets every field, and the reserved byte to zero.
func (h DETH) Encode(qkey uint32, src QPN) {
	_ = h[DETHLen-1]
	binary.BigEndian.PutUint32(h[dethQKey:], qkey)
	binary.BigEndian.PutUint32(h[4:], uint32(src)&0xffffff)
}
