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

// maxQueued bounds the copies that a program's copier is behind with. A program
// that is further behind is disconnected: waiting for it would hold others up.
const maxQueued = 1 << 14

// copier is the driver's side of a program's copier. The loop calls it through
// the lanes, a watchdog calls expire.
type copier struct {
	copierMem
	started  uint32 // entries filled
	rung     uint32 // of them, those that the program was told of
	reported uint32 // entries whose end is in a lane
	open     [copierSlots]copyInFlight
	queue    []copyInFlight // what the entries have no room for
	head     int            // first of queue
	dead     atomic.Bool

	// For the watchdog.
	atStart  atomic.Uint32
	lastSeen uint32
	since    time.Time

	users atomic.Int32 // lanes, and the session while it lasts; the last unmaps
	mu    sync.Mutex
	lanes map[command.Handle]*lane
}

type copyInFlight struct {
	memory.Transfer
	lane *lane
	more []uint64 // tags of the transfers that were merged into it
}

// lane is an Accessor over a copier, one for each PD: the adapters that a
// program uses share its copier, and each must get back what it started.
type lane struct {
	c     *copier
	users int // regions; under copier.mu
	done  []memory.Finished
	head  int
}

var _ memory.Deferred = (*lane)(nil)

func newCopier(mem []byte) *copier {
	c := &copier{copierMem: newCopierMem(mem), lanes: map[command.Handle]*lane{}}
	c.users.Store(1)
	return c
}

// Blocking implements memory.Accessor: it never finishes within a call.
func (l *lane) Blocking() bool { return false }

// Read implements memory.Accessor; it is refused.
func (l *lane) Read([]byte, uint64) error { return memory.ErrBlock }

// Write implements memory.Accessor; it is refused.
func (l *lane) Write(uint64, []byte) error { return memory.ErrBlock }

// Limit implements memory.Deferred.
func (l *lane) Limit() int { return copierPiece }

// Start implements memory.Deferred. It takes every transfer: one that waits for a
// slow program must not stand in the way of another program's.
func (l *lane) Start(t *memory.Transfer) bool {
	c := l.c
	f := copyInFlight{Transfer: *t, lane: l}
	if len(f.Data) > copierPiece {
		f.Kind, f.Data = 0, nil // fails in its turn
	}
	switch {
	case c.dead.Load():
		l.end(t, memory.ErrGone)
	case c.head == len(c.queue) && (c.merge(&f) || c.issue(&f)):
	case len(c.queue)-c.head >= maxQueued:
		c.dead.Store(true)
		l.end(t, memory.ErrGone)
	default:
		c.queue = append(c.queue, f)
	}
	return true
}

// Flush implements memory.Deferred.
func (l *lane) Flush() { l.c.ring() }

// Finish implements memory.Deferred.
func (l *lane) Finish(out []memory.Finished) int {
	l.c.collect()
	n := copy(out, l.done[l.head:])
	l.head += n
	if l.head == len(l.done) {
		l.done, l.head = l.done[:0], 0
	}
	return n
}

func (l *lane) end(t *memory.Transfer, err error) {
	l.done = append(l.done, memory.Finished{Tag: t.Tag, Err: err})
}

// merge adds a write to the youngest entry, where it goes on right behind that one and
// the program was not told of it yet.
func (c *copier) merge(f *copyInFlight) bool {
	if c.started == c.rung {
		return false
	}
	i := c.started - 1
	into := &c.open[i%copierSlots]
	n := len(into.Data)
	if f.Kind != memory.CopyWrite || into.Kind != memory.CopyWrite || into.Last || into.lane != f.lane ||
		into.Addr+uint64(n) != f.Addr || n+len(f.Data) > copierPiece {
		return false
	}
	into.Data = c.staging(i)[:n+copy(c.staging(i)[n:], f.Data)]
	into.Last = f.Last
	into.more = append(into.more, f.Tag)
	c.describe(i)
	return true
}

// issue fills the next entry, where there is a free one.
func (c *copier) issue(f *copyInFlight) bool {
	i := c.started
	if i-c.reported == copierSlots {
		return false
	}
	o := &c.open[i%copierSlots]
	o.Transfer, o.lane = f.Transfer, f.lane
	if f.Kind == memory.CopyWrite {
		copy(c.staging(i), f.Data)
	}
	c.describe(i)
	c.started++
	return true
}

