package memory

// CopyKind is what a deferred copy does.
type CopyKind uint8

// The kinds of deferred copies.
const (
	CopyRead  CopyKind = iota + 1 // owner to loop
	CopyWrite                     // loop to owner
	CopyCompareSwap
	CopyFetchAdd
)

// Transfer is a copy that its owner's copier makes. Addr is the owner's
// address (Region.OwnerAddr). Data is read at Start for writes, and filled
// when the transfer is reported for reads; the caller keeps it until then.
type Transfer struct {
	Kind          CopyKind
	Last          bool // CopyWrite: the final bytes must become visible last
	Tag           uint64
	Addr          uint64
	Data          []byte
	Compare, Swap uint64 // CopyCompareSwap; CopyFetchAdd adds Swap
}

// Finished is the end of a deferred copy.
type Finished struct {
	Tag uint64
	Old uint64 // what stood at the operand of an atomic
	Err error  // nil, or ErrGone wrapped
}

// Deferred is an Accessor whose copies end later. The loop that owns the
// regions calls it; no call waits.
type Deferred interface {
	Accessor
	// Start hands one transfer over; false means that it holds as many as it
	// can (bytes or number), try again after Finish returned some.
	Start(t *Transfer) bool
	// Flush ends a row of calls of Start: transfers may wait for it, to be carried
	// out together.
	Flush()
	// Finish reports transfers that ended, in the order they were started, at
	// most len(out). After a time-out or a death all of them end with an error.
	Finish(out []Finished) int
	// Limit is the most bytes of one transfer.
	Limit() int
}
