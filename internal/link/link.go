// Package link is what a port of an adapter is plugged into: memory (tests and
// simulations), UDP sockets, and impairments around any of them.
package link

import (
	"errors"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
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
	// Raw links carry whole Ethernet frames, or with InfiniBand packets from the LRH
	// to the ICRC: encap writes every header.
	Raw, InfiniBand bool
	// MTU is the largest IP packet in bytes that the link carries, with InfiniBand the
	// largest payload that the port is made for.
	MTU int
	// SegmentIDs says that segment i of an IPv4 burst leaves with identification i.
	SegmentIDs bool
	// Stager takes packets of bulk before they are sent; nil: nothing does.
	Stager Stager
}

// Link sends and receives packets without ever blocking. One goroutine at a time
// calls its methods (the owner of the loop), except Close. After Close the
// others return net.ErrClosed.
type Link interface {
	Capabilities() Capabilities

	// Prepare completes a route for this link (socket address, source-port
	// socket) and reports a destination that it cannot reach. It fills in what
	// the ICRC covers and the link decides: an unset DstPort, and SrcPort,
	// which becomes the port that packets really leave from.
	Prepare(r *frame.Route) error

	// Send takes a prefix of frames and returns its length; a short count means
	// that the link is full for now, and ends where a burst ends. Frames whose
	// Segment is not 0 belong to the burst of the frame before. A packet that the
	// system refuses (no route, too long) is taken and counted as a send error,
	// as if the network had lost it, and reported by Errors. Send keeps no
	// reference to the frames.
	Send(frames []frame.Out) (int, error)

	// Receive fills in with packets that have arrived and returns their number,
	// 0 when there are none. Their Data is valid until the next Receive.
	Receive(in []frame.In) (int, error)

	// Errors reports destinations that answered with an ICMP error since the
	// last call, at most len(out). It costs a system call or two where there are
	// none: call it every few milliseconds, not every batch, and before a wait:
	// Send and Receive may have met errors that no descriptor shows any more.
	Errors(out []Unreachable) int

	// Descriptors returns the file descriptors that become readable when
	// Receive or Errors has news, where the platform has them; they stay the
	// same while the link is open. A link without any calls its Notify function
	// instead.
	Descriptors() []int

	// Stats returns counters since the link was opened.
	Stats() Stats

	Close() error
}

// Delayer is a Link that holds frames back for some time. Its Send and Receive also
// release what is due; Deadline only bounds how long its owner may sleep.
type Delayer interface {
	// Deadline returns when the next frame is due, clock.Never where none is held.
	Deadline() clock.Time
	// Flush sends what is due.
	Flush(now clock.Time) error
}

// Stager is a Link that can hand packets to the system from memory of its own, which saves the system a copy. Who makes
// the ICRC copies them there in the same go.
type Stager interface {
	// Stage returns n bytes of that memory, which o is to fill from its headers to its ICRC before it is sent, or nil
	// where it is to leave as others do. It is called for packets of a batch in their order, when Segment is known.
	Stage(o *frame.Out, n int) []byte
}

// ErrNoMulticast says that a link cannot receive what is sent to groups.
var ErrNoMulticast = errors.New("this link receives no multicast")

// Multicaster is a Link that can receive packets that are sent to groups.
type Multicaster interface {
	// Join starts to receive what is sent to group (IGMP or MLD join); joining
	// twice needs two calls of Leave. It wraps ErrNoMulticast where the platform
	// has no way.
	Join(group netip.Addr) error
	// Leave undoes one Join.
	Leave(group netip.Addr) error
}

// Stats are counters of a link since it was opened. Bytes are those of UDP payloads
// (of frames where the link is raw).
type Stats struct {
	SentPackets, SentBytes         uint64
	SentBursts                     uint64
	SentStaged                     uint64 // of the packets sent, those that the system did not copy
	ReceivedPackets, ReceivedBytes uint64
	SendBlocked                    uint64 // Send returned short
	SendErrors                     uint64 // packets that the system refused
	ReceiveDrops                   uint64 // the socket's buffer, or the ring of frames, overflowed, where the system says so; a coalesced burst counts once
	ReceiveTruncated               uint64 // packets longer than any that RoCE sends, dropped
	ErrorsLost                     uint64 // ICMP errors that Errors could not report, too many at once
	SentFrames, ReceivedFrames     uint64 // of the packets, those that went as frames beside the socket
	ReceiveBuffer                  int    // effective receive buffer in bytes
	ImpairedLost, ImpairedDuplicated, ImpairedReordered,
	ImpairedCorrupted, ImpairedMarked, ImpairedDelayed uint64
}
