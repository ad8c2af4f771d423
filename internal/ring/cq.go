package ring

import (
	"encoding/binary"
	"fmt"
)

// CQESize is the size of a completion entry.
const CQESize = 64

const slidAt = 52 // the last bytes are only used in rings that programs fill

// CQE is a completion.
type CQE struct {
	ID        uint64
	Context   uint64 // of the QP
	QPN       uint32
	ByteLen   uint32
	Imm       uint32 // immediate data or the invalidated rkey, depending on Flags
	SrcQP     uint32 // UD
	Status    Status
	Op        CQOp
	Flags     CQFlags
	Vendor    uint8 // vendor error
	PKeyIndex uint16
	SL        uint8
	PathBits  uint8  // InfiniBand: path bits of the LID that a datagram was sent to
	Timestamp uint64 // nanoseconds of the loop's clock
	SLID      uint16 // InfiniBand: LID that a datagram came from
}

// CQGeometry returns the shape of a completion ring.
func CQGeometry(depth int) Geometry { return Geometry{Entries: entries(depth), Stride: CQESize} }

// CQ is a completion ring. The loop fills it with Push; a program empties it with Poll and asks for events
// with Arm.
//
// Events: Push reports whether the program armed for this completion; if so the loop calls Fire, either at
// once or, under moderation, later. Fire disarms, advances the sequence and reports whether a waiter must
// be woken.
type CQ struct {
	base
	p producer
	c consumer
	// shared is the ring of completions that programs push themselves; nil if the CQ has none.
	shared *Shared
}

// OpenCQ opens the ring in b, new zeroed memory, and the second ring behind it if b has room for one.
func OpenCQ(b []byte, g Geometry) (*CQ, error) {
	r, err := open(b, g, CQESize)
	if err != nil {
		return nil, err
	}
	q := &CQ{base: r}
	if len(b) >= g.Size()+SharedSize(g) {
		q.shared, err = OpenShared(b, g)
	}
	return q, err
}

// Shared returns the second ring, nil if there is none.
func (q *CQ) Shared() *Shared { return q.shared }

// Produced returns the index after the last completion pushed. Loop side only.
func (q *CQ) Produced() uint32 { return q.p.next }

// Push publishes a completion and reports whether the program wants an event for it. errOverflow (no free
// entry) and ErrCorrupt end the queue: its header has FlagError set from then on. Loop side only.
func (q *CQ) Push(e *CQE) (event bool, err error) {
	if err := q.Fill(e); err != nil {
		return false, err
	}
	q.Publish()
	return q.Wants(e), nil
}

// Fill is Push without publishing and without checking for an event, which Publish and Wants do: this way
// several completions share the cost of one store. Loop side only.
func (q *CQ) Fill(e *CQE) error {
	if q.c.broken {
		return errOverflow
	}
	if err := q.p.room(&q.base); err != nil {
		q.c.broken = true
		q.setFlag(FlagError)
		if err == ErrFull {
			err = errOverflow
		}
		return err
	}
	e.Put(q.slot(q.p.next))
	q.p.next++
	return nil
}

// Full reports whether there is no room for another completion. Loop side only.
func (q *CQ) Full() bool { return q.p.room(&q.base) == ErrFull }

// Publish publishes the completions filled so far. Loop side only.
func (q *CQ) Publish() { q.h.producer.Store(q.p.next) }

// Wants reports whether the program wants an event for e, which has been published. A program arms before
// it looks at the producer index, so at least one side sees the other's store. Loop side only.
func (q *CQ) Wants(e *CQE) bool { return e.raises(Arm(q.h.arm.Load())) }

