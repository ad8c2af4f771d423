// Package command holds what a program can ask of the adapters and the answers:
// plain values, no behaviour. The device carries them out; internal/ipc carries
// them between processes as fixed-width little-endian layouts (every struct here
// has a fixed binary size), and verbs issues them.
package command

import (
	"context"
	"net/netip"
)

// Handle names an object of one client: a PD, region, window, CQ, SRQ, QP,
// address handle, CM id. Zero is never a valid handle.
type Handle uint32

// Addr is a port address in IPv6 form (IPv4-mapped for IPv4): 16 bytes.
type Addr [16]byte

// AddrFrom returns a as an Addr.
func AddrFrom(a netip.Addr) Addr { return a.As16() }

// IP returns the address, IPv4 where it is IPv4-mapped.
func (a Addr) IP() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// Endpoint is an address with a port of the RDMA port space.
type Endpoint struct {
	Addr Addr
	Port uint16
	_    [6]byte
}

// Ring says where the memory of a ring lies: in arena number Arena of the
// client, from Offset, Size bytes.
type Ring struct {
	Arena  uint32
	_      uint32
	Offset uint64
	Size   uint64
}

// Commands is everything that one client can ask. Every method is safe for
// concurrent use. Errors are *Error. The embedded device and the attached
// client both implement it.
type Commands interface {
	Adapters(ctx context.Context) ([]AdapterInfo, error)
	GIDs(ctx context.Context, adapter uint32) ([]GID, error)
	Counters(ctx context.Context, adapter uint32) ([]Counter, error)
	Port(ctx context.Context, adapter uint32) (PortInfo, error)

	AllocPD(ctx context.Context, adapter uint32) (Handle, error)
	RegisterMemory(ctx context.Context, r RegisterMemory) (Memory, error)
	AllocWindow(ctx context.Context, pd Handle, typ uint32) (Memory, error)
	CreateCQ(ctx context.Context, c CreateCQ) (Queue, error)
	ResizeCQ(ctx context.Context, cq Handle, depth uint32) (Queue, error)
	ModerateCQ(ctx context.Context, m ModerateCQ) error
	CreateSRQ(ctx context.Context, c CreateSRQ) (Queue, error)
	ModifySRQ(ctx context.Context, m ModifySRQ) error
	ResizeSRQ(ctx context.Context, srq Handle, depth uint32) (Queue, error)
	QuerySRQ(ctx context.Context, srq Handle) (SRQInfo, error)
	CreateQP(ctx context.Context, c CreateQP) (QueuePair, error)
	ModifyQP(ctx context.Context, m ModifyQP) error
	QueryQP(ctx context.Context, qp Handle) (QPInfo, error)
	CreateAH(ctx context.Context, c CreateAH) (Handle, error)
	AttachMulticast(ctx context.Context, qp Handle, group Addr) error
	DetachMulticast(ctx context.Context, qp Handle, group Addr) error
	// Destroy ends any object. A PD, CQ, SRQ or region in use is refused with Busy.
	Destroy(ctx context.Context, kind Kind, h Handle) error

	CMCreate(ctx context.Context, c CMCreate) (Handle, error)
	CMBind(ctx context.Context, id Handle, local Endpoint) (Endpoint, error)
	CMListen(ctx context.Context, id Handle, backlog uint32) error
	// CMConnect returns the handle of the id, which it makes where ID is 0.
	CMConnect(ctx context.Context, c CMConnect) (Handle, error)
	CMAccept(ctx context.Context, c CMAccept) error
	// CMEstablish says that this side is ready to use: it sends RTU. It may return before
	// that was done; what keeps it from being done is an event of its own.
	CMEstablish(ctx context.Context, id Handle) error
	CMReject(ctx context.Context, c CMReject) error
	CMDisconnect(ctx context.Context, id Handle) error
	CMQuery(ctx context.Context, id Handle) (CMInfo, error)
	// CMAttributes says what to set to bring the QP of a CM id into state by
	// hand; needed only where CMConnect and CMAccept named no QP.
	CMAttributes(ctx context.Context, id Handle, state QPState) (ModifyQP, error)

	// Events returns at least one event, at most len(out), waiting for ctx.
	Events(ctx context.Context, out []Event) (int, error)
}

