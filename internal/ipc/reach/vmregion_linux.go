package reach

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/memory"
)

const (
	// patience is how long the loop waits for a page that is not there: most are there very soon, because
	// the kernel only has to clear one or to read it back from swap. A program that has used it up gets no
	// more of it for patienceRest.
	patience     = 2 * time.Millisecond
	patienceRest = time.Second
	// lookTime is how long what a look found counts: a look costs half of what a small copy does.
	lookTime = 20 * time.Microsecond
	// lookPages is how many pages are looked at together.
	lookPages = 64
	// warmPages is how many pages are made before they are needed: after the first of a region, and after one that was
	// not there.
	warmPages = 512
)

// Bits of an entry of /proc/PID/pagemap (the kernel's Documentation/admin-guide/mm/pagemap.rst).
const (
	pagePresent   = 1 << 63
	pageProtected = 1 << 57 // by a userfaultfd, which decides when somebody may write
)

var pageSize = uint64(os.Getpagesize())

// vmRegion is an Accessor over process_vm_readv and process_vm_writev. What is in memory is copied within the
// call: only a program that takes a page away between the look at it and the copy can still hold the loop. For
// pages that are not, another thread makes the copy, and the loop waits for it a little; if it takes
// longer the region becomes a memory.Deferred, until what was started has ended. Only the loop may use it.
//
// Memory that was never touched is not there either, though nobody holds it back. So that this rarely takes the way of
// another thread, a thread makes some pages ahead of their use, when the region is registered and when one was missing.
type vmRegion struct {
	vm       *ProcessVM
	mover    mover
	patience time.Duration
	end      uint64      // after the region
	warming  atomic.Bool // pages are being made
	slow     bool

	block   uint64 // number of the lookPages pages that were looked at last
	known   int    // bytes of entries
	looked  time.Time
	entries [lookPages * 8]byte
}

var (
	_ memory.Gathering  = (*vmRegion)(nil)
	_ memory.LastWriter = (*vmRegion)(nil)
	_ memory.Deferred   = (*vmRegion)(nil)
)

func newVMRegion(p *ProcessVM) *vmRegion {
	return &vmRegion{vm: p, mover: mover{vm: p, time: moverTime}, patience: patience}
}

// Blocking implements memory.Accessor.
func (r *vmRegion) Blocking() bool { return !r.slow }

// Read implements memory.Accessor.
func (r *vmRegion) Read(dst []byte, addr uint64) error {
	if r.resident(addr, len(dst), false) {
		return r.vm.move(unix.SYS_PROCESS_VM_READV, dst, addr)
	}
	return r.await(&memory.Transfer{Kind: memory.CopyRead, Addr: addr, Data: dst})
}

// Write implements memory.Accessor.
func (r *vmRegion) Write(addr uint64, src []byte) error {
	if r.resident(addr, len(src), true) {
		return r.vm.move(unix.SYS_PROCESS_VM_WRITEV, src, addr)
	}
	return r.await(&memory.Transfer{Kind: memory.CopyWrite, Addr: addr, Data: src})
}

// WriteLast implements memory.LastWriter, with one look at the pages.
func (r *vmRegion) WriteLast(addr uint64, src []byte) error {
	if r.resident(addr, len(src), true) {
		return r.vm.writeLast(src, addr)
	}
	return r.await(&memory.Transfer{Kind: memory.CopyWrite, Last: true, Addr: addr, Data: src})
}

