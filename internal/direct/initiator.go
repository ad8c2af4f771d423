package direct

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/cpu/release"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/wait"
)

const (
	// maxMessage is the longest message that is carried out here: recalling a direction may have to wait
	// for a copy of that size.
	maxMessage = 64 << 20
	// catchUpBytes is how much CatchUp moves before it leaves the rest for later.
	catchUpBytes = 1 << 20
	// shortMessage is the maximum number of bytes that are copied before the responder, which polls the
	// slot for its completion, has taken that cache line away again.
	shortMessage = 512
)

// Surroundings are what an initiator needs from its program.
type Surroundings struct {
	Own, Peer Table  // key tables
	Owner     uint32 // owner number for claiming slots of completion queues
	// OwnArena and PeerArena return the memory of an arena, nil if it is not mapped.
	OwnArena, PeerArena func(id uint32) []byte
	// Segment returns the memory of a segment of the peer. If it is not mapped yet it arranges that it
	// will be (coming); nil and not coming: it will not be.
	Segment func(id uint32) (mem []byte, coming bool)
	// Process returns access to the memory of the peer's process with this number. If the driver has yet to
	// tell of it, it is coming; nil and not coming: this program cannot reach it. nil: there is none at all.
	Process func(number uint32) (p Process, coming bool)
	// Wake wakes those who sleep on the sequence word of a CQ.
	Wake func(word *uint32)
	// Ring rings the doorbell of the QP, so that the driver raises events.
	Ring func()
	// Now returns the time for the timestamps of completions. It is asked for queues that want them; of a driver that
	// does not say which do (Stamps), for all. The goroutine that uses the initiator asks.
	Now    func() uint64
	Stamps bool
}

// Initiator carries out the requests of one QP while its direction is delegated. Only one goroutine at a time
// may use it, except Delegated and Receiving.
type Initiator struct {
	env      Surroundings
	dir, rev *Direction

	stopped atomic.Bool

	op      uint32
	current uint32 // lease of the current operation
	*work
}

// work is what an initiator needs from its first operation on: a program with many connections has most of
// them idle.
type work struct {
	lease uint32 // lease to which terms belong
	terms Terms
	count [Counts]Tally
	shift uint8 // of the path MTU

	sendCQ, recvCQ *ring.Shared
	receive        *ring.Borrowed
	recv           ring.RecvWR
	waited         bool // for a receive, in vain
	front          ring.SendWR
	local          [ring.MaxSGE][]byte // memory of the request
	locals         int
	place          [ring.MaxSGE][]byte // memory of the receive
	far            pieces              // the peer's memory that is in no segment, used instead of place
	stride         stridePrefetch
	segment        []byte // the last one used
	segmentID      uint32
	wake           [2]*uint32
	wakes          int
	rings          bool // events come through channels
}

// NewInitiator creates the initiator for role 0 or 1 of a record.
func NewInitiator(r *Record, role int, env Surroundings) *Initiator {
	i := &Initiator{env: env, dir: &r.Way[role], rev: &r.Way[1-role]}
	i.op = atomic.LoadUint32(&i.dir.Op)
	return i
}

// Delegated reports whether requests may be carried out here.
func (i *Initiator) Delegated() bool { return i.dir.Delegated() }

// Receiving reports whether the peer takes receives itself, so that the driver need not be told of posted
// ones. Call it after publishing a receive.
func (i *Initiator) Receiving() bool { return i.rev.Delegated() }

// Execute carries out and completes a request whose predecessors have all completed. If it returns false
// it did not: the request is then up to the driver, unless the direction is still delegated. In that case what
// the request lacks may be available soon, and it may wait in the send queue for CatchUp.
func (i *Initiator) Execute(wr *ring.SendWR) bool {
	i.expect(wr)
	if !i.enter() {
		return false
	}
	why := i.run(wr)
	if why.final() {
		i.giveBack(why)
	}
	i.leave()
	return why == noReason
}

// CatchUp carries out the requests in the send queue, the oldest first, and reports whether none is left.
// The rest is up to the driver if the direction is not delegated any more.
func (i *Initiator) CatchUp(s *ring.Send) bool {
	moved := uint64(0)
	for !s.Idle() {
		if !i.enter() {
			return false
		}
		before := i.bytes()
		why := otherRequest
		if s.Front(&i.front) {
			i.expect(&i.front)
			why = i.run(&i.front)
		}
		if why == noReason {
			s.DropFront()
		} else if why.final() {
			i.giveBack(why)
		}
		moved += i.bytes() - before
		i.leave()
		if why != noReason || moved > catchUpBytes {
			return false
		}
	}
	return true
}

