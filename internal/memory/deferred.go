package memory

// CopyKind says what a deferred copy does.
type CopyKind uint8

// The kinds of deferred copies.
const (
	CopyRead  CopyKind = iota + 1 // owner to loop
	CopyWrite                     // loop to owner
	CopyCompareSwap
	CopyFetchAdd
)

// Transfer is a copy made by the owner's copier. Addr is the owner's address (Region.OwnerAddr). For
// writes Data is read at Start, for reads it is filled when the transfer is reported; the caller keeps it
// until then.
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
	Old uint64 // original value of an atomic's operand
	Err error  // nil, or ErrGone wrapped
}

// Deferred is an Accessor whose copies end later. The loop that owns the regions calls it; no call blocks.
type Deferred interface {
	Accessor
	// Start hands one transfer over; false means that its limit (bytes or number) is reached: try again
	// after Finish has returned some.
	Start(t *Transfer) bool
	// Flush ends a series of calls of Start: transfers may be delayed until then, to be executed together.
	Flush()
	// Finish reports finished transfers, in the order in which they were started, at most len(out). After
	// a timeout or a death all of them end with an error.
	Finish(out []Finished) int
	// Limit returns the maximum number of bytes of one transfer.
	Limit() int
}
