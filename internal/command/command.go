// Package command defines what a program can ask of the adapters, and the answers: plain values without
// behaviour. The device carries the commands out; internal/ipc carries them between processes as
// fixed-width little-endian layouts (every struct here has a fixed binary size), and verbs issues them.
package command

import (
	"context"
	"math"
	"net/netip"
)

// Handle identifies an object of one client: a PD, region, window, CQ, SRQ, QP, address handle, CM id.
// Zero is never a valid handle.
type Handle uint32

// Addr is a port address in IPv6 form (IPv4-mapped for IPv4): 16 bytes.
type Addr [16]byte

// AddrFrom returns a as an Addr.
func AddrFrom(a netip.Addr) Addr { return a.As16() }

// IP returns the address, unmapped if it is IPv4-mapped.
func (a Addr) IP() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// Endpoint is an address with a port of the RDMA port space.
type Endpoint struct {
	Addr Addr
	Port uint16
	_    [6]byte
}

// EndpointFrom returns a as an Endpoint. An invalid address is the zero Addr.
func EndpointFrom(a netip.AddrPort) Endpoint {
	if !a.Addr().IsValid() {
		return Endpoint{Port: a.Port()}
	}
	return Endpoint{Addr: AddrFrom(a.Addr()), Port: a.Port()}
}

// Ring is the location of a ring's memory: Size bytes from Offset in the client's arena number Arena.
type Ring struct {
	Arena  uint32
	_      uint32
	Offset uint64
	Size   uint64
}

// Commands is everything that a client can ask. Every method is safe for concurrent use. Errors are
// *Error. The embedded device and the attached client both implement it.
type Commands interface {
	Adapters(ctx context.Context) ([]AdapterInfo, error)
	GIDs(ctx context.Context, adapter uint32) ([]GID, error)
	// Interfaces returns the network interfaces of the system to which an adapter belongs now.
	Interfaces(ctx context.Context, adapter uint32) ([]Interface, error)
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
	// Destroy destroys any object. A PD, CQ, SRQ or region in use is refused with Busy.
	Destroy(ctx context.Context, kind Kind, h Handle) error

	CMCreate(ctx context.Context, c CMCreate) (Handle, error)
	CMBind(ctx context.Context, id Handle, local Endpoint) (Endpoint, error)
	CMListen(ctx context.Context, id Handle, backlog uint32) error
	// CMConnect returns the handle of the id, which it creates if ID is 0.
	CMConnect(ctx context.Context, c CMConnect) (Handle, error)
	CMAccept(ctx context.Context, c CMAccept) error
	// CMEstablish sends RTU to say that this side is ready. It may return before that is done; a failure
	// is then reported by an event.
	CMEstablish(ctx context.Context, id Handle) error
	CMReject(ctx context.Context, c CMReject) error
	CMDisconnect(ctx context.Context, id Handle) error
	CMQuery(ctx context.Context, id Handle) (CMInfo, error)
	// CMAttributes returns the attributes that bring the QP of a CM id into state by hand; needed only if
	// CMConnect and CMAccept were given no QP.
	CMAttributes(ctx context.Context, id Handle, state QPState) (ModifyQP, error)

	// Events returns at least one and at most len(out) events, waiting until ctx ends.
	Events(ctx context.Context, out []Event) (int, error)
}

