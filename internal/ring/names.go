package ring

import "strconv"

// WROp is the operation of a send request.
type WROp uint8

// The operations (IBA 10.8.2.1, 11.4.1).
const (
	OpSend WROp = iota + 1
	OpSendImm
	OpSendInv
	OpWrite
	OpWriteImm
	OpRead
	OpCompareSwap
	OpFetchAdd
	OpBind
	OpLocalInvalidate
	OpAtomicWrite // IBA annex A19
	OpFlush       // IBA annex A19
	OpLargeSend   // of raw packet QPs: a large packet of TCP, to be cut
)

var opNames = [...]string{"", "send", "send with immediate", "send with invalidate", "write", "write with immediate",
	"read", "compare and swap", "fetch and add", "bind", "local invalidate", "atomic write", "flush", "large send"}

func (o WROp) String() string { return name(opNames[:], uint8(o), "operation ") }

// Valid reports whether o is an operation.
func (o WROp) Valid() bool { return o >= OpSend && o <= OpLargeSend }

// HasImm reports whether the peer gets immediate data.
func (o WROp) HasImm() bool { return o == OpSendImm || o == OpWriteImm }

// CQOp returns the operation that its completion reports.
func (o WROp) CQOp() CQOp {
	if !o.Valid() {
		return CQSend
	}
	return cqOps[o]
}

var cqOps = [...]CQOp{OpSend: CQSend, OpSendImm: CQSend, OpSendInv: CQSend, OpWrite: CQWrite, OpWriteImm: CQWrite,
	OpRead: CQRead, OpCompareSwap: CQCompareSwap, OpFetchAdd: CQFetchAdd, OpBind: CQBind, OpLocalInvalidate: CQLocalInvalidate,
	OpAtomicWrite: CQAtomicWrite, OpFlush: CQFlush, OpLargeSend: CQLargeSend}

// WRFlags are the flags of a send request.
type WRFlags uint8

// The flags of a send request.
const (
	Signaled  WRFlags = 1 << iota // complete even if the QP does not signal all
	Solicited                     // the peer's completion is a solicited event
	Fence                         // wait for the reads and atomics before (IBA 10.8.3.3)
	Inline                        // the data is in the entry
	// Checksums: make the checksums of IPv4, TCP and UDP of the frame that a raw packet QP sends.
	Checksums
)

// CQOp is the operation that a completion is for.
type CQOp uint8

// The operations of completions.
const (
	CQSend CQOp = iota + 1
	CQWrite
	CQRead
	CQCompareSwap
	CQFetchAdd
	CQBind
	CQLocalInvalidate
	CQLargeSend
	CQFlush
	CQAtomicWrite
	CQRecv      CQOp = 128
	CQRecvWrite CQOp = 129 // an RDMA write with immediate consumed a receive
	// Of shared receive queues with tag matching.
	CQTagAdd    CQOp = 130
	CQTagRemove CQOp = 131
	CQTagSync   CQOp = 132
	CQTagRecv   CQOp = 133 // a message with a tag; Context is the tag, SrcQP the program's data, if it matched
	CQNoTag     CQOp = 134 // a message without one
)

var cqNames = [...]string{"", "send", "write", "read", "compare and swap", "fetch and add", "bind", "local invalidate", "large send",
	"flush", "atomic write"}

func (o CQOp) String() string {
	switch o {
	case CQRecv:
		return "receive"
	case CQRecvWrite:
		return "receive of write with immediate"
	}
	if o >= CQTagAdd {
		return name(tagNames[:], uint8(o-CQTagAdd), "operation ")
	}
	return name(cqNames[:], uint8(o), "operation ")
}

var tagNames = [...]string{"tag add", "tag remove", "tag sync", "tag receive", "receive without tag"}

// Status is how a request ended (IBA 11.6.2).
type Status uint8

// The statuses, numbered as in verbs.
const (
	Success Status = iota
	LocalLength
	LocalQPOperation
	LocalEEContext // reserved: RD service
	LocalProtection
	WRFlush
	MWBind
	BadResponse
	LocalAccess
	RemoteInvalidRequest
	RemoteAccess
	RemoteOperation
	RetryExceeded
	RNRRetryExceeded
	LocalRDDViolation        // reserved: RD service
	RemoteInvalidReadRequest // reserved: RD service
	RemoteAborted
	InvalidEEContextNumber // reserved: RD service
	InvalidEEContextState  // reserved: RD service
	Fatal
	ResponseTimeout
	General
	TagError      // a tagged buffer was not found
	TagIncomplete // a tagged buffer has no room for the data of a rendezvous
)

var statusNames = [...]string{"success", "local length error", "local QP operation error", "local EE context error",
	"local protection error", "work request flushed", "memory window bind error", "bad response", "local access error",
	"remote invalid request error", "remote access error", "remote operation error", "transport retry counter exceeded",
	"RNR retry counter exceeded", "local RDD violation", "remote invalid RD request", "remote aborted",
	"invalid EE context number", "invalid EE context state", "fatal error", "response timeout", "general error", "tag matching error",
	"rendezvous incomplete"}

func (s Status) String() string { return name(statusNames[:], uint8(s), "status ") }

// CQFlags are the flags of a completion.
type CQFlags uint8

// The flags of a completion.
const (
	HasImm        CQFlags = 1 << iota // Imm is immediate data
	Invalidated                       // Imm is the rkey that the peer's send invalidated
	HasGRH                            // UD: the first 40 bytes received are the GRH
	IsSolicited                       // the peer requested a solicited event
	ReceiveSide                       // completion of a receive
	TagSyncNeeded                     // the program has not dealt with all unexpected messages
	TagMatched                        // a tagged buffer was found
	TagData                           // the data is there
)

// GoodChecksums is the flag of a frame that a raw packet QP has received: the checksums of its IP packet, and of TCP or UDP in it,
// were found to be right. The bit is another one's in completions of tag matching.
const GoodChecksums = TagSyncNeeded

// Arm selects the completions that raise an event.
type Arm uint32

// The values of the arm word; each includes the lower ones.
const (
	ArmNone Arm = iota
	ArmErrors
	ArmSolicited // solicited completions and errors
	ArmAny
)

var armNames = [...]string{"none", "errors", "solicited", "any"}

func (a Arm) String() string {
	if a > ArmAny {
		return "arm " + strconv.Itoa(int(a))
	}
	return armNames[a]
}

func name(names []string, v uint8, what string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return what + strconv.Itoa(int(v))
}

// FlushOf returns what Access of an OpFlush stands for: the placement types in the low four bits (ib.Placement), the
// selectivity level in those above (ib.Selectivity).
func FlushOf(access uint32) (placement, selectivity uint32) { return access & 0xf, access >> 4 }
