package reach

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/wait"
)

// Serve is the program's side of a copier over the memory of CopierSize bytes that the driver created: it
// executes entries until stop is set, which it notices within wait.CopierSlice. finished notifies the loop.
func Serve(mem []byte, stop *atomic.Bool, finished func()) {
	m := newCopierMem(mem)
	done := m.h.finished.Load()
	spin := wait.Spinner{Policy: wait.Of(wait.Copier)}
	for !stop.Load() {
		issued := m.h.issued.Load()
		if issued == done {
			if spin.Again(wait.Now, false) {
				continue
			}
			m.h.asleep.Store(1)
			if m.h.issued.Load() == done {
				shared.Sleep((*uint32)(unsafe.Pointer(&m.h.issued)), done, int64(wait.CopierSlice))
			}
			m.h.asleep.Store(0)
			continue
		}
		spin.Begin(wait.Now())
		for ; done != issued; done++ {
			m.carryOut(done)
			m.h.finished.Store(done + 1)
		}
		finished()
	}
}

// carryOut executes one entry.
func (m copierMem) carryOut(i uint32) {
	e := m.entry(i)
	le := binary.LittleEndian
	status := uint32(copierFault)
	n := le.Uint32(e[4:])
	if n <= copierPiece {
		old, ok := copyOwn(memory.CopyKind(e[0]), e[1] != 0, le.Uint64(e[8:]), m.staging(i)[:n], le.Uint64(e[16:]), le.Uint64(e[24:]))
		if ok {
			le.PutUint64(e[40:], old)
			status = copierDone
		}
	}
	le.PutUint32(e[32:], status)
}

// copyOwn copies between staging and this process's memory at addr. The driver only asks for memory that
// this program registered; if it is no longer mapped the copy fails.
func copyOwn(kind memory.CopyKind, last bool, addr uint64, staging []byte, compare, swap uint64) (old uint64, ok bool) {
	defer faultsArePanics(&ok)()
	switch kind {
	case memory.CopyRead, memory.CopyWrite:
		if len(staging) == 0 {
			return 0, true
		}
		if addr == 0 || addr+uint64(len(staging)) < addr {
			return 0, false
		}
		own := unsafe.Slice((*byte)(own(addr)), len(staging))
		if kind == memory.CopyRead {
			move(staging, own, false)
		} else {
			move(own, staging, last)
		}
		return 0, true
	case memory.CopyCompareSwap, memory.CopyFetchAdd:
		if addr == 0 || addr%8 != 0 {
			return 0, false
		}
		p := (*uint64)(own(addr))
		if kind == memory.CopyFetchAdd {
			return atomic.AddUint64(p, swap) - swap, true
		}
		for {
			old = atomic.LoadUint64(p)
			if old != compare || atomic.CompareAndSwapUint64(p, compare, swap) {
				return old, true
			}
		}
	}
	return 0, false
}

// own converts an address of registered, and therefore pinned, memory to a pointer.
func own(addr uint64) unsafe.Pointer {
	a := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}
