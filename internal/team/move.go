package team

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// With type 3AD a flow that is to leave by another member, while the one that it leaves by goes on, would overtake itself there. So it
// stays until nothing of it is on the way: it was silent since a marker that the partner has answered (IEEE 802.1AX-2014, 6.5). Flows of a
// member that fails move at once: what was on the way there is lost, or comes late.

const (
	// markEvery is between the markers of a member: slow protocols send ten frames of a kind in a second at most (IEEE 802.3, 57A.2).
	markEvery = 250 * time.Millisecond
	// mostMoving is for how long flows that never pause, and those whose partner answers no marker, keep their members at most.
	mostMoving = 5 * time.Second
)

// moving are the buckets that are to leave by another member.
type moving struct {
	to    [buckets]int8 // -1: it stays
	until clock.Time    // when all move
	due   clock.Time    // when that is, or a member may send another marker
	marks [MostMembers]mark
}

// mark is a member's newest marker.
type mark struct {
	number uint32
	at     clock.Time
	waits  bool
	next   clock.Time // before which it sends no other
}

func (m *moving) clear() {
	for b := range m.to {
		m.to[b] = -1
	}
	m.until, m.due = clock.Never, clock.Never
}

// move gives a bucket to a member, now or once nothing of it is on its way.
func (t *Team) move(now clock.Time, b int, to int8) {
	s, from := &t.spread, t.spread.to[b]
	waits := t.lacp != nil && from >= 0 && to >= 0 && from != to && t.members[from].sends
	if waits && s.last[b] != 0 && now.Sub(s.last[b]) < forgotten {
		t.moving.to[b] = to
		return
	}
	s.to[b], t.moving.to[b] = to, -1
}

// mark has the members send markers whose flows are to move, as often as they may.
func (t *Team) mark(now clock.Time) {
	m := &t.moving
	var leaves [MostMembers]bool
	waiting := false
	for b, to := range m.to {
		if to >= 0 {
			waiting, leaves[t.spread.to[b]] = true, true
		}
	}
	if !waiting {
		m.until, m.due = clock.Never, clock.Never
		return
	}
	if m.until == clock.Never {
		m.until = now.Add(mostMoving)
	}
	m.due = m.until
	for i := range t.members {
		k := &m.marks[i]
		if !leaves[i] {
			k.waits = false
			continue
		}
		if now >= k.next {
			*k = mark{t.lacp.Mark(i), now, true, now.Add(markEvery)}
		}
		m.due = clock.Min(m.due, k.next)
	}
}

// advanceMoves sends the next markers, and moves what has waited for too long.
func (t *Team) advanceMoves(now clock.Time) {
	m := &t.moving
	if m.due > now {
		return
	}
	for b, to := range m.to {
		if to >= 0 && m.until <= now {
			t.spread.to[b], m.to[b] = to, -1
		}
	}
	t.mark(now)
}

// marked moves the flows of a member that were silent since the marker that its partner has answered, if it has.
func (t *Team) marked(now clock.Time, i int) {
	m := &t.moving
	k := &m.marks[i]
	if !k.waits || t.lacp.Answered(i) != k.number {
		return
	}
	k.waits = false
	for b, to := range m.to {
		if to >= 0 && int(t.spread.to[b]) == i && t.spread.last[b] < k.at {
			t.spread.to[b], m.to[b] = to, -1
		}
	}
	t.mark(now)
}