// Kind is a kind of object, for Destroy.
type Kind uint32

// The kinds of objects.
const (
	KindPD Kind = iota + 1
	KindMemory
	KindWindow
	KindCQ
	KindSRQ
	KindQP
	KindAH
	KindCM
	KindChannel
)

// AdapterInfo describes an adapter and its limits.
type AdapterInfo struct {
	Index     uint32
	Port      uint32   // always 1 for now
	Name      [64]byte // "Ethernet 1", zero-padded UTF-8
	GUID      uint64
	Addr      Addr // the first address
	Up        uint32
	RoCE      uint32 // 1 v1, 2 v1.25, 3 v2; 0 RDMA disabled; 4 none: the port is InfiniBand's
	ActiveMTU uint32 // payload bytes: 256, 512, 1024, 2048 or 4096
	LinkMTU   uint32 // IP packet bytes; of an InfiniBand port the largest payload
	UDPPort   uint32
	VendorID  uint32
	DeviceID  uint32

	MaxQP, MaxCQ, MaxSRQ, MaxMR, MaxMW, MaxPD, MaxAH uint32
	MaxQPDepth, MaxCQDepth, MaxSRQDepth              uint32
	MaxSGE, MaxInline                                uint32
	MaxReadResponder, MaxReadInitiator               uint32
	MaxMulticast                                     uint32 // attachments to multicast groups, all QPs together
	MaxMessage, MaxRegion                            uint64
	ProcessorAtomics                                 uint32 // 1: atomics are atomic against the processors too
	LineRate                                         uint32 // what the link is limited to, in Mb/s on the wire; 0 where nothing tells its speed
}

// GID is a row of the GID table.
type GID struct {
	Index uint32
	RoCE  uint32 // 1 v1, 2 v1.25 (IP-based v1), 3 v2, 4 InfiniBand
	GID   [16]byte
}

// PortInfo is what of a port only InfiniBand has. On Ethernet State and Physical are those that
// such a port counts as having, and PKeys is the default partition alone.
type PortInfo struct {
	State, Physical uint8 // PortInfo codes of IBA 14.2.5.6: 1 down, 2 initialize, 3 armed, 4 active; 3 disabled, 5 link up
	LMC, SMSL       uint8
	LID, SMLID      uint16
	Width           uint8 // active: 1 (1x), 2 (4x), 4 (8x), 8 (12x), 16 (2x); 0: not told
	SubnetTimeout   uint8
	MaxMTU          uint16 // payload bytes
	Lane            uint32 // active speed of a lane in Mb/s; 0: not told
	Capabilities    uint32 // CapabilityMask
	PKeyCount       uint32 // rows of PKeys
	Prefix          uint64 // of the subnet's GIDs
	NodeGUID        uint64
	PKeys           [128]uint16
}

// Counter is a named 64-bit counter.
type Counter struct {
	Name  [64]byte
	Value uint64
}

// RegisterMemory asks for a region.
type RegisterMemory struct {
	PD     Handle
	Access uint32 // memory.Access bits
	Base   uint64 // address of the first byte in the client; remote peers use it
	Length uint64
	// Segment is the number of a shared segment that the driver gave to this
	// client, and SegmentOffset where the region starts in it; 0 for the
	// client's own memory.
	Segment       uint32
	_             uint32
	SegmentOffset uint64
}

// Memory is a region or window.
type Memory struct {
	Handle Handle
	LKey   uint32
	RKey   uint32
	Path   uint32 // how it is reached: 1 mapped, 2 process_vm, 3 the client's copier
}

