package carrier

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// announcements are when everybody is told that another member is active, each after the one before: soon again, since the first one may
// be lost at a port that begins to forward, and then after ANNOUNCE_INTERVAL (RFC 5227 1.1).
var announcements = [...]time.Duration{0, 100 * time.Millisecond, 2 * time.Second}

// Rounds returns after which times everybody is told, each after the round before.
func Rounds() []time.Duration { return slices.Clone(announcements[:]) }

// Announcements are the rounds in which everybody is told of the active member.
type Announcements struct {
	told int
	next clock.Time
}

// NoAnnouncements is nothing to tell.
func NoAnnouncements() Announcements { return Announcements{len(announcements), clock.Never} }

// Begin begins with the first round, which is due at once.
func (a *Announcements) Begin(now clock.Time) { *a = Announcements{0, now} }

// End ends them.
func (a *Announcements) End() { a.next = clock.Never }

// Told says that a round is over.
func (a *Announcements) Told(now clock.Time) {
	a.next = clock.Never
	if a.told++; a.told < len(announcements) {
		a.next = now.Add(announcements[a.told])
	}
}

// Deadline returns when the next round is due.
func (a *Announcements) Deadline() clock.Time { return a.next }
