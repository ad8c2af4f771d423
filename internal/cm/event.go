package cm

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// EventType says what happened to an ID.
type EventType uint8

// The events, with the same names as in package command.
const (
	// EventConnectRequest: a peer asks for a connection, or for a datagram QP.
	// Event.ID is the new id and Event.Listener the one that listened.
	EventConnectRequest EventType = iota + 1
	// EventConnectResponse: the peer accepted. In the TCP port space bring the QP up and call Establish;
	// in the UDP port space there is nothing left to do.
	EventConnectResponse
	// EventEstablished: both sides are ready.
	EventEstablished
	// EventRejected: the peer refused; Reason (or Status), Rejection and Private say why.
	EventRejected
	// EventUnreachable: no answer; Failure says why.
	EventUnreachable
	// EventConnectError: a request ended before it was answered, or a response before Establish: the peer
	// gave up, its listener was destroyed, or RequestLifetime passed. An id that was never claimed is
	// released.
	EventConnectError
	// EventDisconnected: the connection was ended by the peer, by Disconnect or by an error. Move the QP
	// to Err. The QP number stays in time-wait.
	EventDisconnected
	// EventTimewaitExit: Conn.LocalQPN may be reused. It is raised for every connection (not in the UDP
	// port space) that got as far as EventConnectResponse or Accept, even after Destroy (with the ID it
	// had).
	EventTimewaitExit
)

var eventNames = [...]string{EventConnectRequest: "ConnectRequest", EventConnectResponse: "ConnectResponse",
	EventEstablished: "Established", EventRejected: "Rejected", EventUnreachable: "Unreachable",
	EventConnectError: "ConnectError", EventDisconnected: "Disconnected", EventTimewaitExit: "TimewaitExit"}

func (t EventType) String() string {
	if int(t) < len(eventNames) && eventNames[t] != "" {
		return eventNames[t]
	}
	return fmt.Sprintf("event %d", uint8(t))
}

// Command returns the event's number in package command.
func (t EventType) Command() command.EventType {
	return command.EventConnectRequest + command.EventType(t-EventConnectRequest)
}

// Failure says why nobody answered.
type Failure uint8

// The failures of EventUnreachable; EventDisconnected has FailureTimeout or none.
const (
	// FailureNone: the event is not about a failure.
	FailureNone Failure = iota
	// FailureTimeout: no answer before the retries or the attempt's time ran out (ND_IO_TIMEOUT).
	FailureTimeout
	// FailureRefused: ICMP port unreachable (ND_CONNECTION_REFUSED).
	FailureRefused
	// FailureHost: ICMP host unreachable, or no route (ND_HOST_UNREACHABLE).
	FailureHost
	// FailureNetwork: ICMP network unreachable (ND_NETWORK_UNREACHABLE).
	FailureNetwork
)

var failureNames = [...]string{"none", "timed out", "refused", "host unreachable", "network unreachable"}

func (f Failure) String() string {
	if int(f) < len(failureNames) {
		return failureNames[f]
	}
	return fmt.Sprintf("failure %d", uint8(f))
}

// Attributes are the values to which the QP of a connection must be set, and the destination of its
// packets. All are seen from this side: InitiatorDepth is what the local QP may have outstanding, SQPSN
// its first PSN.
type Attributes struct {
	LocalQPN, RemoteQPN uint32
	// QKey is the remote QP's, in the UDP port space.
	QKey uint32
	// RQPSN is the peer's first PSN, SQPSN this side's.
	RQPSN, SQPSN ib.PSN
	MTU          ib.MTU
	PKey         ib.PKey
	// AckTimeout is the local ACK timeout code.
	AckTimeout         uint8
	RetryCount         uint8 // 0 to 7
	RNRRetry           uint8 // 0 to 7; 7: without limit
	PeerRNRRetry       uint8 // the same of the peer, which this side chooses; 0 until it has
	InitiatorDepth     uint8
	ResponderResources uint8
	FlowControl        bool           // end-to-end credits, agreed by both sides
	Type               command.QPType // of the local QP; see command.QPType.Counterpart
	RemoteSRQ          bool           // the peer's QP receives from a shared receive queue

	// LocalGID and RemoteGID are the port addresses, between which packets are actually sent.
	LocalGID, RemoteGID netip.Addr
	FlowLabel           uint32
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8
	// LocalLID and RemoteLID are those of an InfiniBand path, which leaves the subnet if Global; 0 on
	// Ethernet.
	LocalLID, RemoteLID ib.LID
	Global              bool
	// SrcPort is the RoCE v2 UDP source port of the connection, see [udpSourcePort].
	SrcPort uint16
}

