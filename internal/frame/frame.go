// Package frame defines the packets that pass between the transport engines, the encapsulation and the
// links. The values are in arrays that the loop owns and reuses for every batch; nothing in them outlives
// the batch.
package frame

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// HeadRoom is the space before the BTH, in which encapsulations that build the whole frame write their
	// headers: at most the outer Ethernet with VLAN, IPv6, UDP and VXLAN headers of a tunnel and the inner
	// Ethernet with VLAN, IPv6 and UDP headers, 140 bytes. It makes the transport's headers begin with a
	// cache line of Out.
	HeadRoom = 192
	// transportRoom has room for the longest BTH with extended headers: BTH, XRCETH and AtomicETH, 44 bytes
	// (IBA 9.2).
	transportRoom = 48
	headSize      = HeadRoom + transportRoom
)

// DefaultHopLimit is the hop limit (TTL) of packets whose route has none, and of connections whose program
// chooses none: RoCE's (WinOF 5.50 release notes, 1166268).
const DefaultHopLimit = 16

// Priorities is the number of priorities at which packets leave a port (IEEE 802.1Q, 6.9.3).
const Priorities = 8

// Hops returns the hop limit of a packet for one that may be 0, which means DefaultHopLimit.
func Hops(limit uint8) uint8 {
	if limit == 0 {
		return DefaultHopLimit
	}
	return limit
}

// Route holds the destination and the outer headers of the packets of a QP or an address handle. It is
// created once (Link.Prepare completes it) and then shared by all packets; the loop owns it.
type Route struct {
	Src, Dst     netip.Addr // port addresses (the IP form of SGID and DGID)
	SrcPort      uint16     // RoCE v2 UDP source port, computed for the connection
	DstPort      uint16     // RoCE v2 UDP destination port; 0 means the link's own
	TrafficClass uint8      // DSCP and ECN as in IPv4 ToS
	HopLimit     uint8      // 0 means DefaultHopLimit
	Priority     uint8      // at which packets leave the port, 0 to Priorities-1

	// Near says that the sending loop also serves Dst, by another adapter or the same one: nothing is
	// received while it sends. Set by the device.
	Near bool

	FlowLabel uint32 // 20 bits, IPv6 and GRH

	// Rate is how fast packets leave at most, in kbit/s, and Pace keeps it; 0 and nil: as fast as they may.
	Rate uint32
	Pace Pacer

	// Path is what the link keeps for the route, set by Link.Prepare; nil: nothing.
	Path Path

	SrcMAC [6]byte // for links that build the frame
	DstMAC [6]byte
	VLAN   uint16 // TCI; 0 means untagged

	// Bursts says that the link joins packets of equal length into bursts (link.Capabilities.MaxSegments). Set by the device.
	Bursts bool

	// IB is set if the port is InfiniBand. Src and Dst then are the LIDs of both ends as returned by
	// LIDAddr, or Dst the GID of a multicast group.
	IB InfiniBand
}

// A Pacer keeps the rate of what leaves by a route, in bytes of packets with all their headers.
type Pacer interface {
	// NextSend returns from when on a packet that waits may leave.
	NextSend(now clock.Time, packet int) clock.Time
	// Room returns how many bytes may leave now.
	Room(now clock.Time) int
	// Sent says that so many have left.
	Sent(now clock.Time, bytes int)
}

// Path is what a link keeps for one route: nobody else looks into it.
type Path interface {
	// Release says that the route is gone.
	Release()
}

// Release frees what the link keeps for the route, after its last packet was sent. r may be nil.
func (r *Route) Release() {
	if r != nil && r.Path != nil {
		r.Path.Release()
		r.Path = nil
	}
}

// Out is a packet to be sent. The transport writes the BTH and extended headers to Head[HeadRoom:HeadEnd],
// points Payload into registered memory and sets the pad; encap adds ICRC and outer headers. An Ethernet function writes a
// frame's first bytes, its Ethernet header at least, to the end of Head, and says in Task what is left to do for it.
//
// What links that write no outer headers use lies in the last two of its five cache lines.
type Out struct {
	Head      [headSize]byte
	Route     *Route
	HeadStart uint16  // first byte in use; HeadRoom until an outer header is added
	HeadEnd   uint16  // end of the extended headers
	Pad       uint8   // zero bytes after the payload that fill the last word, 0 to 3 (IBA 9.2.3)
	TailLen   uint8   // bytes of Tail in use
	Segment   uint16  // position in a burst; 0 starts a new one. Set by encap
	Tail      [8]byte // pad and ICRC
	Payload   []byte  // may be empty
	// Windowed says that the number of such packets in flight to a destination is limited by its window.
	// Set by the transport.
	Windowed bool
	// Inside says that the packet is for another function at the same port and does not reach the link. Set by the port.
	Inside bool
	// BadFCS says that the frame check sequence of a whole Ethernet frame does not fit it any more: its link has damaged it.
	BadFCS bool
	// Held says that the link keeps the packet until it knows its neighbour: it sends it then, or loses it. Set by the link, or by the
	// port for one that an overlay keeps.
	Held bool
	// Task is what is left to do for a whole Ethernet frame; the zero value for all others.
	Task offload.Task
	// Staged is the whole packet in one piece, valid as long as its Payload: in the memory of its link (link.Stager), for the
	// next Send, or, of a frame that an Ethernet function hands out as its host has made it, where that has it. nil: it is
	// nowhere in one piece.
	Staged []byte
}