// Extended is what librdmacm and libibverbs require beyond Commands. Errors are *Error.
type Extended interface {
	// CreateChannel creates a channel. Events of the kind Completions are passed to raise, which must not
	// block or call back, and reports whether there was room; those without room, and all of the other
	// kinds, are taken with ChannelEvents. Destroy ends it.
	CreateChannel(ctx context.Context, c CreateChannel, raise func(cq Handle) bool) (Handle, error)
	// ChannelEvents returns at least one and at most len(out) events of a channel, waiting until ctx ends.
	// For a CQ's event Object is the CQ and the rest is 0. Canceled: the channel was destroyed.
	ChannelEvents(ctx context.Context, channel Handle, out []Event) (int, error)

	RegisterMemoryAt(ctx context.Context, r RegisterMemoryAt) (Memory, error)
	ReregisterMemory(ctx context.Context, r ReregisterMemory) (Memory, error)

	// OpenXRCD opens an XRC domain; Destroy closes it. NotFound: there is none, and it is not to be created. InUse: there is
	// one, and it is to be a new one.
	OpenXRCD(ctx context.Context, r OpenXRCD) (Handle, error)
	// CreateXRCSRQ creates an SRQ in an XRC domain; Queue.Number is how peers name it.
	CreateXRCSRQ(ctx context.Context, r CreateXRCSRQ) (Queue, error)
	// CreateTagSRQ creates an SRQ that matches tags.
	CreateTagSRQ(ctx context.Context, r CreateTagSRQ) (Queue, error)
	// TagOp changes the matching list of such an SRQ. TagAdd returns the entry, and Exhausted if the list is full.
	TagOp(ctx context.Context, r TagOp) (entry Handle, err error)
	// OpenQP returns another handle of a target QP, which has no rings. The QP ends with its last handle.
	OpenQP(ctx context.Context, r OpenQP) (QueuePair, error)

	// LimitQP limits the rate of a QP. State: it does not send yet, or any more. Unsupported: it never does.
	LimitQP(ctx context.Context, r LimitQP) error

	// CreateFlow steers frames of the port to a raw packet QP; Destroy ends it. A QP with flows is refused with Busy.
	CreateFlow(ctx context.Context, r CreateFlow) (Handle, error)
	// CreateRSS makes what flows can steer to in place of a QP; Destroy ends it. QPs that it spreads to are refused with Busy, as it
	// is itself while it has flows.
	CreateRSS(ctx context.Context, r CreateRSS) (Handle, error)
	// SetRSS changes the table of what CreateRSS has made.
	SetRSS(ctx context.Context, r SetRSS) error
	// SetFrameFlags changes what a raw packet QP does with received frames.
	SetFrameFlags(ctx context.Context, r SetFrameFlags) error
	// FlowCounters returns what a flow has taken so far.
	FlowCounters(ctx context.Context, flow Handle) (FlowCounters, error)
	// FramePort tells of the port of an adapter what programs need for whole frames. Unsupported: its wire carries none.
	FramePort(ctx context.Context, adapter uint32) (FramePort, error)

	CMSetChannel(ctx context.Context, c CMSetChannel) error
	CMResolveAddr(ctx context.Context, c CMResolveAddr) error
	CMResolveRoute(ctx context.Context, c CMResolveRoute) error
	CMJoin(ctx context.Context, c CMJoin) error
	CMLeave(ctx context.Context, c CMLeave) error
	CMOption(ctx context.Context, c CMOption) error
	CMNotify(ctx context.Context, c CMNotify) error
	Clock(ctx context.Context) (Clock, error)
	// LinkAddresses returns the link-layer addresses of the adapter's network interfaces that the system does not know.
	LinkAddresses(ctx context.Context, adapter uint32) ([]LinkAddress, error)
	// Firmware returns what the adapter's device runs, also while it is disabled.
	Firmware(ctx context.Context, adapter uint32) (Firmware, error)
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
	KindDM
	KindXRCD
	KindFlow
	KindRSS
)

// AdapterInfo describes an adapter and its limits.
type AdapterInfo struct {
	Index     uint32
	Port      uint32   // number of the adapter's port in its device
	Name      [64]byte // "Ethernet 1", zero-padded UTF-8
	GUID      uint64
	Addr      Addr // the first address
	Up        uint32
	RoCE      uint32 // 1 v1, 2 v1.25, 3 v2; 0 RDMA disabled; 4 none: an InfiniBand port
	ActiveMTU uint32 // payload bytes: 256, 512, 1024, 2048 or 4096
	LinkMTU   uint32 // largest IP packet in bytes; of an InfiniBand port the largest payload
	UDPPort   uint32
	VendorID  uint32
	DeviceID  uint32

	MaxQP, MaxCQ, MaxSRQ, MaxMR, MaxMW, MaxPD, MaxAH uint32
	MaxQPDepth, MaxCQDepth, MaxSRQDepth              uint32
	MaxSGE, MaxInline                                uint32
	MaxReadResponder, MaxReadInitiator               uint32
	MaxMulticast                                     uint32 // attachments to multicast groups, all QPs together
	MaxMessage, MaxRegion                            uint64
	ProcessorAtomics                                 uint32 // 1: atomics are also atomic with respect to the processors
	LineRate                                         uint32 // limit of the link in Mb/s on the wire; 0 if unknown
}

// Firmware is what a device runs: what its flash held when it was last started.
type Firmware struct {
	Version [64]byte // "1.0.1000", zero-padded, as are all
	Board   [64]byte // its PSID; empty: the adapter is embedded in a program, and has no flash
}

// GID is a row of the GID table.
type GID struct {
	Index uint32
	RoCE  uint32 // 1 v1, 2 v1.25 (IP-based v1), 3 v2, 4 InfiniBand
	GID   [16]byte
}

// WholePort in an Interface says that it is the one of the port, not that of a row of the GID table.
const WholePort = ^uint32(0)