// CreateCQ asks for a completion queue.
type CreateCQ struct {
	Adapter uint32
	Depth   uint32 // completions, rounded up to a power of two
	// Channel is the completion channel that events of the CQ go to; 0 for none:
	// a waiter then waits on the CQ itself.
	Channel uint32
	_       uint32
}

// Queue is a CQ or SRQ that was made, with its ring.
type Queue struct {
	Handle Handle
	Number uint32
	Depth  uint32 // entries the ring holds
	Stride uint32 // bytes an entry
	Ring   Ring
}

// ModerateCQ limits how often a CQ raises events: after Count completions or
// Microseconds after the first, whichever is first; zero values switch it off.
type ModerateCQ struct {
	CQ           Handle
	Count        uint32
	Microseconds uint32
	_            uint32
}

// CreateSRQ asks for a shared receive queue.
type CreateSRQ struct {
	PD     Handle
	Depth  uint32
	MaxSGE uint32
	Limit  uint32 // an event when fewer receives are left; 0 for none
}

// ModifySRQ sets the limit; 0 disarms it.
type ModifySRQ struct {
	SRQ   Handle
	Limit uint32
}

// SRQInfo is the state of a shared receive queue.
type SRQInfo struct{ Depth, MaxSGE, Limit, Posted uint32 }

// QPType is the transport service of a QP.
type QPType uint32

// The transport services.
const (
	RC QPType = iota + 1
	UC
	UD
)

// CreateQP asks for a QP.
type CreateQP struct {
	PD                   Handle
	Type                 QPType
	SendCQ, RecvCQ       Handle
	SRQ                  Handle // 0: its own receive queue
	SendDepth, RecvDepth uint32 // rounded up to powers of two
	SendSGE, RecvSGE     uint32
	Inline               uint32 // bytes of inline data a send may carry
	SignalAll            uint32 // 1: every send completes with a CQE
	_                    uint32
	Context              uint64 // returned in completions and events
}

// QueuePair is a QP that was made, with its rings.
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

// QPMask says which fields of ModifyQP are meant.
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

// AddressVector is where packets go.
type AddressVector struct {
	Addr         Addr   // destination port address; its GID
	SrcIndex     uint32 // row of the GID table
	TrafficClass uint8
	HopLimit     uint8
	SL           uint8 // the priority, 0 to 7; InfiniBand's service level, 0 to 15
	Path         uint8 // InfiniBand: path bits of the source LID, and PathGlobal
	FlowLabel    uint32
	SrcPort      uint16 // UDP source port; 0: computed
	// LID is the destination's on InfiniBand. 0: that of Addr, where a path to it is known.
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
	RNRRetry           uint8  // 0 to 7, 7 means without end
	MinRNRTimer        uint8  // code 0 to 31
	RQPSN, SQPSN       uint32
	InitiatorDepth     uint8 // reads and atomics that this side may have outstanding
	ResponderResources uint8 // reads and atomics of the peer that this side keeps
	FlowControl        uint8 // 1: end-to-end credits, both sides having agreed
	SQDNotify          uint8
	DestQPN            uint32
}

// QPInfo is what a QP is set to; Attr has every bit of the mask set.
type QPInfo struct {
	Attr       ModifyQP
	Type       QPType
	Number     uint32
	Path       uint32 // 1 wire, 2 local, 3 direct
	Draining   uint32
	SendPosted uint32
	RecvPosted uint32
}

// CreateAH asks for an address handle.
type CreateAH struct {
	PD Handle
	_  uint32
	AV AddressVector
}

// PortSpace is an RDMA IP CM port space.
type PortSpace uint32

// The port spaces (IBA annex A11).
const (
	TCP PortSpace = 0x0106
	UDP PortSpace = 0x0111
)

// AnyAdapter in CMCreate leaves the adapter to the address.
const AnyAdapter = 0xffffffff

