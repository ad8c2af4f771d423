// Package link defines the links of an adapter's port: memory (tests and simulations), UDP sockets, whole Ethernet frames
// (an interface of the system, a TAP, a unix datagram socket), cables to InfiniBand fabrics, and impairments around any of
// them.
package link

import (
	"context"
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/pause"
)

// Capabilities say what a link can do, and are the only way to what not every link can; a link around another passes
// them on. They do not change while it is open, except for the MTU.
type Capabilities struct {
	// MaxSegments is the maximum number of equal-sized packets in a burst; 1 means that the link sends
	// packets singly.
	MaxSegments int
	// MaxBurst is the maximum length of a burst in bytes: transport headers, payloads and ICRCs; 0 if
	// MaxSegments is 1.
	MaxBurst int
	// Raw links carry whole Ethernet frames or, if InfiniBand, packets from the LRH to the ICRC: encap
	// writes every header.
	Raw, InfiniBand bool
	// MTU is the largest IP packet in bytes that the link carries; if InfiniBand, the largest payload that
	// the port supports.
	MTU int
	// SegmentIDs says that segment i of an IPv4 burst is sent with identification i.
	SegmentIDs bool
	// Stager provides memory for bulk packets before they are sent; nil: not supported.
	Stager Stager
	// Sleeper must be told before each sleep on the descriptors; nil: not needed.
	Sleeper Sleeper
	// Multicaster joins multicast groups; nil: the link receives no multicast.
	Multicaster Multicaster
	// Resolver finds out whether anybody has an address; nil: not supported.
	Resolver Resolver
	// Stations are the ends that a link of whole Ethernet frames serves; nil: not supported.
	Stations Stations
	// Carrier knows whether the wire is there; nil: it always is, and has no speed of its own.
	Carrier Carrier
	// Pauses is told which pauses the port obeys and sends; nil: no need, since what has been sent is on the wire.
	Pauses Pauses
	// Large says that the link sends frames of several segments and such with checksums to be made (frame.Out's Task), and
	// hands them up to listeners that take them (Stations).
	Large bool
	// Fabric is the link itself if it is InfiniBand; nil otherwise.
	Fabric InfiniBand
}

// Link sends and receives packets without ever blocking. Only one goroutine at a time, the owner of the
// loop, may call its methods. After Close the others return net.ErrClosed.
type Link interface {
	Capabilities() Capabilities

	// Prepare completes a route for this link (socket address, source-port socket) and reports a
	// destination that it cannot reach. It fills in what the ICRC covers and the link determines: DstPort
	// if unset, and SrcPort, which becomes the actual source port. Whoever has the route calls its Release
	// when it is gone.
	Prepare(r *frame.Route) error

	// Send accepts a prefix of frames and returns its length; a short count means that the link is full
	// for now, and ends at the end of a burst. Frames with a non-zero Segment belong to the burst of the
	// frame before. A packet that the system refuses (no route, too long) is accepted and counted as a
	// send error, as if the network had lost it, and reported by Errors. Send does not retain the frames.
	Send(frames []frame.Out) (int, error)

	// Receive fills in with packets that have arrived and returns their number, 0 if there are none. Their
	// Data is valid until the next Receive.
	Receive(in []frame.In) (int, error)

	// Errors reports destinations that answered with an ICMP error since the last call, at most len(out).
	// Even without errors it costs a system call or two: call it every few milliseconds, not in every
	// batch, and before a wait, because Send and Receive may have met errors that no descriptor signals
	// any more.
	Errors(out []Unreachable) int

	// Descriptors returns the file descriptors that become readable when Receive or Errors has news, if
	// the platform has them; they stay the same while the link is open. A link without descriptors calls
	// its Notify function instead.
	Descriptors() []int

	// Stats returns counters since the link was opened.
	Stats() Stats

	Close() error
}

// Stager is a Link that can pass packets to the system from memory of its own, which saves the system a
// copy. Whoever computes the ICRC copies them there in the same pass.
type Stager interface {
	// Stage returns n bytes of that memory, to be filled with o from its headers to its ICRC before it is
	// sent, or nil if the packet is to be sent in the usual way. It is called for the packets of a batch
	// in order, once Segment is known.
	Stage(o *frame.Out, n int) []byte
}

// Sleeper is a Link whose descriptors become readable for some packets only after ArmWakeUp.
type Sleeper interface {
	// ArmWakeUp is called before each sleep on the descriptors. It returns false if packets are waiting: the caller
	// must not sleep then.
	ArmWakeUp() bool
}

// Multicaster is a Link that can receive multicast packets.
type Multicaster interface {
	// Join starts to receive what is sent to group (IGMP or MLD join); joining twice needs two calls of
	// Leave.
	Join(group netip.Addr) error
	// Leave undoes one Join.
	Leave(group netip.Addr) error
}