// WriteAll implements memory.Gathering.
func (r *vmRegion) WriteAll(pieces []memory.Piece) (int, error) {
	done := 0
	for done < len(pieces) {
		there := done
		for most := min(len(pieces), done+vmVectors); there < most; {
			next, n := run(pieces[there:most])
			if !r.resident(pieces[there].Addr, n, true) {
				break
			}
			there += next
		}
		if there == done {
			if err := r.Write(pieces[done].Addr, pieces[done].Data); err != nil {
				return done, err
			}
			done++
			continue
		}
		n, err := r.vm.writeSome(pieces[done:there])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// run returns how many pieces, from the first, follow each other in memory, and their bytes.
func run(pieces []memory.Piece) (n, bytes int) {
	at := pieces[0].Addr
	for n < len(pieces) && pieces[n].Addr == at+uint64(bytes) {
		bytes += len(pieces[n].Data)
		n++
	}
	return n, bytes
}

// resident reports whether a range can be copied within the call.
func (r *vmRegion) resident(addr uint64, n int, write bool) bool {
	return !r.slow && r.there(addr, n, write)
}

// there reports whether all pages of a range are in memory, so that a copy need not wait for anybody.
func (r *vmRegion) there(addr uint64, n int, write bool) bool {
	f := r.vm.pagemap.Load()
	if f == nil || n == 0 {
		return true
	}
	end := addr + uint64(n)
	if end < addr {
		return true // the call itself refuses it
	}
	now := time.Now()
	for page, to := addr/pageSize, (end-1)/pageSize+1; page < to; {
		block := page / lookPages
		next := min(to, (block+1)*lookPages)
		fresh := block == r.block && now.Sub(r.looked) < lookTime
		if (!fresh || !r.found(page, next, write)) && (!r.look(f, block, now) || !r.found(page, next, write)) {
			return false
		}
		page = next
	}
	return true
}

// look reads the entries of a block of pages.
func (r *vmRegion) look(f *os.File, block uint64, now time.Time) bool {
	n, _ := f.ReadAt(r.entries[:], int64(block*lookPages*8))
	r.block, r.known, r.looked = block, n, now
	return n > 0
}

// found reports whether the last look found all of these pages, which are of the block.
func (r *vmRegion) found(page, to uint64, write bool) bool {
	from, end := int(page%lookPages)*8, int((to-1)%lookPages+1)*8
	if end > r.known {
		return false
	}
	for i := from; i < end; i += 8 {
		if e := binary.NativeEndian.Uint64(r.entries[i:]); e&pagePresent == 0 || write && e&pageProtected != 0 {
			return false
		}
	}
	return true
}

// warm lets another thread make the pages from addr on, as far as they belong to the region.
func (r *vmRegion) warm(addr uint64) {
	end := min(r.end, addr+warmPages*pageSize)
	if end <= addr || r.warming.Swap(true) {
		return
	}
	if !r.vm.begin(func() {
		r.vm.touch(addr, end)
		r.warming.Store(false)
	}) {
		r.warming.Store(false)
	}
}

// await lets another thread make a copy, and waits for it a little.
func (r *vmRegion) await(t *memory.Transfer) error {
	if r.slow {
		return memory.ErrBlock
	}
	if now := time.Now(); now.Sub(r.vm.waited) < patienceRest {
		r.slow = true // it takes the way of those that do not wait
		return memory.ErrBlock
	}
	j := newJob(t)
	j.done = make(chan struct{})
	if err := r.mover.add(j); err != nil {
		return err
	}
	timer := time.NewTimer(r.patience)
	defer timer.Stop()
	select {
	case <-j.done:
		j.deliver()
		r.looked = time.Time{}
		r.warm((t.Addr + uint64(len(t.Data)) + pageSize - 1) &^ (pageSize - 1))
		return j.err
	case <-timer.C:
		r.slow, r.vm.waited = true, time.Now()
		return memory.ErrBlock
	}
}

// Limit implements memory.Deferred.
func (r *vmRegion) Limit() int { return copierPiece }

// Start implements memory.Deferred. It accepts every transfer. One that cannot be made ends at once, and so
// does one that need not wait, when none before it does.
func (r *vmRegion) Start(t *memory.Transfer) bool {
	j := newJob(t)
	if r.mover.free() && r.there(t.Addr, max(len(t.Data), 8), t.Kind != memory.CopyRead) {
		j.old, j.err = r.vm.perform(j)
		r.mover.over(j)
	} else if err := r.mover.add(j); err != nil {
		j.err = err
		r.mover.over(j)
	}
	return true
}

// Flush implements memory.Deferred.
func (r *vmRegion) Flush() {}

// Finish implements memory.Deferred. Once nothing is left the region is as it was at first.
func (r *vmRegion) Finish(out []memory.Finished) int {
	n := r.mover.finish(out)
	if n > 0 && r.mover.idle() {
		r.slow = false
	}
	return n
}
