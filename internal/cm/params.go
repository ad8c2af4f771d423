package cm

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

// Connect is the active side's request.
type Connect struct {
	// Remote is the peer's address and port.
	Remote netip.AddrPort
	// Local is the source address; required if the id was not bound to one.
	Local netip.Addr
	// LocalGID and RemoteGID are the port addresses if they differ from the IP addresses above (MAC-based
	// RoCE v1).
	LocalGID, RemoteGID netip.Addr

	// QPN is the local QP; it is not sent in the UDP port space.
	QPN uint32
	// Type is the local QP's: RC (0 too), UC, and in the IB port space also XRCInitiator. Not in the UDP port space.
	Type command.QPType
	// SRQ says that the local QP receives from a shared receive queue.
	SRQ bool
	// NoFlowControl disables end-to-end credits for this connection.
	NoFlowControl bool
	// ResponderResources is how many of the peer's reads and atomics the local QP serves at a time,
	// InitiatorDepth how many it wants to have outstanding.
	ResponderResources, InitiatorDepth uint8
	// RetryCount is used by both sides, RNRRetry by the peer; 0 to 7.
	RetryCount, RNRRetry uint8
	// MTU limits the path MTU below the port's; 0: no limit.
	MTU ib.MTU
	// AckTimeout is a local ACK timeout code of 1 to 31; 0: from the configuration.
	AckTimeout uint8
	// TrafficClass, SL and HopLimit (0: the default of RoCE, 16) of the path.
	TrafficClass, SL, HopLimit uint8
	// RulePort is the port whose rules the messages follow on Ethernet; 0: TrafficClass and SL are the program's.
	RulePort uint16

	// Path is the path to the peer on an InfiniBand fabric; the zero value on Ethernet.
	Path Path

	// Private is at most mad.REQConsumerData (56), or mad.SIDRREQConsumerData (180), bytes.
	Private []byte
	// Timeout limits the whole attempt up to the peer's answer; 0: 10 s. An MRA of the peer delays the
	// next REQ, but not this.
	Timeout time.Duration
}

// Path is a path between two ports of an InfiniBand fabric, as in a PathRecord (IBA 15.2.5.16).
type Path struct {
	LocalLID, RemoteLID ib.LID
	// Global paths leave the subnet: packets have a GRH, and RemoteLID is a router's.
	Global bool
	Rate   uint8   // code
	Life   uint8   // packet lifetime code, replaces Config.PacketLifetime
	PKey   ib.PKey // of the port's table
}

// Accept is the passive side's answer.
type Accept struct {
	// QPN is the local QP.
	QPN uint32
	// QKey of the QP in the UDP port space; 0: 0x01234567.
	QKey uint32
	// SRQ says that the local QP receives from a shared receive queue.
	SRQ bool
	// NoFlowControl disables end-to-end credits for this connection.
	NoFlowControl bool
	// ResponderResources and InitiatorDepth are limited to what the peer requested.
	ResponderResources, InitiatorDepth uint8
	// RNRRetry is used by the peer; 0 to 7.
	RNRRetry uint8
	// TrafficClass is that of the messages from now on, on Ethernet; 0: as the request says, or the rules of the port.
	TrafficClass uint8
	// Private is at most mad.REPPrivateData (196), or mad.SIDRREPPrivateData (136), bytes.
	Private []byte
}