// describe writes entry i.
func (c *copier) describe(i uint32) {
	f := &c.open[i%copierSlots]
	e := c.entry(i)
	le := binary.LittleEndian
	clear(e)
	e[0] = byte(f.Kind)
	if f.Last {
		e[1] = 1
	}
	le.PutUint32(e[4:], uint32(len(f.Data)))
	le.PutUint64(e[8:], f.Addr)
	le.PutUint64(e[16:], f.Compare)
	le.PutUint64(e[24:], f.Swap)
}

// ring tells the program about filled entries.
func (c *copier) ring() {
	if c.rung == c.started {
		return
	}
	c.rung = c.started
	c.atStart.Store(c.started)
	c.h.issued.Store(c.started)
	if c.h.asleep.Load() != 0 && c.h.asleep.Swap(0) != 0 {
		wakeWord((*uint32)(unsafe.Pointer(&c.h.issued)))
	}
}

// collect puts what ended into the lanes, and fills entries from the queue.
func (c *copier) collect() {
	if c.started == c.reported && c.head == len(c.queue) {
		return
	}
	if !c.dead.Load() {
		finished := c.h.finished.Load()
		if finished-c.reported > c.started-c.reported {
			c.dead.Store(true) // the program wrote nonsense
			finished = c.reported
		}
		for c.reported != finished {
			c.report(c.reported)
		}
	}
	if c.dead.Load() {
		c.abandon()
		return
	}
	for c.head < len(c.queue) && (c.merge(&c.queue[c.head]) || c.issue(&c.queue[c.head])) {
		c.queue[c.head] = copyInFlight{}
		c.head++
	}
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	c.ring()
}

// abandon ends everything that is under way.
func (c *copier) abandon() {
	for c.reported != c.started {
		f := &c.open[c.reported%copierSlots]
		f.end(memory.Finished{Tag: f.Tag, Err: memory.ErrGone})
		c.reported++
	}
	c.rung = c.started
	for ; c.head < len(c.queue); c.head++ {
		f := &c.queue[c.head]
		f.lane.end(&f.Transfer, memory.ErrGone)
	}
	c.queue, c.head = nil, 0
}

// report ends entry i.
func (c *copier) report(i uint32) {
	f := &c.open[i%copierSlots]
	e := c.entry(i)
	r := memory.Finished{Tag: f.Tag}
	if binary.LittleEndian.Uint32(e[32:]) == copierDone {
		r.Old = binary.LittleEndian.Uint64(e[40:])
		if f.Kind == memory.CopyRead {
			copy(f.Data, c.staging(i))
		}
	} else {
		r.Err = errCopierFault
	}
	f.end(r)
	c.reported++
}

// end reports the end of an entry, to each transfer that is in it.
func (f *copyInFlight) end(r memory.Finished) {
	l := f.lane
	l.done = append(l.done, r)
	for _, tag := range f.more {
		r.Tag = tag
		l.done = append(l.done, r)
	}
	*f = copyInFlight{more: f.more[:0]}
}

var errCopierFault = fmt.Errorf("%w: the program's copier could not reach it", memory.ErrGone)

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

// reach returns the lane of the region's PD.
func (c *copier) reach(r command.RegisterMemory) (device.Reached, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lanes[r.PD]
	if l == nil {
		l = &lane{c: c}
		c.lanes[r.PD] = l
		c.users.Add(1)
	}
	l.users++
	release := sync.OnceFunc(func() { c.release(r.PD, l) })
	return device.Reached{Remote: l, Path: PathCopier, Release: release}, nil
}

func (c *copier) release(pd command.Handle, l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(c.lanes, pd)
		c.leave()
	}
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

// serveCopies carries out entries until stop is set. finished tells the loop. Waits are slices of at most 50 ms, so that stop is seen.
func (m copierMem) serveCopies(stop *atomic.Bool, finished func()) {
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
		finished()
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

// own makes a pointer of an address of registered, and therefore pinned, memory.
func own(addr uint64) unsafe.Pointer {
	a := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}

// newProbe makes the page that the driver probes.
func newProbe() ([]byte, error) {
	return unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}
