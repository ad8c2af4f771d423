// Package link is what a port of an adapter is plugged into: memory (tests and
// simulations), UDP sockets, and impairments around any of them.
package link

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
)

// Capabilities says what a link can do; they do not change while it is open.
type Capabilities struct {
	// MaxSegments is the most equal-sized packets one burst may hold; 1 means
	// that the link sends packets singly.
	MaxSegments int
	// MaxBurst is the most bytes of one burst, headers of the transport,
	// payloads and ICRCs together; 0 where MaxSegments is 1.
	MaxBurst int
	// Raw links carry whole Ethernet frames: encap writes every header.
	Raw bool
	// MTU is the largest IP packet in bytes that the link carries.
	MTU int
	// SegmentIDs says that segment i of an IPv4 burst leaves with identification i.
	SegmentIDs bool
}

// Link sends and receives packets without ever blocking. One goroutine at a time
// calls its methods (the owner of the loop), except Close.
type Link interface {
	Capabilities() Capabilities

	// Prepare completes a route for this link (socket address, source-port
	// socket) and reports a destination that it cannot reach.
	Prepare(r *frame.Route) error

	// Send takes a prefix of frames and returns its length; a short count means
	// that the link is full for now. Frames whose Segment is not 0 belong to
	// the burst of the frame before. Send keeps no reference to the frames.
	Send(frames []frame.Out) (int, error)

	// Receive fills in with packets that have arrived and returns their number,
	// 0 when there are none. Their Data is valid until the next Receive.
	Receive(in []frame.In) (int, error)

	// Errors reports destinations that answered with an ICMP error since the
	// last call, at most len(out).
	Errors(out []Unreachable) int

	// Descriptors returns the file descriptors that become readable when
	// Receive or Errors has news, where the platform has them. A link without
	// any calls its Notify function instead.
	Descriptors() []int

	// Stats returns counters since the link was opened.
	Stats() Stats

	Close() error
}

// Unreachable is an ICMP error that a destination, or a router before it,
// answered with.
type Unreachable struct {
	Dst  netip.Addr
	Kind UnreachableKind
	// QPN is the destination QP of the packet that was answered, where the
	// quoted bytes hold it; otherwise 0.
	QPN uint32
}

// UnreachableKind tells what was not there.
type UnreachableKind uint8

// The kinds of unreachable destinations (RFC 792, RFC 4443).
const (
	PortUnreachable UnreachableKind = iota + 1
	HostUnreachable
	NetworkUnreachable
)

// Stats are counters of a link since it was opened.
type Stats struct {
	SentPackets, SentBytes         uint64
	SentBursts                     uint64
	ReceivedPackets, ReceivedBytes uint64
	SendBlocked                    uint64 // Send returned short
	SendErrors                     uint64
	ReceiveDrops                   uint64 // the socket's buffer overflowed, where the system says so
	ReceiveBuffer                  int    // effective receive buffer in bytes
	ImpairedLost, ImpairedDuplicated, ImpairedReordered,
	ImpairedCorrupted, ImpairedMarked uint64
}