// Put writes the completion as it lies in a ring, in CQESize bytes.
func (e *CQE) Put(b []byte) {
	le := binary.LittleEndian
	_ = b[CQESize-1]
	le.PutUint64(b, e.ID)
	le.PutUint64(b[8:], e.Context)
	le.PutUint32(b[16:], e.QPN)
	le.PutUint32(b[20:], e.ByteLen)
	le.PutUint32(b[24:], e.Imm)
	le.PutUint32(b[28:], e.SrcQP)
	b[32], b[33], b[34], b[35] = uint8(e.Status), uint8(e.Op), uint8(e.Flags), e.Vendor
	le.PutUint16(b[36:], e.PKeyIndex)
	b[38], b[39] = e.SL, e.PathBits
	le.PutUint64(b[40:], e.Timestamp)
	le.PutUint16(b[slidAt:], e.SLID)
}

func (e *CQE) raises(a Arm) bool {
	switch a {
	case ArmNone:
		return false
	case ArmErrors:
		return e.Status != Success
	case ArmSolicited:
		return e.Status != Success || e.Flags&IsSolicited != 0
	}
	return true
}

// Fire raises the event that Push reported: it disarms, advances the sequence and reports whether the CQ
// was still armed (fired) and whether waiters sleep on the sequence word (wake). Loop side only.
func (q *CQ) Fire() (fired, wake bool) {
	if q.h.arm.Swap(uint32(ArmNone)) == uint32(ArmNone) {
		return false, false
	}
	q.h.sequence.Add(1)
	return true, q.h.sleepers.Load() != 0
}

// Break marks the CQ as failed and raises an event whatever it is armed for, so that waiters look. Loop
// side only.
func (q *CQ) Break() (wake bool) {
	q.c.broken = true
	q.setFlag(FlagError)
	return q.raise()
}

func (q *CQ) raise() bool {
	q.h.arm.Store(uint32(ArmNone))
	q.h.sequence.Add(1)
	return q.h.sleepers.Load() != 0
}

// Move ends q in favour of next, the larger or smaller ring of a resize: nothing more is pushed to q, and
// next takes over what is armed. The program empties q, sees FlagMoved and continues with next. wake:
// waiters sleep on q's sequence word and must look again. Loop side only.
func (q *CQ) Move(next *CQ) (wake bool) {
	next.h.arm.Store(q.h.arm.Swap(uint32(ArmNone)))
	q.setFlag(FlagMoved)
	return q.raise()
}

// Unpolled returns how many completions the program has not polled, at most the number of entries of both
// rings; ErrCorrupt if its index is impossible. Loop side only.
func (q *CQ) Unpolled() (n int, err error) {
	if q.shared != nil {
		n = q.shared.unpolled()
	}
	own := q.p.next - q.h.consumer.Load()
	if own > q.count {
		return n + int(q.count), fmt.Errorf("%w: consumer index", ErrCorrupt)
	}
	return n + int(own), nil
}

// SequenceWord returns the futex word of events. Either side.
func (q *CQ) SequenceWord() *uint32 { return word(&q.h.sequence) }

// Poll takes up to len(out) completions. Program side only, one caller at a time.
func (q *CQ) Poll(out []CQE) int {
	n, err := q.c.pending(&q.base)
	if err != nil {
		return 0
	}
	if q.shared != nil {
		return q.pollBoth(out, q.c.next+n)
	}
	if n == 0 {
		return 0
	}
	k := min(int(n), len(out))
	for i := range k {
		out[i].Get(q.slot(q.c.next))
		q.c.next++
	}
	q.c.release(&q.base, uint32(k))
	return k
}

// pollBoth takes completions from both rings, those of one QP in the order in which they were made. For a
// given QP the loop pushes to the first ring only after the last entry that a program made in the second.
// Therefore limit, the producer index read before looking at the second ring, is how far the first may be
// emptied once the second is empty. Conversely, an entry of the second ring carries the index up to which
// the first must be emptied before it.
func (q *CQ) pollBoth(out []CQE, limit uint32) int {
	k, own := 0, uint32(0)
	for k < len(out) {
		phase := q.shared.peek()
		if phase == slotClaimed {
			break // its producer is about to fill it
		}
		if phase == slotReady {
			stamp := q.shared.stamp()
			if int32(stamp-q.c.next) <= 0 {
				q.shared.take(&out[k])
				k++
				continue
			}
			if int32(stamp-limit) > 0 {
				limit = stamp
			}
		}
		if q.c.next == limit {
			break
		}
		if q.c.seen == q.c.next {
			if n, err := q.c.refresh(&q.base); n == 0 || err != nil {
				break
			}
		}
		out[k].Get(q.slot(q.c.next))
		q.c.next++
		own++
		k++
	}
	if own > 0 {
		q.c.release(&q.base, own)
	}
	return k
}

