package cm

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
)

const (
	permissiveLID = 0xffff // RoCE has no LIDs: this is what REQ contains
	// mraTimeout is the service timeout of this side's MRAs, 4.3 s. The peer's next repetition is answered
	// with another MRA; a short timeout costs little, and a long one delays recovery from a later loss.
	mraTimeout = 20
	// maxInterval and maxTimewait limit times set by a peer's REQ: five bits can encode 2.4 hours.
	maxInterval   = 10 * time.Second
	minInterval   = 10 * time.Millisecond
	maxService    = time.Minute
	maxTimewait   = 10 * time.Second
	maxAckTimeout = 22
	maxLifetime   = 30 // so that the ACK timeout can be one code higher
)

// ackTimeout returns the local ACK timeout code for a path: twice the packet lifetime plus the peer's ACK
// delay, rounded up to a power of two (IBA 12.7.34; Linux rounds the same way).
func ackTimeout(ackDelay, lifetime uint8) uint8 {
	code := lifetime + 1
	if code >= ackDelay {
		if ackDelay >= code-1 {
			code++
		}
	} else {
		code = ackDelay
		if code-1 <= lifetime+1 {
			code++
		}
	}
	return min(code, 31)
}

// interval returns how long to wait for an answer: the round trip plus the peer's response time.
func interval(responseTimeout, lifetime uint8) time.Duration {
	d := ib.CMTimeout(responseTimeout) + 2*ib.CMTimeout(lifetime)
	return min(max(d, minInterval), maxInterval)
}

// flowLabel returns the 20-bit flow label that Linux uses for a connection of the RDMA CM.
func flowLabel(src, dst uint16) uint32 {
	return (uint32(src)*31 + uint32(dst)) & 0xfffff
}

// bare returns an address without zone, unmapped if it is IPv4-mapped, for comparison.
func bare(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func barePort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(bare(a.Addr()), a.Port())
}