// Interface is a network interface of the system: the one that has the address of a row of the GID table, or that of the
// port as a whole. On an InfiniBand port that is its IPoIB interface, and no row has one, as in Linux.
type Interface struct {
	Row       uint32 // of the GID table, or WholePort
	Index     uint32
	Namespace uint64 // inode of the network namespace in which it has this index; 0: not known
	Name      [16]byte
}

// LinkAddress is the link-layer address of a network interface of the system's that the system does not know: that of an IPoIB
// interface (RFC 4391 9.1.1), which the system takes for one without.
type LinkAddress struct {
	Index     uint32
	Hardware  uint16 // type of the addresses, as in ARP: 32 is InfiniBand
	_         uint16
	Namespace uint64 // inode of the network namespace in which the interface has this index; 0: not known
	Address   [20]byte
	Broadcast [20]byte // of the broadcast group; zeros: it has none now
}

// PortInfo holds the attributes that InfiniBand adds to a port. On Ethernet State and Physical are their
// equivalents, and PKeys contains only the default partition.
type PortInfo struct {
	State, Physical uint8 // PortInfo codes of IBA 14.2.5.6: 1 down, 2 initialize, 3 armed, 4 active; 3 disabled, 5 link up
	LMC, SMSL       uint8
	LID, SMLID      uint16
	Width           uint8 // active: 1 (1x), 2 (4x), 4 (8x), 8 (12x), 16 (2x); 0: unknown
	SubnetTimeout   uint8
	MaxMTU          uint16 // payload bytes
	Lane            uint32 // active speed of a lane in Mb/s; 0: unknown
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

// RegisterMemory registers a region.
type RegisterMemory struct {
	PD     Handle
	Access uint32 // memory.Access bits
	Base   uint64 // address of the first byte in the client; remote peers use it
	Length uint64
	// Segment is the number of a shared segment that the driver allocated for this client, and
	// SegmentOffset the start of the region in it; 0 for the client's own memory.
	Segment       uint32
	_             uint32
	SegmentOffset uint64
}

// Implicit reports whether the region is all of the program's address space: on demand, from 0, and of the
// greatest length there is.
func (r *RegisterMemory) Implicit() bool {
	return r.Access&onDemand != 0 && r.Base == 0 && r.Length == math.MaxUint64
}

// onDemand is memory.OnDemand.
const onDemand = 1 << 6

// RegisterMemoryAt registers a region whose first byte has another address in work requests and packets
// than in the program.
type RegisterMemoryAt struct {
	RegisterMemory
	IOVA uint64
}

// ReregisterMemory changes what a region is, by all that RegisterMemoryAt says. The handle and the keys
// stay. While windows are bound to the region it is refused with Busy, and the region stays as it was.
type ReregisterMemory struct {
	RegisterMemoryAt
	Memory Handle // the region
	_      uint32
}

// Memory is a region or window.
type Memory struct {
	Handle Handle
	LKey   uint32
	RKey   uint32
	Path   MemoryPath
}

// CreateCQ creates a completion queue.
type CreateCQ struct {
	Adapter uint32
	Depth   uint32 // completions, rounded up to a power of two
	// Channel is the completion channel for events of the CQ; 0 for none: waiters then wait on the CQ
	// itself.
	Channel uint32
	Flags   uint32 // of CQTimestamps and CQIgnoreOverrun
}

// Flags of CreateCQ.
const (
	// CQTimestamps asks for completions that say when they were made: nanoseconds of the clock that Clock places.
	CQTimestamps uint32 = 1 << iota
	// CQIgnoreOverrun drops completions that find no room, instead of ending the CQ and its QPs.
	CQIgnoreOverrun
)

// Clock places the clock of completions.
type Clock struct {
	Zero uint64 // CLOCK_MONOTONIC, in nanoseconds, at which it was 0
}

// Queue is a created CQ or SRQ with its ring.
type Queue struct {
	Handle Handle
	Number uint32
	Depth  uint32 // entries the ring holds
	Stride uint32 // bytes per entry
	Ring   Ring
}

// ModerateCQ limits how often a CQ raises events: after Count completions or Microseconds after the first,
// whichever is first; zero values switch it off, and values above 65,535 are rounded down to it.
type ModerateCQ struct {
	CQ           Handle
	Count        uint32
	Microseconds uint32
	_            uint32
}

// CreateSRQ creates a shared receive queue.
type CreateSRQ struct {
	PD     Handle
	Depth  uint32
	MaxSGE uint32
	Limit  uint32 // raise an event when fewer receives are left; 0 for none
}

// ModifySRQ sets the limit; 0 disarms it.
type ModifySRQ struct {
	SRQ   Handle
	Limit uint32
}

// SRQInfo is the state of a shared receive queue.
type SRQInfo struct{ Depth, MaxSGE, Limit, Posted uint32 }