// Get reads what Put has written.
func (e *CQE) Get(b []byte) {
	le := binary.LittleEndian
	_ = b[CQESize-1]
	e.ID = le.Uint64(b)
	e.Context = le.Uint64(b[8:])
	e.QPN = le.Uint32(b[16:])
	e.ByteLen = le.Uint32(b[20:])
	e.Imm = le.Uint32(b[24:])
	e.SrcQP = le.Uint32(b[28:])
	e.Status, e.Op, e.Flags, e.Vendor = Status(b[32]), CQOp(b[33]), CQFlags(b[34]), b[35]
	e.PKeyIndex = le.Uint16(b[36:])
	e.SL, e.PathBits = b[38], b[39]
	e.Timestamp = le.Uint64(b[40:])
	e.SLID = le.Uint16(b[slidAt:])
}

// Empty reports whether there is nothing to poll. Program side only.
func (q *CQ) Empty() bool {
	n, err := q.c.refresh(&q.base)
	return n == 0 && err == nil && (q.shared == nil || q.shared.peek() == slotFree)
}

// Raises reports whether a completion waiting to be polled is one that a includes. Program side only, one
// caller at a time.
func (q *CQ) Raises(a Arm) bool {
	found := false
	err := q.walk(func(e CQE) bool {
		found = e.raises(a)
		return !found
	})
	return found || err != nil // broken: waiters must look
}

// Waiting returns how many completions of a QP's sends, or of its receives, are waiting to be polled.
// Program side only, one caller at a time.
func (q *CQ) Waiting(number uint32, side CQFlags) (n int) {
	_ = q.walk(func(e CQE) bool { // a broken ring has none
		if e.QPN == number && e.Flags&ReceiveSide == side {
			n++
		}
		return true
	})
	return n
}

// walk passes the completions waiting to be polled to visit until it returns false.
func (q *CQ) walk(visit func(CQE) bool) error {
	n, err := q.c.refresh(&q.base)
	if err != nil {
		return err
	}
	var e CQE
	for i := range n {
		if e.Get(q.slot(q.c.next + i)); !visit(e) {
			return nil
		}
	}
	if q.shared != nil {
		q.shared.walk(visit)
	}
	return nil
}

// Arm requests one event at the next completion that a includes; what was armed before stays armed. A
// completion may have arrived just before: poll again after Arm, before waiting. Program side only.
func (q *CQ) Arm(a Arm) {
	for {
		old := q.h.arm.Load()
		if old >= uint32(a) && old <= uint32(ArmAny) {
			q.h.arm.Store(old) // a store is the full barrier needed before the next poll
			return
		}
		if q.h.arm.CompareAndSwap(old, uint32(a)) {
			return
		}
	}
}

// Sequence returns the number of events so far; it wraps. A waiter reads it before Arm and waits until it
// changes. Program side only.
func (q *CQ) Sequence() uint32 { return q.h.sequence.Load() }

// Rouse advances the sequence as an event does, so that whoever waits looks. Program side.
func (q *CQ) Rouse() { q.h.sequence.Add(1) }

// Sleep announces a waiter on the sequence word; Awake withdraws it. In between, before sleeping, the
// waiter must check Sequence again.
func (q *CQ) Sleep() { q.h.sleepers.Add(1) }

// Awake withdraws the waiter that Sleep announced.
func (q *CQ) Awake() { q.h.sleepers.Add(^uint32(0)) }
