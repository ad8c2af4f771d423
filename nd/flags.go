package nd

import "github.com/softvpi/softvpi/verbs"

// OpFlags are the ND_OP_FLAG_ values of a request.
type OpFlags uint32

// The flags of requests.
const (
	OpFlagSilentSuccess       OpFlags = 0x01 // no result when the request succeeds
	OpFlagReadFence           OpFlags = 0x02 // starts when all reads before it are complete
	OpFlagSendAndSolicitEvent OpFlags = 0x04 // Send: wakes a NotifySolicited at the peer
	OpFlagAllowRead           OpFlags = 0x08 // Bind: peers may read
	OpFlagAllowWrite          OpFlags = 0x10 // Bind: peers may write
	OpFlagInline              OpFlags = 0x20 // Send, Write: the data is copied at once and needs no region
)

// verbs returns the corresponding verbs flags.
func (f OpFlags) verbs() verbs.SendFlags {
	var out verbs.SendFlags
	if f&OpFlagSilentSuccess == 0 {
		out |= verbs.Signaled
	}
	if f&OpFlagReadFence != 0 {
		out |= verbs.Fence
	}
	if f&OpFlagSendAndSolicitEvent != 0 {
		out |= verbs.Solicited
	}
	return out
}

// MRFlags are the ND_MR_FLAG_ values of a memory region.
type MRFlags uint32

// The flags of memory regions. Local read is always granted.
const (
	MRFlagAllowLocalWrite  MRFlags = 0x00000001
	MRFlagAllowRemoteRead  MRFlags = 0x00000002
	MRFlagAllowRemoteWrite MRFlags = 0x00000005 // with local write
	MRFlagRDMAReadSink     MRFlags = 0x00000008 // results of reads may be placed in it
	MRFlagDoNotSecureVM    MRFlags = 0x80000000 // accepted without effect: memory is always secured here
	allMRFlags                     = MRFlagAllowRemoteWrite | MRFlagAllowRemoteRead | MRFlagRDMAReadSink | MRFlagDoNotSecureVM
)

// access returns the corresponding rights. NetworkDirect allows windows to be bound to any region.
func (f MRFlags) access() verbs.Access {
	a := verbs.WindowBind
	if f&(MRFlagAllowLocalWrite|MRFlagRDMAReadSink) != 0 {
		a |= verbs.LocalWrite
	}
	if f&MRFlagAllowRemoteRead != 0 {
		a |= verbs.RemoteRead
	}
	if f&MRFlagAllowRemoteWrite&^MRFlagAllowLocalWrite != 0 {
		a |= verbs.RemoteWrite | verbs.LocalWrite
	}
	return a
}

// NotifyType is an ND_CQ_NOTIFY_ value.
type NotifyType uint32

// The kinds of completion queue notifications.
const (
	NotifyErrors    NotifyType = 0 // errors only
	NotifyAny       NotifyType = 1 // the next completion
	NotifySolicited NotifyType = 2 // the next one that the peer solicited, or an error
)

// AdapterFlags are the ND_ADAPTER_FLAG_ values of AdapterInfo.
type AdapterFlags uint32

// The adapter flags.
const (
	AdapterFlagInOrderDMA            AdapterFlags = 0x00000001
	AdapterFlagCQInterruptModeration AdapterFlags = 0x00000004
	AdapterFlagMultiEngine           AdapterFlags = 0x00000008
	AdapterFlagCQResize              AdapterFlags = 0x00000100
	AdapterFlagLoopbackConnections   AdapterFlags = 0x00010000
)

// RequestType is the kind of request that a Result is for.
type RequestType uint32

// The kinds of requests.
const (
	RequestReceive RequestType = iota
	RequestSend
	RequestBind
	RequestInvalidate
	RequestRead
	RequestWrite
)

// String returns the kind's name.
func (t RequestType) String() string {
	names := [...]string{"Receive", "Send", "Bind", "Invalidate", "Read", "Write"}
	if int(t) < len(names) {
		return names[t]
	}
	return "unknown request"
}

// requestTypes is indexed by verbs.CompletionOp.
var requestTypes = [...]RequestType{
	verbs.CompletedSend: RequestSend, verbs.CompletedWrite: RequestWrite, verbs.CompletedRead: RequestRead,
	verbs.CompletedBind: RequestBind, verbs.CompletedLocalInvalidate: RequestInvalidate,
}

func requestType(op verbs.CompletionOp) RequestType {
	if int(op) < len(requestTypes) {
		return requestTypes[op]
	}
	return RequestReceive
}

// Limits of private data.
const (
	MaxCallerData = 56  // Connector.Connect
	MaxCalleeData = 148 // Connector.Accept, Connector.Reject
)