// CMCreate makes a CM id. Adapter is where it may be bound, or AnyAdapter.
type CMCreate struct {
	Adapter uint32
	Space   PortSpace
	Context uint64
}

// ConnParam is what a side of a connection asks for.
type ConnParam struct {
	ResponderResources uint8
	InitiatorDepth     uint8
	FlowControl        uint8
	RetryCount         uint8 // 0 to 7
	RNRRetry           uint8 // 0 to 7
	SRQ                uint8
	PrivateLen         uint8
	_                  uint8
	QPN                uint32 // used where no QP handle is given
	QKey               uint32 // UD
	Private            [224]byte
}

// CMConnect starts a connection (TCP space) or a UD look-up (UDP space). With a
// QP handle the driver moves the QP through its states itself: to Init now, to
// RTR and RTS when the answer is there, to Err when the connection ends.
type CMConnect struct {
	ID      Handle
	QP      Handle
	Remote  Endpoint
	Param   ConnParam
	Timeout uint32 // milliseconds for the whole attempt; 0: 10 s
	// Where ID is 0 an id is made for the attempt, as by CMCreate with these. Its events
	// may come before the answer, and name it by Context. It ends with an error.
	Space   PortSpace
	Adapter uint32
	_       uint32
	Context uint64
}

// CMAccept answers a connection request.
type CMAccept struct {
	ID    Handle
	QP    Handle
	Param ConnParam
}

// CMReject refuses a connection request or response.
type CMReject struct {
	ID         Handle
	Reason     uint32 // CM reject code; 0: 28, consumer
	PrivateLen uint32
	Private    [148]byte
}

// CMInfo is the state of a CM id.
type CMInfo struct {
	Local, Remote Endpoint
	Adapter       uint32
	State         uint32
	QPN           uint32
	RemoteQPN     uint32
	SrcPort       uint32 // UDP source port of the connection
	_             uint32
}

// EventType is what happened.
type EventType uint32

// The events. Those up to EventPortDown are asynchronous verbs events (IBA 11.6.3).
const (
	EventCommunicationEstablished EventType = iota + 1
	EventSQDrained
	EventLastWQE
	EventQPFatal
	EventQPRequestError // local invalid request
	EventQPAccessError
	EventCQError
	EventSRQLimit
	EventSRQError
	EventPathMigrated
	EventGIDChange
	EventPortActive
	EventPortDown
	EventDeviceFatal // the adapter was disabled or is gone
	EventLIDChange   // those from here on are of InfiniBand ports
	EventPKeyChange
	EventSMChange
	EventClientReregister
)

// The CM events.
const (
	EventConnectRequest  EventType = iota + 64
	EventConnectResponse           // REP or SIDR_REP; call CMEstablish next for the TCP space
	EventEstablished
	EventRejected
	EventUnreachable // no answer in time, or an ICMP error; Status says which
	EventConnectError
	EventDisconnected
	EventTimewaitExit
	EventAddrChange
	EventDeviceRemoval
	EventMulticastJoined
	EventMulticastError
	EventAddressResolved // Remote is the local endpoint that was chosen
	EventAddressError    // Status is a Code
	EventRouteResolved   // on InfiniBand the private data is the PathRecord (IBA 15.2.5.16)
	EventRouteError      // Status is a Code
)

// Event is one event of a client.
type Event struct {
	Type    EventType
	Object  Handle // the QP, CQ, SRQ or CM id; for EventConnectRequest the listening id
	Context uint64 // of that object
	NewID   Handle // EventConnectRequest: the id of the new connection
	Adapter uint32
	Status  uint32 // CM reject code, or a Code
	// LID, SL and Path are as in AddressVector the way to the peer of a datagram id, or to
	// a multicast group, on InfiniBand; 0 elsewhere.
	LID    uint16
	SL     uint8
	Path   uint8
	Remote Endpoint
	Local  Endpoint  // of the connection, in events of the CM
	Param  ConnParam // what the peer asked for, with its private data
}
