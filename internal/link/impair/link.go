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
	rateBacklog = 2 * time.Millisecond  // how far ahead of a limited rate packets are accepted
	retryAfter  = 50 * time.Microsecond // when the link below was full
)

// Link is a link.Link around another that impairs what is sent. While no impairment is set, everything
// goes straight through. Like any link it has a single owner, who also calls Flush at the Deadline: Send and Receive
// release what is due as well.
type Link struct {
	inner link.Link
	now   func() clock.Time
	caps  link.Capabilities
	model Model
	on    bool // impaired, or holding packets

	queue held
	late  Late[packet]
	spare []packet // for late
	retry clock.Time
	stats link.Stats // counts of impaired packets
}

var _ link.Link = (*Link)(nil)

// New wraps a link. now is the clock of the link's owner.
func New(inner link.Link, set Impairment, now func() clock.Time) *Link {
	l := &Link{inner: inner, now: now, caps: inner.Capabilities()}
	l.Set(set)
	return l
}

// Set changes the impairment and restarts the random choices from its seed. Packets already held leave at
// the time decided before.
func (l *Link) Set(set Impairment) {
	l.model.Set(set, rand.New(rand.NewPCG(set.Seed, 0x5eed)))
	if set.Enabled() {
		l.queue.init()
		if l.spare == nil {
			l.spare = newLate()
		}
	}
	l.settle()
}

// Idle reports whether packets pass straight through, until the next Set.
func (l *Link) Idle() bool { return !l.on }

// held returns how many packets are held back at the moment.
func (l *Link) held() int { return l.queue.len + l.late.Len() }

// settle returns to passing straight through once nothing is impaired or held.
func (l *Link) settle() {
	l.on = l.model.set.Enabled() || l.held() > 0
	if !l.on {
		l.queue, l.late, l.spare = held{}, Late[packet]{}, nil
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
	return l.queue.free() >= 2+l.late.Len() && l.model.Backlog(now) < rateBacklog
}
