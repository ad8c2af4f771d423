package verbs

import "github.com/softvpi/softvpi/internal/ring"

// Opcode is the operation of a send request.
type Opcode uint8

// The operations (IBA 10.8.2.1, 11.4.1).
const (
	OpSend            = Opcode(ring.OpSend)
	OpSendImm         = Opcode(ring.OpSendImm)         // and Imm for the receiver
	OpSendInvalidate  = Opcode(ring.OpSendInv)         // invalidates the peer's window InvalidateKey
	OpWrite           = Opcode(ring.OpWrite)           // to RemoteAddr under RKey
	OpWriteImm        = Opcode(ring.OpWriteImm)        // and consumes a receive of the peer, which gets Imm
	OpRead            = Opcode(ring.OpRead)            // from RemoteAddr under RKey
	OpCompareSwap     = Opcode(ring.OpCompareSwap)     // 8 bytes; the old value comes back
	OpFetchAdd        = Opcode(ring.OpFetchAdd)        // 8 bytes; the old value comes back
	OpBind            = Opcode(ring.OpBind)            // binds a memory window
	OpLocalInvalidate = Opcode(ring.OpLocalInvalidate) // invalidates the type 2 window InvalidateKey
	OpAtomicWrite     = Opcode(ring.OpAtomicWrite)     // RC: 8 bytes to RemoteAddr under RKey in one piece (IBA annex A19)
	OpFlush           = Opcode(ring.OpFlush)           // RC: completes when what was written is in place, see Flush
	OpLargeSend       = Opcode(ring.OpLargeSend)       // RawPacket: a large packet of TCP, which is cut into frames, see Segment
)

// String returns the operation in words.
func (o Opcode) String() string { return ring.WROp(o).String() }

// CompletionOp is the operation that a completion is for.
type CompletionOp uint8

// The operations of completions.
const (
	CompletedSend            = CompletionOp(ring.CQSend)
	CompletedWrite           = CompletionOp(ring.CQWrite)
	CompletedRead            = CompletionOp(ring.CQRead)
	CompletedCompareSwap     = CompletionOp(ring.CQCompareSwap)
	CompletedFetchAdd        = CompletionOp(ring.CQFetchAdd)
	CompletedBind            = CompletionOp(ring.CQBind)
	CompletedLocalInvalidate = CompletionOp(ring.CQLocalInvalidate)
	CompletedAtomicWrite     = CompletionOp(ring.CQAtomicWrite)
	CompletedFlush           = CompletionOp(ring.CQFlush)
	CompletedLargeSend       = CompletionOp(ring.CQLargeSend)
	CompletedRecv            = CompletionOp(ring.CQRecv)
	CompletedRecvWrite       = CompletionOp(ring.CQRecvWrite) // a write with immediate consumed the receive
)

// String returns the operation in words.
func (o CompletionOp) String() string { return ring.CQOp(o).String() }

// SendFlags are the flags of a send request.
type SendFlags uint8

// The flags.
const (
	Signaled  = SendFlags(ring.Signaled)  // completes on success too, even if the QP does not signal all requests
	Solicited = SendFlags(ring.Solicited) // raises a solicited event at the peer
	Fence     = SendFlags(ring.Fence)     // waits for the reads and atomics before it
	// Checksums makes the checksums of IPv4, TCP and UDP of the frame that a RawPacket QP sends, as far as it has places for them;
	// only where FramePort has FrameChecksums.
	Checksums = SendFlags(ring.Checksums)
	allFlags  = Signaled | Solicited | Fence | Checksums
)

// Status is how a request ended (IBA 11.6.2), numbered as in other verbs libraries. Err converts it to an
// error.
type Status uint8

// The statuses.
const (
	Success              = Status(ring.Success)
	LocalLength          = Status(ring.LocalLength)
	LocalQPOperation     = Status(ring.LocalQPOperation)
	LocalProtection      = Status(ring.LocalProtection)
	WRFlush              = Status(ring.WRFlush)
	MWBind               = Status(ring.MWBind)
	BadResponse          = Status(ring.BadResponse)
	LocalAccess          = Status(ring.LocalAccess)
	RemoteInvalidRequest = Status(ring.RemoteInvalidRequest)
	RemoteAccess         = Status(ring.RemoteAccess)
	RemoteOperation      = Status(ring.RemoteOperation)
	RetryExceeded        = Status(ring.RetryExceeded)
	RNRRetryExceeded     = Status(ring.RNRRetryExceeded)
	RemoteAborted        = Status(ring.RemoteAborted)
	Fatal                = Status(ring.Fatal)
	ResponseTimeout      = Status(ring.ResponseTimeout)
	General              = Status(ring.General)
)

// String returns the status in words.
func (s Status) String() string { return ring.Status(s).String() }

// Err returns nil for Success and a StatusError otherwise.
func (s Status) Err() error {
	if s == Success {
		return nil
	}
	return StatusError(s)
}

// StatusError is a Status as an error.
type StatusError Status

// Error says how the request ended.
func (e StatusError) Error() string { return "verbs: request failed: " + Status(e).String() }

// CompletionFlags say which fields of a WC are valid.
type CompletionFlags uint8

// The flags.
const (
	WithImm         = CompletionFlags(ring.HasImm)      // Imm is immediate data
	WithInvalidated = CompletionFlags(ring.Invalidated) // Imm is the key that the peer's send invalidated
	WithGRH         = CompletionFlags(ring.HasGRH)      // the first 40 bytes received are a GRH
	WasSolicited    = CompletionFlags(ring.IsSolicited) // the peer requested a solicited event
	ReceiveSide     = CompletionFlags(ring.ReceiveSide) // completion of a receive
	// GoodChecksums: a frame that a RawPacket QP has received carries TCP or UDP, whose checksum and that of IPv4 are right.
	GoodChecksums = CompletionFlags(ring.GoodChecksums)
)