// bytes returns how much the direction has moved.
func (i *Initiator) bytes() (n uint64) {
	for op := range i.count {
		n += i.count[op].Bytes
	}
	return n
}

// enter begins an operation; false: the direction is not delegated.
func (i *Initiator) enter() bool {
	d := i.dir
	if atomic.LoadUint32(&d.Lease) == 0 || i.stopped.Load() {
		return false
	}
	if i.work == nil {
		i.work = new(work)
		for n := range i.count {
			i.count[n] = d.Count(n)
		}
	}
	i.op++
	atomic.StoreUint32(&d.Op, i.op)
	// After the store: the driver first takes the lease and then looks at Op.
	if i.current = atomic.LoadUint32(&d.Lease); i.current == 0 || i.stopped.Load() {
		i.leave()
		return false
	}
	return true
}

func (i *Initiator) giveBack(why reason) {
	atomic.StoreUint32(&i.dir.Reason, uint32(why))
	atomic.StoreUint32(&i.dir.Lease, 0)
}

// leave ends an operation and wakes those who wait for its completions.
func (i *Initiator) leave() {
	i.op++
	release.Store32(&i.dir.Op, i.op)
	for n := range i.wakes {
		i.env.Wake(i.wake[n])
		i.wake[n] = nil
	}
	i.wakes = 0
	if i.rings {
		i.rings = false
		i.env.Ring()
	}
}

// Stop ends the use of the record: when it returns nobody is in the middle of an operation, and none will
// begin.
func (i *Initiator) Stop() {
	i.stopped.Store(true)
	for atomic.LoadUint32(&i.dir.Op)&1 != 0 {
		wait.Do(wait.YieldAll)
	}
}

func (i *Initiator) run(wr *ring.SendWR) reason {
	if i.current != i.lease {
		if err := i.adopt(); err != nil {
			return notIntroduced
		}
		i.lease = i.current
	}
	switch wr.Op {
	case ring.OpWrite:
		return i.write(wr)
	case ring.OpSend, ring.OpSendImm:
		return i.send(wr)
	case ring.OpRead:
		return i.read(wr)
	case ring.OpWriteImm:
		return i.writeImm(wr)
	case ring.OpCompareSwap, ring.OpFetchAdd:
		return i.atomic(wr)
	}
	return otherRequest
}

// adopt takes over the terms of a new delegation.
func (i *Initiator) adopt() (err error) {
	c, old := i.dir.Terms, i.terms
	i.lease = 0
	if i.sendCQ == nil || c.SendCQ != old.SendCQ {
		if i.sendCQ, err = openCQ(i.env.OwnArena, c.SendCQ); err != nil {
			return err
		}
		i.terms.SendCQ = c.SendCQ // the rest may fail, and the next terms may differ
	}
	if i.recvCQ == nil || c.RecvCQ != old.RecvCQ {
		if i.recvCQ, err = openCQ(i.env.PeerArena, c.RecvCQ); err != nil {
			return err
		}
		i.terms.RecvCQ = c.RecvCQ
	}
	switch {
	case c.Flags&Receives == 0:
	case i.receive == nil || c.Receive != old.Receive:
		g := ring.Geometry{Entries: int(c.Receive.Entries), Stride: int(c.Receive.Stride)}
		b, err := at(i.env.PeerArena, c.Receive, g.Size())
		if err != nil {
			return err
		}
		if i.receive, err = ring.OpenBorrowed(b, g); err != nil {
			return err
		}
	default:
		i.receive.Resume()
	}
	i.terms = c
	if i.env.Stamps {
		i.terms.Flags |= SendTimes | RecvTimes
	}
	i.shift = uint8(bits.TrailingZeros32(c.MTU|1<<31)) & 31
	return nil
}

func openCQ(arena func(uint32) []byte, r RingAt) (*ring.Shared, error) {
	g := ring.Geometry{Entries: int(r.Entries), Stride: int(r.Stride)}
	b, err := at(arena, r, g.Size()+ring.SharedSize(g))
	if err != nil {
		return nil, err
	}
	return ring.OpenShared(b, g)
}

func at(arena func(uint32) []byte, r RingAt, size int) ([]byte, error) {
	b := arena(r.Arena)
	if size < 0 || r.Offset > uint64(len(b)) || uint64(size) > uint64(len(b))-r.Offset {
		return nil, fmt.Errorf("%w: ring of %d bytes at %d of arena %d", errLayout, size, r.Offset, r.Arena)
	}
	return b[r.Offset : r.Offset+uint64(size)], nil
}
