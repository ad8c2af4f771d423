package direct

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// errLayout means that memory does not fit a layout.
var errLayout = errors.New("shared memory does not fit the layout of the direct path")

// RingAt is the location of a ring: in an arena of the program that owns the ring.
type RingAt struct {
	Arena   uint32
	Entries uint32
	Stride  uint32
	_       uint32
	Offset  uint64
}

// Terms are what the initiator of a direction works with while it is delegated. The driver writes them before
// delegation.
type Terms struct {
	SendCQ  RingAt // of the initiator, followed by its second ring
	RecvCQ  RingAt // of the responder, likewise
	Receive RingAt // of the responder

	SendStamp, RecvStamp    uint32 // producer indices of the two CQs when it was delegated
	OwnPD, PeerPD           uint32 // of the initiator's and the responder's QP
	OwnAdapter, PeerAdapter uint32
	OwnQPN, PeerQPN         uint32
	OwnContext, PeerContext uint64 // for completions
	Access                  uint32 // what the responder's QP permits: memory.Access bits
	Flags                   uint32
	PKeyIndex, ServiceLevel uint16 // of the responder's QP, for completions
	MTU                     uint32 // of the path, a power of two
	PeerProcess             uint32 // number of the responder's process; 0: its memory outside of segments is the driver's
	_                       [52]byte
}

// Bits of Terms.Flags.
const (
	SignalAll   uint32 = 1 << iota // every request completes
	Receives                       // the QP has its own receive queue: sends may be direct
	Answers                        // reads and atomics are allowed
	SendChannel                    // events of SendCQ go through a channel
	RecvChannel                    // events of RecvCQ go through a channel
	SendTimes                      // completions in SendCQ say when they were made
	RecvTimes                      // completions in RecvCQ say when they were made
)

// Bits of Direction.Raised.
const (
	RaiseSend uint32 = 1 << iota
	RaiseRecv
)

// The operations that a direction counts.
const (
	countSend = iota
	countWrite
	CountRead
	CountAtomic
	Counts
)

// Direction is one way of a pair: the send queue of the initiator with the receive queue of the responder.
type Direction struct {
	// Lease is not 0 while the direction is delegated; every delegation has another number. Storing 0 ends it: the
	// driver recalls it, or the initiator gives it back.
	Lease  uint32
	Reason uint32 // why the initiator last gave it back
	_      [56]byte

	// Op counts operations; it is odd while the initiator is in the middle of one. The initiator reads
	// Lease after it stored Op, the driver reads Op after storing Lease.
	Op    uint32
	Taken uint32 // index after the last receive whose completion was published
	// Raised says for which CQs the driver must raise requested events, because they go through channels.
	// The initiator sets bits during an operation and rings the doorbell after it; the driver clears them.
	Raised uint32
	_      [52]byte

	Messages [Counts]uint64
	Packets  [Counts]uint64 // equivalent number of packets of the path MTU
	Bytes    [Counts]uint64
	_        [4]uint64

	Terms Terms
}

// Record is what the two programs and the driver share about a pair. Direction i is the one whose
// initiator has role i.
type Record struct{ Way [2]Direction }

// RecordSize is the size of a record in bytes.
const RecordSize = int(unsafe.Sizeof(Record{}))

const (
	_ = -(unsafe.Sizeof(Direction{}) % 64) // does not compile unless it fills cache lines
	_ = -(unsafe.Sizeof(Key{}) ^ 64)
)

// Busy reports whether one of the two programs is in the middle of an operation.
func (r *Record) Busy() bool {
	_, first := r.Way[0].Inside()
	_, second := r.Way[1].Inside()
	return first || second
}

// OpenRecord opens the record in b.
func OpenRecord(b []byte) (*Record, error) {
	if len(b) < RecordSize || uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
		return nil, fmt.Errorf("%w: record of %d bytes, want %d at a multiple of 64", errLayout, len(b), RecordSize)
	}
	return (*Record)(unsafe.Pointer(&b[0])), nil
}

// Delegate delegates a direction under a number that is not 0. Driver side only.
func (d *Direction) Delegate(lease uint32, c *Terms) {
	d.Terms = *c
	atomic.StoreUint32(&d.Lease, lease)
}

// Begin sets the index of the first receive that the initiator may take. Driver side only, before Delegate.
func (d *Direction) Begin(receive uint32) { atomic.StoreUint32(&d.Taken, receive) }

// Recall takes a direction back; the initiator may still be in the middle of an operation, see Inside. Driver
// side only, and of a program that has lost the driver.
func (d *Direction) Recall() { atomic.StoreUint32(&d.Lease, 0) }

// Delegated reports whether the direction is delegated.
func (d *Direction) Delegated() bool { return atomic.LoadUint32(&d.Lease) != 0 }

// Inside returns the number of the initiator's operation and whether it is in the middle of it.
func (d *Direction) Inside() (op uint32, inside bool) {
	op = atomic.LoadUint32(&d.Op)
	return op, op&1 != 0
}

// Returned says why the initiator last gave the direction back; empty: it never did, or for a reason that is
// not known here. Driver side only.
func (d *Direction) Returned() string {
	if r := atomic.LoadUint32(&d.Reason); r < uint32(len(reasons)) {
		return reasons[r]
	}
	return ""
}

// TakeRaised returns and clears the bits of Raised. Driver side only.
func (d *Direction) TakeRaised() uint32 {
	if atomic.LoadUint32(&d.Raised) == 0 {
		return 0
	}
	return atomic.SwapUint32(&d.Raised, 0)
}

// LastTaken returns Taken. Driver side only.
func (d *Direction) LastTaken() uint32 { return atomic.LoadUint32(&d.Taken) }

// Count returns what the direction has counted. Driver side only.
func (d *Direction) Count(op int) Tally {
	return Tally{atomic.LoadUint64(&d.Messages[op]), atomic.LoadUint64(&d.Packets[op]), atomic.LoadUint64(&d.Bytes[op])}
}

// Tally is what a direction has moved with one kind of operation.
type Tally struct{ Messages, Packets, Bytes uint64 }

// reason is why an initiator gave its direction back.
type reason uint32

// The reasons.
const (
	noReason      reason = iota
	otherRequest         // an operation left to the driver, or a message that is too long
	localMemory          // its own memory failed the check
	remoteMemory         // the peer's memory failed the check
	notShared            // the peer's memory is not in a segment that can be mapped here
	tooShort             // for the receive that was posted
	noReceive            // none was posted
	noCompletion         // the second ring of a CQ is full
	notMapped            // the segment is being mapped
	notIntroduced        // rings or tables of the peer are not mapped here yet
	notReached           // the peer's memory is in no segment, and this program may not copy to and from its process
	notCopied            // the kernel did not copy all of the message
)

var reasons = [...]string{
	otherRequest: "a request that only the driver carries out",
	localMemory:  "the program's own memory failed the check",
	remoteMemory: "the peer's memory failed the check",
	notShared:    "the peer's memory is not shared, and its process is not offered",
	tooShort:     "the message does not fit the receive",
	notReached:   "the kernel does not let the program copy to and from the peer's process",
	notCopied:    "the kernel could not copy all of the message",
}

// final reports whether the direction must be given back, because waiting is of no use.
func (r reason) final() bool { return r != noReason && r < noReceive || r > notIntroduced }
