package congestion

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Bucket limits the rate of what a queue pair sends to what its program has asked for (ibv_modify_qp_rate_limit): a token bucket,
// which is full at first. Like ReactionPoint it has no timers: whoever is told to wait is expected back at that time, and is woken later
// than that where processors are scarce. What the rate has made meanwhile may leave, too, unless the burst is somebody's wish.
type Bucket struct {
	rate  float64       // Mbit/s
	depth time.Duration // what may leave at once, in time at the rate
	full  clock.Time    // when as much as that may leave at once again
	carry time.Duration // of a late wake-up, at most
	// due is until when whoever has something to send was told to wait; 0: nobody was.
	due clock.Time
	// owed is how late it came back, and counts until the time expires.
	owed    time.Duration
	expires clock.Time
}

// MostCarried is how late whoever waits may be woken without losing a part of its rate. Threads that share a processor with others
// wait for it for some milliseconds.
const MostCarried = 20 * time.Millisecond

// NewBucket returns one of a rate in kbit/s, and of so many bytes that may leave at once. Neither is 0. What the rate makes in a
// time of up to carry while somebody that waits is late to wake up, beyond these bytes, is kept for it.
func NewBucket(now clock.Time, kbps, burst uint32, carry time.Duration) *Bucket {
	b := &Bucket{rate: float64(kbps) / 1000, full: now, carry: carry}
	b.depth = takes(int(burst), b.rate)
	return b
}

// NextSend returns from when on a packet of so many bytes may leave, which waits to be sent. One that is longer than what may leave at
// once may when that much may.
func (b *Bucket) NextSend(now clock.Time, packet int) clock.Time {
	at := max(now, b.full.Add(min(takes(packet, b.rate), b.depth)-b.depth))
	if b.wake(now); at > now {
		b.due = at
	}
	return at
}

// wake says that whoever has something to send has its turn.
func (b *Bucket) wake(now clock.Time) {
	if b.due != 0 && now >= b.due {
		b.owed, b.expires = min(now.Sub(b.due), b.carry), now.Add(b.carry)
		b.due = 0
	}
}

// late returns how much of the time that has passed is kept.
func (b *Bucket) late(now clock.Time) time.Duration {
	if b.owed != 0 && now > b.expires {
		b.owed = 0
	}
	return b.owed
}

// Room returns how many bytes may leave now, at least 1 where NextSend allows a packet.
func (b *Bucket) Room(now clock.Time) int {
	left := b.depth - max(-b.late(now), b.full.Sub(now))
	return max(1, int(b.rate*float64(left)/8000))
}

// Sent says that so many bytes have left, with all their headers, retransmissions among them.
func (b *Bucket) Sent(now clock.Time, bytes int) {
	b.full = max(b.full, now.Add(-b.late(now))).Add(takes(bytes, b.rate))
}
