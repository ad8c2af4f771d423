package congestion

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Bucket limits the rate of what a queue pair sends to what its program has asked for (ibv_modify_qp_rate_limit): a token bucket,
// which is full at first. Like ReactionPoint it has no timers.
type Bucket struct {
	rate  float64       // Mbit/s
	depth time.Duration // what may leave at once, in time at the rate
	full  clock.Time    // when as much as that may leave at once again
}

// NewBucket returns one of a rate in kbit/s, and of so many bytes that may leave at once. Neither is 0.
func NewBucket(now clock.Time, kbps, burst uint32) *Bucket {
	b := &Bucket{rate: float64(kbps) / 1000, full: now}
	b.depth = takes(int(burst), b.rate)
	return b
}

// NextSend returns from when on a packet of so many bytes may leave. One that is longer than what may leave at once may when that
// much may.
func (b *Bucket) NextSend(now clock.Time, packet int) clock.Time {
	return max(now, b.full.Add(min(takes(packet, b.rate), b.depth)-b.depth))
}

// Room returns how many bytes may leave now, at least 1 where NextSend allows a packet.
func (b *Bucket) Room(now clock.Time) int {
	left := b.depth - max(0, b.full.Sub(now))
	return max(1, int(b.rate*float64(left)/8000))
}

// Sent says that so many bytes have left, with all their headers, retransmissions among them.
func (b *Bucket) Sent(now clock.Time, bytes int) { b.full = max(b.full, now).Add(takes(bytes, b.rate)) }
