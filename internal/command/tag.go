package command

// CreateTagSRQ creates a shared receive queue that matches tags. What it receives, and what becomes of TagOp, completes in CQ;
// QPs that receive from it are of type RC, and complete their receives there too.
type CreateTagSRQ struct {
	CreateSRQ CreateSRQ
	CQ        Handle
	Tags      uint32 // the most that its matching list holds
}

// TagOpKind is what a TagOp does.
type TagOpKind uint32

// The kinds of TagOp.
const (
	TagAdd TagOpKind = iota + 1
	TagRemove
	TagSync
)

// MaxTagSGE limits the pieces of memory of a tagged buffer.
const MaxTagSGE = 4

// TagOp changes the matching list of an SRQ.
type TagOp struct {
	SRQ        Handle
	Kind       TagOpKind
	Flags      uint32 // of TagSignaled and TagCounts
	Unexpected uint32 // with TagCounts and for TagSync: how many unexpected messages the program has dealt with
	ID         uint64 // returned in the completion of the TagOp
	Entry      uint32 // TagRemove: what TagAdd returned
	NumSGE     uint32 // TagAdd, as the following
	RecvID     uint64 // returned in completions of messages
	Tag, Mask  uint64
	// SGE is pairs of an address and, in its lower half, a length, in its upper half an L_Key.
	SGE [2 * MaxTagSGE]uint64
}

// Flags of TagOp.
const (
	TagSignaled uint32 = 1 << iota // it completes; without this, only if it fails
	TagCounts                      // Unexpected is valid
)
