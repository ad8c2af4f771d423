package memory

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// CompareSwap stores swap at addr if the operand there equals compare, and returns the original value (IBA
// 9.4.5). In mapped memory it is atomic with respect to every processor; through an Accessor only with
// respect to the loop's other operations. The operand is in the machine's byte order and must be aligned
// to 8 bytes, both in the region's addresses and in memory.
func (r *Region) CompareSwap(addr, compare, swap uint64) (old uint64, err error) {
	off, err := r.operand(addr)
	if err != nil {
		return 0, err
	}
	if r.Remote != nil {
		return r.modify(off, func(v uint64) (uint64, bool) { return swap, v == compare })
	}
	p := (*uint64)(unsafe.Pointer(&r.Bytes[off]))
	for {
		old = atomic.LoadUint64(p)
		if old != compare || atomic.CompareAndSwapUint64(p, compare, swap) {
			return old, nil
		}
	}
}

// FetchAdd adds add to the operand at addr and returns the original value; otherwise like CompareSwap.
func (r *Region) FetchAdd(addr, add uint64) (old uint64, err error) {
	off, err := r.operand(addr)
	if err != nil {
		return 0, err
	}
	if r.Remote != nil {
		return r.modify(off, func(v uint64) (uint64, bool) { return v + add, true })
	}
	p := (*uint64)(unsafe.Pointer(&r.Bytes[off]))
	return atomic.AddUint64(p, add) - add, nil
}

// StoreWord stores the 8 bytes of b at addr in one piece (IBA annex A19, atomic write); otherwise like CompareSwap.
func (r *Region) StoreWord(addr uint64, b []byte) error {
	off, err := r.operand(addr)
	if err != nil {
		return err
	}
	if r.Remote != nil {
		return r.Remote.Write(r.Base+off, b[:8])
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&r.Bytes[off])), binary.NativeEndian.Uint64(b))
	return nil
}

func (r *Region) operand(addr uint64) (off uint64, err error) {
	if addr%8 != 0 {
		return 0, ErrAlign
	}
	if off, err = r.reach(addr, 8); err != nil {
		return 0, err
	}
	if r.Remote == nil && uintptr(unsafe.Pointer(&r.Bytes[off]))%8 != 0 {
		return 0, ErrAlign
	}
	return off, nil
}

func (r *Region) modify(off uint64, f func(uint64) (uint64, bool)) (uint64, error) {
	var b [8]byte
	if err := r.Remote.Read(b[:], r.Base+off); err != nil {
		return 0, err
	}
	old := binary.NativeEndian.Uint64(b[:])
	v, store := f(old)
	if !store {
		return old, nil
	}
	binary.NativeEndian.PutUint64(b[:], v)
	return old, r.Remote.Write(r.Base+off, b[:])
}