// Reset makes o an empty packet for route with its headers at HeadRoom.
func (o *Out) Reset(route *Route) {
	o.Route = route
	o.HeadStart, o.HeadEnd = HeadRoom, HeadRoom
	o.Pad, o.TailLen, o.Segment = 0, 0, 0
	o.Payload, o.Staged, o.Windowed, o.Inside, o.BadFCS, o.Held, o.Task = nil, nil, false, false, false, false, offload.Task{}
}

// SetMark gives the packet a number by which a capture says which of its maker's packets it is: at the beginning of Head, which no
// encapsulation reaches.
func (o *Out) SetMark(m uint32) { binary.NativeEndian.PutUint32(o.Head[:], m) }

// Mark returns the packet's mark, or anything if its maker has set none.
func (o *Out) Mark() uint32 { return binary.NativeEndian.Uint32(o.Head[:]) }

// Len returns the current length of the packet in bytes.
func (o *Out) Len() int {
	return int(o.HeadEnd-o.HeadStart) + len(o.Payload) + int(o.TailLen)
}

// OnWire returns as how many frames, of how many bytes together, a whole Ethernet frame goes by a wire that takes none of several
// segments.
func (o *Out) OnWire() (frames, bytes int) {
	if o.Task.Kind == offload.Whole {
		return 1, o.Len()
	}
	return o.Task.OnWire(o.Head[o.HeadStart:o.HeadEnd], o.Len())
}

// In is a received packet. A UDP socket's link delivers the UDP payload in Data (BTH to ICRC) and the
// outer fields separately; a link that sees the frame delivers the whole frame in Data with Raw set, and
// encap fills in the outer fields. After encap.Open, Data extends from the BTH to the end of the payload's
// pad, without the ICRC. Data is valid until the next Link.Receive.
//
// Payload is nil unless the payload is somewhere else: Data then is the packet without it, the pad at its
// end. So are packets whose payload encap.OpenNext copied to its destination, in the memory of the Next, and
// those whose payload the simulator does not copy. Datagrams are always whole.
type In struct {
	Data, Payload []byte
	Src, Dst      netip.Addr
	SrcPort       uint16
	TrafficClass  uint8
	HopLimit      uint8
	FlowLabel     uint32
	Segment       uint16 // most likely identification: the position in the received GRO burst, or what was seen
	Raw           bool   // Data is a whole Ethernet frame, or InfiniBand packet from the LRH to the ICRC
	IDSeen        bool   // Segment is the IPv4 identification on the wire, for which the ICRC was made unless for 0
	IDKnown       bool   // ID is the IPv4 identification on the wire, for which the ICRC was made
	BadFCS        bool   // the frame check sequence of a whole Ethernet frame is wrong
	ID            uint16
	SL            uint8  // InfiniBand
	PathBits      uint8  // of the DLID of an InfiniBand packet
	SLID          ib.LID // 0: not an InfiniBand packet
	// Task is what is known of a whole Ethernet frame, and left to do for it.
	Task offload.Task
	// GRH is the global route header of an InfiniBand or RoCE v1 packet, nil if it has none.
	GRH *[ib.GRHLen]byte
}

// Len returns the current length of the packet in bytes.
func (p *In) Len() int { return len(p.Data) + len(p.Payload) }

// OnWire returns as how many frames, of how many bytes together, a whole Ethernet frame comes by a wire that takes none of
// several segments.
func (p *In) OnWire() (frames, bytes int) {
	if p.Task.Kind == offload.Whole {
		return 1, len(p.Data)
	}
	return p.Task.OnWire(p.Data, len(p.Data))
}

// Next predicts the next packets of a sender: middle packets of a message, which differ only in the last
// word of their BTHs and in their payloads, in the order of their PSNs, with payloads of equal size that
// go to consecutive parts of Memory. It is advanced by each of them.
type Next struct {
	Head    uint64 // the first eight bytes of the BTH as they are in memory
	PSN     ib.PSN // of the first
	Src     netip.Addr
	SrcPort uint16 // UDP source port; 0: any
	Size    int    // bytes of each payload
	Memory  []byte
}
