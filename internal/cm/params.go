package cm

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
)

// Most private data that each message carries for its consumer, in bytes. The
// RDMA IP CM header has 36 of REQ's 92 and of SIDR_REQ's 216.
const (
	MaxPrivateREQ     = 56
	MaxPrivateREP     = 196
	MaxPrivateREJ     = 148
	MaxPrivateRTU     = 224
	MaxPrivateDREQ    = 220
	MaxPrivateDREP    = 224
	MaxPrivateSIDRREQ = 180
	MaxPrivateSIDRREP = 136
	// MaxRejection is the most additional reject information in REJ.
	MaxRejection = 72
)

// Connect is what the active side asks for.
type Connect struct {
	// Remote is the peer's address and port.
	Remote netip.AddrPort
	// Local is the source address; needed where Bind gave none.
	Local netip.Addr
	// LocalGID and RemoteGID are the port addresses where they are not the IP
	// addresses above (MAC-based RoCE v1).
	LocalGID, RemoteGID netip.Addr

	// QPN is the local QP; in the UDP port space it is not sent.
	QPN uint32
	// UC asks for an unreliable connection.
	UC bool
	// SRQ says that the local QP receives from a shared queue.
	SRQ bool
	// NoFlowControl keeps this connection from end-to-end credits.
	NoFlowControl bool
	// ResponderResources is how many reads and atomics of the peer the local QP
	// keeps, InitiatorDepth how many it wants to have outstanding.
	ResponderResources, InitiatorDepth uint8
	// RetryCount is used by both sides, RNRRetry by the peer; 0 to 7.
	RetryCount, RNRRetry uint8
	// MTU limits the path MTU below the port's; 0: no limit.
	MTU ib.MTU
	// AckTimeout is a local ACK timeout code of 1 to 31; 0: from the configuration.
	AckTimeout uint8
	// TrafficClass, SL and HopLimit (0: 64) of the path.
	TrafficClass, SL, HopLimit uint8

	// Private is at most MaxPrivateREQ, or MaxPrivateSIDRREQ, bytes.
	Private []byte
	// Timeout bounds the whole attempt; 0: 10 s, which is then extended when
	// the peer asks for more time with an MRA.
	Timeout time.Duration
}

// Accept is what the passive side answers.
type Accept struct {
	// QPN is the local QP.
	QPN uint32
	// QKey of the QP in the UDP port space; 0: 0x01234567.
	QKey uint32
	// SRQ says that the local QP receives from a shared queue.
	SRQ bool
	// NoFlowControl keeps this connection from end-to-end credits.
	NoFlowControl bool
	// ResponderResources and InitiatorDepth are limited to what the peer asked for.
	ResponderResources, InitiatorDepth uint8
	// RNRRetry is used by the peer; 0 to 7.
	RNRRetry uint8
	// Private is at most MaxPrivateREP, or MaxPrivateSIDRREP, bytes.
	Private []byte
}
