package reach

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/wait"
)

// Forwarder is the program's side of a copier whose memory is elsewhere: what Serve carries out in its own process, it hands over, and it
// reports what came of it.
type Forwarder struct {
	m        copierMem
	issued   atomic.Uint32 // entries that were handed over
	finished func()
}

// NewForwarder returns one over the memory of CopierSize bytes that the driver created. finished notifies the loop.
func NewForwarder(mem []byte, finished func()) *Forwarder {
	return &Forwarder{m: newCopierMem(mem), finished: finished}
}

// Run hands over each entry by its index, in order, until stop is set, which it notices within wait.CopierSlice. The data of a write is
// valid until Done.
func (f *Forwarder) Run(stop *atomic.Bool, begin func(index uint32, t memory.Transfer)) {
	h, next := f.m.h, uint32(0)
	for !stop.Load() {
		issued := h.issued.Load()
		if issued == next {
			h.asleep.Store(1)
			if h.issued.Load() == next {
				shared.Sleep((*uint32)(unsafe.Pointer(&h.issued)), next, int64(wait.CopierSlice))
			}
			h.asleep.Store(0)
			continue
		}
		for ; next != issued; next++ {
			e, le := f.m.entry(next), binary.LittleEndian
			n := min(le.Uint32(e[4:]), copierPiece)
			f.issued.Store(next + 1)
			begin(next, memory.Transfer{Kind: memory.CopyKind(e[0]), Last: e[1] != 0, Addr: le.Uint64(e[8:]), Data: f.m.staging(next)[:n],
				Compare: le.Uint64(e[16:]), Swap: le.Uint64(e[24:])})
		}
	}
}

// Done reports the end of the oldest entry that was handed over: whether the memory was reached, the original value of an atomic's operand,
// and the data of a read. The error says that it is none of that.
func (f *Forwarder) Done(index uint32, reached bool, old uint64, data []byte) error {
	done := f.m.h.finished.Load()
	if index != done || f.issued.Load() == done {
		return fmt.Errorf("copy %d is reported, after %d of %d", index, done, f.issued.Load())
	}
	e, le := f.m.entry(index), binary.LittleEndian
	status := uint32(copierFault)
	if reached {
		want := 0
		if memory.CopyKind(e[0]) == memory.CopyRead {
			want = int(min(le.Uint32(e[4:]), copierPiece))
		}
		if len(data) != want {
			return fmt.Errorf("copy %d is reported with %d bytes, not %d", index, len(data), want)
		}
		copy(f.m.staging(index), data)
		le.PutUint64(e[40:], old)
		status = copierDone
	}
	le.PutUint32(e[32:], status)
	f.m.h.finished.Store(done + 1)
	f.finished()
	return nil
}

// Performer is an Accessor to another process's memory that any goroutine may use, which may take as long as whoever provides a page of it
// wants.
type Performer interface {
	// Perform makes a copy: out of t.Data or into it. It returns the original value of an atomic's operand.
	Perform(t *memory.Transfer) (old uint64, err error)
}

// Perform implements Performer.
func (p *ProcessVM) Perform(t *memory.Transfer) (old uint64, err error) {
	return p.perform(&job{Transfer: *t, staging: t.Data})
}

// Perform implements Performer.
func (r *vmRegion) Perform(t *memory.Transfer) (old uint64, err error) { return r.vm.Perform(t) }
