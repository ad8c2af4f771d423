package ipc

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/memory"
)

// The copier's shared memory: a header, copierSlots entries of 64 bytes, and
// from copierStaging on one piece of staging memory for each entry. The driver
// fills entries, the client carries them out in order.
const (
	copierSlots   = 64
	copierEntry   = 64
	copierEntries = 256
	copierStaging = 8192
	copierPiece   = 64 << 10
	copierSize    = copierStaging + copierSlots*copierPiece
)

// copierHeader begins the copier's shared memory.
type copierHeader struct {
	issued   atomic.Uint32 // 0: entries that the driver filled; futex word
	_        [60]byte
	finished atomic.Uint32 // 64: entries that the client carried out
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
	return copierMem{mem, mem[:copierSize:copierSize], (*copierHeader)(unsafe.Pointer(&mem[0]))}
}

func (m copierMem) entry(i uint32) []byte {
	off := copierEntries + int(i%copierSlots)*copierEntry
	return m.mem[off : off+copierEntry : off+copierEntry]
}

func (m copierMem) staging(i uint32) []byte {
	off := copierStaging + int(i%copierSlots)*copierPiece
	return m.mem[off : off+copierPiece : off+copierPiece]
}

// copier is the driver's side: an Accessor that never waits. The loop calls
// Start and Finish; a watchdog calls expire.
type copier struct {
	copierMem
	started  uint32 // entries filled
	reported uint32 // entries whose end was told
	open     [copierSlots]memory.Transfer
	dead     atomic.Bool

	// For the watchdog.
	atStart  atomic.Uint32
	lastSeen uint32
	since    time.Time

	users atomic.Int32 // regions, and the session while it lasts; the last unmaps
}

var _ memory.Deferred = (*copier)(nil)

func newCopier(mem []byte) *copier {
	c := &copier{copierMem: newCopierMem(mem)}
	c.users.Store(1)
	return c
}

// Blocking implements memory.Accessor: it never finishes within a call.
func (c *copier) Blocking() bool { return false }

// Read implements memory.Accessor; it is refused.
func (c *copier) Read([]byte, uint64) error { return memory.ErrBlock }

// Write implements memory.Accessor; it is refused.
func (c *copier) Write(uint64, []byte) error { return memory.ErrBlock }

// Limit implements memory.Deferred.
func (c *copier) Limit() int { return copierPiece }

// Start implements memory.Deferred.
func (c *copier) Start(t *memory.Transfer) bool {
	if c.started-c.reported >= copierSlots {
		return false
	}
	i := c.started
	c.open[i%copierSlots] = *t
	c.started++
	if c.dead.Load() {
		return true
	}
	e := c.entry(i)
	le := binary.LittleEndian
	clear(e)
	n := len(t.Data)
	if n > copierPiece { // reported as failed, in its turn
		n = 0
		c.open[i%copierSlots].Kind = 0
	}
	e[0] = byte(c.open[i%copierSlots].Kind)
	if t.Last {
		e[1] = 1
	}
	le.PutUint32(e[4:], uint32(n))
	le.PutUint64(e[8:], t.Addr)
	le.PutUint64(e[16:], t.Compare)
	le.PutUint64(e[24:], t.Swap)
	if t.Kind == memory.CopyWrite {
		copy(c.staging(i), t.Data[:n])
	}
	c.atStart.Store(c.started)
	c.h.issued.Store(c.started)
	if c.h.asleep.Load() != 0 && c.h.asleep.Swap(0) != 0 {
		wakeWord((*uint32)(unsafe.Pointer(&c.h.issued)))
	}
	return true
}

// Finish implements memory.Deferred.
func (c *copier) Finish(out []memory.Finished) int {
	if c.started == c.reported {
		return 0
	}
	n := 0
	finished := c.reported
	if !c.dead.Load() {
		finished = c.h.finished.Load()
	}
	if finished-c.reported > c.started-c.reported {
		c.dead.Store(true) // the client wrote nonsense
	}
	for n < len(out) && c.reported != c.started {
		dead := c.dead.Load()
		if !dead && finished == c.reported {
			break
		}
		out[n] = c.result(c.reported, dead)
		c.open[c.reported%copierSlots] = memory.Transfer{}
		c.reported++
		n++
	}
	return n
}

func (c *copier) result(i uint32, dead bool) memory.Finished {
	t := &c.open[i%copierSlots]
	f := memory.Finished{Tag: t.Tag}
	if dead {
		f.Err = memory.ErrGone
		return f
	}
	e := c.entry(i)
	if binary.LittleEndian.Uint32(e[32:]) != copierDone || t.Kind == 0 {
		f.Err = fmt.Errorf("%w: the client's copier could not reach it", memory.ErrGone)
		return f
	}
	f.Old = binary.LittleEndian.Uint64(e[40:])
	if t.Kind == memory.CopyRead {
		copy(t.Data, c.staging(i))
	}
	return f
}

// end makes every open and later transfer fail.
func (c *copier) end() { c.dead.Store(true) }

// expire reports whether the client's side has not moved for d although there
// was something to do. The watchdog calls it, regularly.
func (c *copier) expire(now time.Time, d time.Duration) bool {
	finished := c.h.finished.Load()
	if finished != c.lastSeen || finished == c.atStart.Load() || c.since.IsZero() {
		c.lastSeen, c.since = finished, now
		return false
	}
	return now.Sub(c.since) >= d
}

func (c *copier) reach(command.RegisterMemory) (device.Reached, error) {
	c.users.Add(1)
	return device.Reached{Remote: c, Path: PathCopier, Release: sync.OnceFunc(c.leave)}, nil
}

// close ends the copier; its memory goes when no region uses it any more.
func (c *copier) close() {
	c.end()
	c.leave()
}

func (c *copier) leave() {
	if c.users.Add(-1) == 0 {
		_ = unix.Munmap(c.mapped)
	}
}

// The client's side.

// serveCopies carries out entries until stop is set. wake tells the loop when it
// sleeps. Waits are slices of at most 50 ms, so that stop is seen.
func (m copierMem) serveCopies(stop *atomic.Bool, wake func()) {
	done := m.h.finished.Load()
	idle := 0
	for !stop.Load() {
		issued := m.h.issued.Load()
		if issued == done {
			if idle++; idle < 64 {
				yieldProcessor()
				continue
			}
			m.h.asleep.Store(1)
			if m.h.issued.Load() == done {
				sleepOnWord((*uint32)(unsafe.Pointer(&m.h.issued)), done, int64(50*time.Millisecond))
			}
			m.h.asleep.Store(0)
			continue
		}
		idle = 0
		for ; done != issued; done++ {
			m.carryOut(done)
			m.h.finished.Store(done + 1)
		}
		wake()
	}
}

// carryOut does one entry.
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

// copyOwn copies between staging and this process's memory at addr. The driver
// asks only for memory that this program registered; where that is not mapped any
// more the copy fails.
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
		switch {
		case kind == memory.CopyRead:
			copy(staging, own)
		case last:
			memory.Place(own, staging)
		default:
			copy(own, staging)
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

// own makes a pointer of an address of registered, and therefore pinned, memory.
func own(addr uint64) unsafe.Pointer {
	a := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}

// newProbe makes the page that the driver probes.
func newProbe() ([]byte, error) {
	return unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}
