package command

import "time"

// QPType is the transport service of a QP.
type QPType uint32

// The transport services.
const (
	RC QPType = iota + 1
	UC
	UD
	XRCInitiator // sends and has no receive queue (IBA annex A14)
	XRCTarget    // receives into the XRC SRQs of its domain
	RawPacket    // whole Ethernet frames, and no transport
)

// XRC reports whether it is one of the two halves of the extended reliable connection service.
func (t QPType) XRC() bool { return t == XRCInitiator || t == XRCTarget }

// Counterpart returns the type of the QP at the other end of a connection.
func (t QPType) Counterpart() QPType {
	switch t {
	case XRCInitiator:
		return XRCTarget
	case XRCTarget:
		return XRCInitiator
	}
	return t
}

// CreateQP creates a QP.
type CreateQP struct {
	PD                   Handle
	Type                 QPType
	SendCQ, RecvCQ       Handle
	SRQ                  Handle // 0: it has its own receive queue
	SendDepth, RecvDepth uint32 // rounded up to powers of two
	SendSGE, RecvSGE     uint32
	Inline               uint32 // bytes of inline data a send may carry
	Flags                uint32 // of QPSignalAll and those below
	XRCD                 Handle // domain of an XRCTarget, which has none of the other objects
	Context              uint64 // returned in completions and events
}

// Flags of CreateQP.
const (
	// QPSignalAll makes every send complete with a CQE.
	QPSignalAll uint32 = 1 << iota
	// QPBlockSelfMulticast keeps datagrams from a UD QP that it sent itself, to a group that it is attached to, and frames to groups
	// from a raw packet QP that it sent itself.
	QPBlockSelfMulticast
	// QPStripVLAN takes the C-VLAN tag off what a raw packet QP receives; the completion has it.
	QPStripVLAN
	// QPScatterFCS puts the frame check sequence behind what a raw packet QP receives.
	QPScatterFCS
	// QPDelayDrop lets frames wait that find no receive of a raw packet QP, for up to DelayDrop.
	QPDelayDrop
)

// FrameQPFlags are the flags that SetFrameFlags changes.
const FrameQPFlags = QPStripVLAN | QPScatterFCS | QPDelayDrop

// DelayDrop is how long a frame waits for a receive of a QP with QPDelayDrop.
const DelayDrop = 100 * time.Millisecond

// SetFrameFlags changes those of FrameQPFlags that are in Mask, for frames that are received from now on.
type SetFrameFlags struct {
	QP          Handle
	Flags, Mask uint32
	_           uint32
}

// QueuePair is a created QP with its rings.
type QueuePair struct {
	Handle               Handle
	Number               uint32 // 24-bit QP number
	SendDepth, RecvDepth uint32
	SendStride           uint32
	RecvStride           uint32
	Inline               uint32
	_                    uint32
	Send, Recv           Ring
}

// QPState is a state of a QP (IBA 10.3.1).
type QPState uint32

// The states.
const (
	Reset QPState = iota
	Init
	RTR
	RTS
	SQD
	SQE
	Err
)

// QPMask selects fields of ModifyQP.
type QPMask uint32

// The fields of ModifyQP.
const (
	MaskState QPMask = 1 << iota
	MaskAccess
	MaskPKey
	MaskQKey
	MaskRoute
	MaskMTU
	MaskTimeout
	MaskRetry
	MaskRNRRetry
	MaskMinRNRTimer
	MaskRQPSN
	MaskSQPSN
	MaskInitiatorDepth
	MaskResponderResources
	MaskDestQPN
	MaskFlowControl
	MaskSQDNotify
)

// AddressVector is the destination of packets.
type AddressVector struct {
	Addr         Addr   // destination port address or GID
	SrcIndex     uint16 // row of the GID table
	StaticRate   uint8  // at most at this speed: the code of a path's (IBA 15.2.5.16); 0: at that of the port
	_            uint8
	TrafficClass uint8
	HopLimit     uint8
	SL           uint8 // the priority, 0 to 7; InfiniBand's service level, 0 to 15
	Path         uint8 // InfiniBand: path bits of the source LID, and PathGlobal
	FlowLabel    uint32
	SrcPort      uint16 // UDP source port; 0: computed
	// LID is the destination's on InfiniBand; 0: that of Addr if a path to it is known.
	LID uint16
}

// PathGlobal in AddressVector.Path: packets have a GRH.
const PathGlobal uint8 = 0x80

// ModifyQP changes a QP.
type ModifyQP struct {
	QP                 Handle
	Mask               QPMask
	State              QPState
	Access             uint32
	PKeyIndex          uint32
	QKey               uint32
	Route              AddressVector
	MTU                uint32 // payload bytes
	Timeout            uint8  // local ACK timeout code, 0: none; 4.096 us * 2^code
	Retry              uint8  // 0 to 7
	RNRRetry           uint8  // 0 to 7; 7: without limit
	MinRNRTimer        uint8  // code 0 to 31
	RQPSN, SQPSN       uint32
	InitiatorDepth     uint8 // reads and atomics that this side may have outstanding
	ResponderResources uint8 // reads and atomics of the peer that this side serves at a time
	FlowControl        uint8 // 1: end-to-end credits, agreed by both sides
	SQDNotify          uint8
	DestQPN            uint32
}

// LimitQP limits the rate at which a QP sends. The zero limit is none.
type LimitQP struct {
	QP Handle
	// Rate is in kbit/s of packets with all their headers, from the Ethernet header to the FCS.
	Rate uint32
	// MaxBurst is how many bytes may leave at once; 0: what the rate makes in a millisecond. A packet that is longer leaves as a whole.
	MaxBurst uint32
	// TypicalPacket is how long packets are, for adapters that must estimate that. This one counts each.
	TypicalPacket uint16
	_             uint16
}

// QPInfo is the configuration and state of a QP; Attr has every bit of the mask set.
type QPInfo struct {
	Attr       ModifyQP
	Type       QPType
	Number     uint32
	Path       uint32 // 1 wire, 2 local, 3 direct
	Draining   uint32
	SendPosted uint32
	RecvPosted uint32
}

// CreateAH creates an address handle.
type CreateAH struct {
	PD Handle
	_  uint32
	AV AddressVector
}