// Resolver is a Link that can find out whether anybody has an address.
type Resolver interface {
	// Resolve waits until the system knows how to reach dst, as rdma_resolve_addr does before a device may send
	// there. The error is ETIMEDOUT if nobody has answered when ctx ends, and the system's error if there is
	// no route.
	Resolve(ctx context.Context, dst netip.Addr) error
}

// Station is an end on an Ethernet: what a function of an adapter is to others there.
type Station struct {
	MAC  [6]byte
	VLAN uint16 // VLAN ID of its frames, 1 to 4094; 0: they are not tagged
	// Prefixes are its addresses, each with the length of the network that is on the link.
	Prefixes []netip.Prefix
	// Gateways are the routers to other networks, the first of a family for all of its addresses.
	Gateways []netip.Addr
	// Probe says that its addresses, as far as the link answers for them, are not used while somebody else has them: the link asks.
	Probe bool
}

// Stations is a Link that serves stations, which come and go while it is open. Received frames are those to their MACs in
// their VLANs; whom a frame is for says its header.
type Stations interface {
	// SetStation adds a station, or gives the one with its MAC and VLAN other addresses.
	SetStation(s Station) error
	// RemoveStation removes a station. What is sent on routes from it is lost.
	RemoveStation(mac [6]byte, vlan uint16) error
	// Listen hands up, beside the stations' frames, every frame to a MAC or to a group, in whatever VLAN and whatever it
	// carries: what a network card's driver gets. Questions of neighbours are answered all the same. large says whether they
	// may come as the system has coalesced them, if the link is Large; listening again changes it.
	Listen(mac [6]byte, large bool) error
	// Unlisten undoes Listen.
	Unlisten(mac [6]byte) error
	// Own returns the link's own frames of the stations with a MAC. They are no part of its Stats.
	Own(mac [6]byte) OwnFrames
	// Watch keeps copies of the link's own frames from now on, or no longer, for Watched: what captures show beside Send and Receive.
	Watch(on bool)
	// Watched returns the link's own frames since the last call, in order, and how many frames Receive has handed up while they are
	// kept. It is valid until the next call of any method.
	Watched() (own []OwnFrame, handed uint64)
	// Conflicts returns which addresses of stations were seen to be in use by others, too, since the last call. It costs little.
	Conflicts() []Conflict
	// Hear hands up the frames to one group, such as that of LLDP, whoever listens; hear false undoes it.
	Hear(group [6]byte, hear bool) error
}

// Pauses is a Link where what was sent waits for its turn at the other end, which is in another process or a switch in memory: there
// pauses are obeyed and sent as the port does.
type Pauses interface {
	// SetPauses says which pauses the port obeys and sends. They last by a rate in bits per second; 0: pause.DefaultRate.
	SetPauses(obeys, asks pause.Scope, rate uint64)
}

// OwnFrames count the frames that a link sends and receives itself for a station: questions and answers of neighbours, and reports of
// groups.
type OwnFrames struct {
	SentPackets, SentBytes, ReceivedPackets, ReceivedBytes uint64
}

// OwnFrame is a whole frame that a link has sent or received itself.
type OwnFrame struct {
	Data []byte
	Sent bool
	// Handed is how many frames Receive had handed up before, as counted by Stations.Watched.
	Handed uint64
}

// Conflict is an address of a station that somebody else on the wire uses, too.
type Conflict struct {
	Addr netip.Addr
	VLAN uint16
	MAC  [6]byte // of the other
	// Lost says that the address is not used until nobody else has it any more, and Over that this is so now.
	Lost, Over bool
}

// Stats are counters of a link since it was opened. Bytes are those of UDP payloads (of whole frames if
// the link is raw).
type Stats struct {
	SentPackets, SentBytes         uint64
	SentBursts                     uint64
	SentStaged                     uint64 // packets sent that the system did not copy
	ReceivedPackets, ReceivedBytes uint64
	SendBlocked                    uint64 // number of times that Send returned short
	SendErrors                     uint64 // packets that the system refused
	// drops due to overflow of the socket's buffer, if the system reports them; a coalesced burst counts once
	ReceiveDrops               uint64
	ReceiveTruncated           uint64 // packets too long for RoCE, dropped
	ReceiveUndersize           uint64 // frames shorter than an Ethernet header, dropped
	ErrorsLost                 uint64 // ICMP errors that Errors could not report because there were too many at once
	SentFrames, ReceivedFrames uint64 // packets of those sent and received that bypassed the socket
	OtherSourcePorts           uint64 // routes that send from another source port than computed for them
	ReceiveBuffer              int    // effective receive buffer in bytes
	ImpairedLost, ImpairedDuplicated, ImpairedReordered,
	ImpairedCorrupted, ImpairedMarked, ImpairedDelayed uint64
}
