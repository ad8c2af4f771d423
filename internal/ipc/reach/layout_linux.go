package reach

import (
	"sync/atomic"
	"unsafe"
)

// The copier's shared memory: a header, copierSlots entries of 64 bytes, and from copierStaging on a
// staging area for each entry. The driver fills entries, the client executes them in order.
const (
	copierSlots   = 64
	copierEntry   = 64
	copierEntries = 256
	copierStaging = 8192
	copierPiece   = 64 << 10

	// CopierSize is the size of a copier's memory in bytes.
	CopierSize = copierStaging + copierSlots*copierPiece
)

// copierHeader begins the copier's shared memory.
type copierHeader struct {
	issued   atomic.Uint32 // entries filled by the driver; futex word
	_        [60]byte
	finished atomic.Uint32 // entries executed by the client
	_        [60]byte
	asleep   atomic.Uint32 // 128: the client sleeps on issued
	_        [124]byte
}

// The results of an entry.
const (
	copierDone  = 1
	copierFault = 2
)

// copierMem is the layout over the mapped memory.
type copierMem struct {
	mapped []byte
	mem    []byte
	h      *copierHeader
}

func newCopierMem(mem []byte) copierMem {
	return copierMem{mem, mem[:CopierSize:CopierSize], (*copierHeader)(unsafe.Pointer(&mem[0]))}
}

func (m copierMem) entry(i uint32) []byte {
	off := copierEntries + int(i%copierSlots)*copierEntry
	return m.mem[off : off+copierEntry : off+copierEntry]
}

func (m copierMem) staging(i uint32) []byte {
	off := copierStaging + int(i%copierSlots)*copierPiece
	return m.mem[off : off+copierPiece : off+copierPiece]
}
