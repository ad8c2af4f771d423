package direct

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
)

// Key is a row of a program's key table: one memory region. The driver writes it; the program and its
// neighbours read it. Key is stored last and cleared first.
type Key struct {
	Key     uint32 // lkey and rkey; 0: no region
	Adapter uint32
	PD      uint32
	Access  uint32 // memory.Access bits
	Start   uint64 // the region's address of its first byte: 0 if it is zero-based
	Length  uint64
	Address uint64 // of the first byte in the program
	Segment uint32 // the segment that contains it; 0: none, only the program itself can access it
	_       uint32
	Offset  uint64 // of the first byte in the segment
	_       uint64
}

const (
	// tableKeys is the number of rows of a key table.
	tableKeys = 8192
	// tableProbes is how many rows from key>>8 on may hold a key.
	tableProbes = 8
	// TableSize is the size of a key table in bytes.
	TableSize = tableKeys * keySize
	keySize   = int(unsafe.Sizeof(Key{}))
)

// Table is a key table.
type Table struct{ rows *[tableKeys]Key }

// OpenTable opens the table in b, which must have been zeroed.
func OpenTable(b []byte) (Table, error) {
	if len(b) < TableSize || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
		return Table{}, fmt.Errorf("%w: key table of %d bytes, want %d at a multiple of 64", errLayout, len(b), TableSize)
	}
	return Table{(*[tableKeys]Key)(unsafe.Pointer(&b[0]))}, nil
}

// Find returns the region for an adapter's key, nil if there is none. The row does not change while the
// caller is in the middle of an operation.
func (t Table) Find(adapter, key uint32) *Key {
	if key == 0 {
		return nil
	}
	for i := range uint32(tableProbes) {
		k := &t.rows[(key>>8+i)%tableKeys]
		if atomic.LoadUint32(&k.Key) == key && k.Adapter == adapter {
			return k
		}
	}
	return nil
}

// Add enters a region; false: there is no free row for it, and it cannot be accessed directly. Driver side
// only.
func (t Table) Add(k Key) bool {
	for i := range uint32(tableProbes) {
		row := &t.rows[(k.Key>>8+i)%tableKeys]
		if row.Key != 0 {
			continue
		}
		key := k.Key
		k.Key = 0
		*row = k
		atomic.StoreUint32(&row.Key, key)
		return true
	}
	return false
}

// Remove removes a region. An operation in progress may still use it: neither the row nor the memory may
// be reused before all programs have been seen outside operations. Driver side only.
func (t Table) Remove(adapter, key uint32) {
	if k := t.Find(adapter, key); k != nil {
		atomic.StoreUint32(&k.Key, 0)
	}
}

// offset returns the offset of addr in the region; ok if n bytes from there are inside the region, and it
// has the domain and the rights needed.
func (k *Key) offset(pd uint32, addr, n uint64, need memory.Access) (uint64, bool) {
	off := addr - k.Start
	ok := k.PD == pd && memory.Access(k.Access)&need == need && off <= k.Length && n <= k.Length-off
	return off, ok
}
