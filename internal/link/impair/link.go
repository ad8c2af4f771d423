package impair

import (
	"math/rand/v2"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

const (
	queueSlots  = 4096                  // packets that may be held
	lateSlots   = 32                    // packets that may be held back to be overtaken
	lateMost    = 8                     // packets that overtake one
	lateWait    = time.Millisecond      // until a packet that too few overtook is sent
	rateBacklog = 2 * time.Millisecond  // how far ahead of a limited rate packets are accepted
	retryAfter  = 50 * time.Microsecond // when the link below was full

	// Bytes on the wire around a UDP payload for IPv4: Ethernet, IP and UDP headers, frame check sequence,
	// preamble and gap. IPv6 has 20 more.
	wireOverhead    = 14 + 20 + 8 + 4 + 20
	wireOverheadV6  = wireOverhead + 20
	wireOverheadRaw = 4 + 20
)

// Link is a link.Link around another that impairs what is sent. While no impairment is set, everything
// goes straight through. Like any link it has a single owner, who also calls Flush at the Deadline: Send and Receive
// release what is due as well.
type Link struct {
	inner  link.Link
	now    func() clock.Time
	caps   link.Capabilities
	set    Impairment
	on     bool // impaired, or holding packets
	random *rand.PCG

	queue held
	late  []latePacket
	free  clock.Time // when the wire is free, at the limited rate
	last  clock.Time // due time of the last packet in the queue
	retry clock.Time
	stats link.Stats // counts of impaired packets
}

var _ link.Link = (*Link)(nil)

// latePacket is held back until enough others have overtaken it, or its time has come.
type latePacket struct {
	packet
	left  int
	until clock.Time
}

// New wraps a link. now is the clock of the link's owner.
func New(inner link.Link, set Impairment, now func() clock.Time) *Link {
	l := &Link{inner: inner, now: now, caps: inner.Capabilities()}
	l.Set(set)
	return l
}

// Set changes the impairment and restarts the random choices from its seed. Packets already held leave at
// the time decided before.
func (l *Link) Set(set Impairment) {
	l.set = set
	l.random = rand.NewPCG(set.Seed, 0x5eed)
	l.free = 0
	if set.Enabled() {
		l.queue.init()
		if l.late == nil {
			l.late = newLate()
		}
	}
	l.settle()
}

// Idle reports whether packets pass straight through, until the next Set.
func (l *Link) Idle() bool { return !l.on }

// held returns how many packets are held back at the moment.
func (l *Link) held() int { return l.queue.len + len(l.late) }

// settle returns to passing straight through once nothing is impaired or held.
func (l *Link) settle() {
	l.on = l.set.Enabled() || l.held() > 0
	if !l.on {
		l.queue, l.late = held{}, nil
	}
}

// Capabilities implements link.Link. They are the inner link's; bursts are taken apart here.
func (l *Link) Capabilities() link.Capabilities { return l.inner.Capabilities() }

// Prepare implements link.Link.
func (l *Link) Prepare(r *frame.Route) error { return l.inner.Prepare(r) }

// Errors implements link.Link.
func (l *Link) Errors(out []link.Unreachable) int { return l.inner.Errors(out) }

// Descriptors implements link.Link.
func (l *Link) Descriptors() []int { return l.inner.Descriptors() }

// Close implements link.Link. Packets held are lost.
func (l *Link) Close() error { return l.inner.Close() }

// Stats implements link.Link: those of the inner link, plus the impaired packets.
func (l *Link) Stats() link.Stats {
	s := l.inner.Stats()
	s.ImpairedLost, s.ImpairedDuplicated = l.stats.ImpairedLost, l.stats.ImpairedDuplicated
	s.ImpairedReordered, s.ImpairedCorrupted = l.stats.ImpairedReordered, l.stats.ImpairedCorrupted
	s.ImpairedMarked, s.ImpairedDelayed = l.stats.ImpairedMarked, l.stats.ImpairedDelayed
	s.SendBlocked += l.stats.SendBlocked
	return s
}

// Receive implements link.Link. It also sends what is due.
func (l *Link) Receive(in []frame.In) (int, error) {
	if l.on {
		if err := l.Flush(l.now()); err != nil {
			return 0, err
		}
	}
	return l.inner.Receive(in)
}

// Send implements link.Link.
func (l *Link) Send(frames []frame.Out) (int, error) {
	if !l.on {
		return l.inner.Send(frames)
	}
	now := l.now()
	taken := 0
	for taken < len(frames) && l.room(now) {
		l.take(&frames[taken], now)
		taken++
	}
	if taken < len(frames) {
		l.stats.SendBlocked++
	}
	return taken, l.Flush(now)
}

// room reports whether another packet is accepted. One that a limited rate would delay too long waits at
// its sender instead, as at a busy port.
func (l *Link) room(now clock.Time) bool {
	if l.queue.free() < 2+len(l.late) {
		return false
	}
	return l.set.Rate == 0 || l.free.Sub(now) < rateBacklog
}
