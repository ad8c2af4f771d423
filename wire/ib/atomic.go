package ib

import "encoding/binary"

const (
	atomicVA      = 0
	atomicRKey    = 8
	atomicSwapAdd = 12
	atomicCompare = 20
)

// AtomicETH is a view of an atomic extended transport header (IBA 9.3.4), AtomicETHLen bytes.
type AtomicETH []byte

// VA is the address of the eight bytes, which is a multiple of eight.
func (h AtomicETH) VA() uint64 { return binary.BigEndian.Uint64(h[atomicVA:]) }

// RKey names the responder's region or window.
func (h AtomicETH) RKey() uint32 { return binary.BigEndian.Uint32(h[atomicRKey:]) }

// SwapAdd is the value to store (Compare & Swap) or to add (Fetch & Add).
func (h AtomicETH) SwapAdd() uint64 { return binary.BigEndian.Uint64(h[atomicSwapAdd:]) }

// Compare is the value to compare with; Fetch & Add does not use it.
func (h AtomicETH) Compare() uint64 { return binary.BigEndian.Uint64(h[atomicCompare:]) }

// SetVA sets the address.
func (h AtomicETH) SetVA(va uint64) { binary.BigEndian.PutUint64(h[atomicVA:], va) }

// SetRKey sets the remote key.
func (h AtomicETH) SetRKey(key uint32) { binary.BigEndian.PutUint32(h[atomicRKey:], key) }

// SetSwapAdd sets the value to swap in or to add.
func (h AtomicETH) SetSwapAdd(v uint64) { binary.BigEndian.PutUint64(h[atomicSwapAdd:], v) }

// SetCompare sets the value to compare with.
func (h AtomicETH) SetCompare(v uint64) { binary.BigEndian.PutUint64(h[atomicCompare:], v) }

// Encode sets every field.
func (h AtomicETH) Encode(va uint64, rkey uint32, swapAdd, compare uint64) {
	_ = h[AtomicETHLen-1]
	h.SetVA(va)
	h.SetRKey(rkey)
	h.SetSwapAdd(swapAdd)
	h.SetCompare(compare)
}

// AtomicAckETH is a view of an atomic acknowledge extended transport header (IBA 9.3.5.3), AtomicAckETHLen bytes.
type AtomicAckETH []byte

// Original is the value in memory before the operation.
func (h AtomicAckETH) Original() uint64 { return binary.BigEndian.Uint64(h) }

// SetOriginal sets the original value.
func (h AtomicAckETH) SetOriginal(v uint64) { binary.BigEndian.PutUint64(h, v) }
