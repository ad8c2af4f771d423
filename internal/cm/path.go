package cm

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
)

const (
	defaultHopLimit = 64
	permissiveLID   = 0xffff // RoCE has no LIDs: REQ carries these
	// mraTimeout is the service time-out of this side's MRAs, 4.3 s. The peer's
	// next repetition is answered with another one; a short time-out costs little,
	// and a long one delays the repair of what is lost after it.
	mraTimeout = 20
	// maxInterval and maxTimewait bound times that a peer's REQ sets: five bits
	// can say 2.4 hours.
	maxInterval   = 10 * time.Second
	minInterval   = 10 * time.Millisecond
	maxService    = time.Minute
	maxTimewait   = 10 * time.Second
	maxAckTimeout = 22
	maxLifetime   = 30 // so that the ACK timeout is one code more
)

// ackTimeout is the local ACK timeout code for a path: twice the packet lifetime
// and the peer's ACK delay, rounded up to a power of two (IBA 12.7.34; Linux
// rounds the same way).
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

// interval is how long to wait for an answer: there, think, and back.
func interval(responseTimeout, lifetime uint8) time.Duration {
	d := ib.CMTimeout(responseTimeout) + 2*ib.CMTimeout(lifetime)
	return min(max(d, minInterval), maxInterval)
}

// flowLabel is the 20-bit label that Linux gives to a connection of the RDMA CM.
func flowLabel(src, dst uint16) uint32 {
	return (uint32(src)*31 + uint32(dst)) & 0xfffff
}

// bare is an address without zone, and IPv4 where it is IPv4-mapped, as the
// engine compares them.
func bare(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func barePort(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(bare(a.Addr()), a.Port())
}
