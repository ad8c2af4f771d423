package reach

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
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/memory"
)

// maxQueued limits the backlog of a program's copier. A program that is further behind is disconnected:
// waiting for it would hold up others.
const maxQueued = 1 << 14

// Copier is the driver's side of a program's copier. The loop calls it through the lanes of regions; a
// watchdog calls Expire.
type Copier struct {
	copierMem
	started  uint32 // entries filled
	rung     uint32 // those of them that the program was told of
	reported uint32 // entries whose end was reported to a lane
	open     [copierSlots]copyInFlight
	queue    []copyInFlight // those for which there is no entry
	head     int            // index of the queue's first
	dead     atomic.Bool

	// For the watchdog.
	atStart  atomic.Uint32
	lastSeen uint32
	since    time.Time

	users atomic.Int32 // lanes, and the session while it lasts; the last one unmaps
	mu    sync.Mutex
	lanes map[command.Handle]*lane
}

type copyInFlight struct {
	memory.Transfer
	lane *lane
	more []uint64 // tags of the transfers that were merged into it
}

// NewCopier creates the driver's side over mapped memory of CopierSize bytes, which is unmapped when
// nobody uses it any more.
func NewCopier(mem []byte) *Copier {
	c := &Copier{copierMem: newCopierMem(mem), lanes: map[command.Handle]*lane{}}
	c.users.Store(1)
	return c
}

// merge adds a write to the last entry if it directly continues that one and the program has not been told
// of it yet.
func (c *Copier) merge(f *copyInFlight) bool {
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

// issue fills the next entry if one is free.
func (c *Copier) issue(f *copyInFlight) bool {
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
func (c *Copier) describe(i uint32) {
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

// ring tells the program of filled entries.
func (c *Copier) ring() {
	if c.rung == c.started {
		return
	}
	c.rung = c.started
	c.atStart.Store(c.started)
	c.h.issued.Store(c.started)
	if c.h.asleep.Load() != 0 && c.h.asleep.Swap(0) != 0 {
		shared.Wake((*uint32)(unsafe.Pointer(&c.h.issued)))
	}
}

// collect reports ended entries to the lanes, and fills entries from the queue.
func (c *Copier) collect() {
	if c.started == c.reported && c.head == len(c.queue) {
		return
	}
	if !c.dead.Load() {
		finished := c.h.finished.Load()
		if finished-c.reported > c.started-c.reported {
			c.dead.Store(true) // the program wrote garbage
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

// abandon fails everything in progress.
func (c *Copier) abandon() {
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

// report reports the end of entry i.
func (c *Copier) report(i uint32) {
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

// end reports the end of an entry, for each of its transfers.
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

// End makes every open and later transfer fail.
func (c *Copier) End() { c.dead.Store(true) }

// Dead reports whether transfers fail: after End, or because of what the program did.
func (c *Copier) Dead() bool { return c.dead.Load() }

// Expire reports whether the client's side has made no progress for d although there was something to do.
// The watchdog must call it regularly.
func (c *Copier) Expire(now time.Time, d time.Duration) bool {
	finished := c.h.finished.Load()
	if finished != c.lastSeen || finished == c.atStart.Load() || c.since.IsZero() {
		c.lastSeen, c.since = finished, now
		return false
	}
	return now.Sub(c.since) >= d
}

// Reach implements device.ClientConfig.Reach: it returns the lane of the region's PD.
func (c *Copier) Reach(r command.RegisterMemory) (device.Reached, error) {
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
	return device.Reached{Remote: l, Path: command.MemoryCopier, Release: release}, nil
}

func (c *Copier) release(pd command.Handle, l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(c.lanes, pd)
		c.leave()
	}
}

// Close ends the copier; its memory is unmapped when no region uses it any more.
func (c *Copier) Close() {
	c.End()
	c.leave()
}

func (c *Copier) leave() {
	if c.users.Add(-1) == 0 {
		_ = unix.Munmap(c.mapped)
	}
}