// Event tells the driver what happened. Private is valid as long as the driver keeps the event.
type Event struct {
	Type     EventType
	Failure  Failure
	ID       ID
	Listener ID     // EventConnectRequest
	Context  uint64 // of the ID, or of the listener for EventConnectRequest
	Space    command.PortSpace

	// Local and Remote are the addresses and ports used by the programs.
	Local, Remote netip.AddrPort

	// Reason is the code of EventRejected, and of EventConnectError and EventDisconnected if caused by a
	// peer's REJ; otherwise 0.
	Reason mad.RejectReason
	// Status is the SIDR status of EventRejected in the UDP port space.
	Status mad.SIDRStatus
	// Rejection is the additional reject information, at most 72 bytes.
	Rejection []byte
	// Private is the peer's private data, without the RDMA IP CM header. It has the full size of the
	// message's field: the wire format does not tell how much of it is used.
	Private []byte

	// Conn is the current state of the connection's attributes. In EventConnectRequest and
	// EventConnectResponse the peer's InitiatorDepth and ResponderResources are already exchanged, as in
	// librdmacm, and in the response limited to what Connect requested.
	Conn Attributes
	// PeerFlowControl is the peer's own end-to-end flow control bit.
	PeerFlowControl bool
	// Timewait is how long the QP number may not be reused, in EventDisconnected.
	Timewait time.Duration
}

// Datagram is a MAD for a peer's QP1 (UD SEND_ONLY, Q_Key 0x80010000).
type Datagram struct {
	// Local and Remote are the port addresses, without zones: for link-local addresses the driver must add
	// them. On InfiniBand they stand for the LIDs, see frame.LIDAddr. RemoteQPN is always 1.
	Local, Remote netip.Addr
	RemoteQPN     uint32
	// SL and PKey are those of an InfiniBand path, for an answer those of the request.
	SL     uint8
	PKey   ib.PKey
	Global Global
	Marks  Marks
	MAD    [256]byte
}

// Marks is what the priority and the DSCP of a message follow from on Ethernet, as those of the connection's packets do: the service
// level and the traffic class of its path, which the request names (IBA 12.6.5), for other answers the traffic class of what they
// answer; and the port of the connection, for which there may be a rule. The zero value leaves all to the rules.
type Marks struct {
	SL, TrafficClass uint8
	Port             uint16 // 0: there is none, or the program has chosen the traffic class
}

// Global is the GRH of an InfiniBand MAD, seen from this side: messages go from Local to Remote. The zero
// value means no GRH. The answer to a MAD with a GRH has one too (IBA 13.5.4.3).
type Global struct {
	Local, Remote ib.GID
	TrafficClass  uint8
	FlowLabel     uint32
}

// Peer is the origin of a MAD: the addresses of its packet and the source QP of its DETH. On InfiniBand
// the addresses stand for the LIDs, see frame.LIDAddr.
type Peer struct {
	Local, Remote netip.Addr
	QPN           uint32
	SL            uint8
	PKey          ib.PKey
	Global        Global
	Marks         Marks // Ethernet: of what is sent there
}

// udpSourcePort returns the RoCE v2 UDP source port of a connection between two ports of the RDMA port
// space: (src XOR dst) OR 0xC000 (WinOF manual, RoCE v2).
func udpSourcePort(src, dst uint16) uint16 { return (src ^ dst) | 0xc000 }
