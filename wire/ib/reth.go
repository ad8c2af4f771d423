package ib

import "encoding/binary"

const (
	rethVA     = 0
	rethRKey   = 8
	rethDMALen = 12
)

// RETH is a view of an RDMA extended transport header (IBA 9.3.3), RETHLen bytes.
type RETH []byte

// VA is the virtual address in the responder's region.
func (h RETH) VA() uint64 { return binary.BigEndian.Uint64(h[rethVA:]) }

// RKey names the responder's region or window.
func (h RETH) RKey() uint32 { return binary.BigEndian.Uint32(h[rethRKey:]) }

// DMALen is the length in bytes of the whole operation, not of this packet.
func (h RETH) DMALen() uint32 { return binary.BigEndian.Uint32(h[rethDMALen:]) }

// SetVA sets the virtual address.
func (h RETH) SetVA(va uint64) { binary.BigEndian.PutUint64(h[rethVA:], va) }

// SetRKey sets the remote key.
func (h RETH) SetRKey(key uint32) { binary.BigEndian.PutUint32(h[rethRKey:], key) }

// SetDMALen sets the length of the operation.
func (h RETH) SetDMALen(n uint32) { binary.BigEndian.PutUint32(h[rethDMALen:], n) }

// Encode sets every field.
func (h RETH) Encode(va uint64, rkey, dmaLen uint32) {
	_ = h[RETHLen-1]
	h.SetVA(va)
	h.SetRKey(rkey)
	h.SetDMALen(dmaLen)
}
