package team

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/lacp"
)

// A port of LACP whose partner is not known yet carries nothing until it has been silent for three periods, and waits for others before it
// is attached (IEEE 802.1AX-2014, 6.4.4 and 6.4.12). A team that has carried something without the agreement of a partner, since it was of
// another type or the partner is silent, would stand still for so long when it gets type 3AD, when the partner begins to speak, or when the
// only other member has come a moment ago. So members go on, as links by themselves, until LACP has one that carries.

// holds is for how long members carry without LACP at most: one that has no port by then has a partner that wants none.
const holds = lacp.ShortTimeout + lacp.AggregateWait + time.Second

// held are the members that carry by themselves.
type held struct {
	members [MostMembers]bool
	until   clock.Time // Never: none do
	may     bool       // what carries now does so without a partner's agreement
}

// alone reports whether members carry that are links by themselves.
func (h *held) alone() bool { return h.may || h.until != clock.Never }

// hold has members go on, if LACP has none that does, and lets go of them otherwise.
func (t *Team) hold(now clock.Time) {
	h := &t.held
	if t.lacp == nil {
		*h = held{until: clock.Never}
		return
	}
	carries, agreed := false, false
	for i := range t.members {
		if _, sends := t.lacp.Carries(i); sends && t.choice.Usable(i) {
			carries, agreed = true, agreed || t.lacp.Speaks(i)
		}
	}
	switch {
	case carries:
		*h = held{until: clock.Never, may: !agreed}
	case h.until == clock.Never && !h.may:
	case h.until == clock.Never:
		h.begin(now, t.members)
		t.holdAnother()
	case h.until <= now:
		*h = held{until: clock.Never}
	default:
		t.holdAnother()
	}
}

// begin holds the members that carry.
func (h *held) begin(now clock.Time, members []member) {
	*h = held{until: now.Add(holds)}
	for i := range members {
		h.members[i] = members[i].sends
	}
}

// holdAnother lets go of members that cannot be used any more, and holds the first that can if none is left: LACP takes that, too, if no
// partner speaks.
func (t *Team) holdAnother() {
	h := &t.held
	for i := range t.members {
		h.members[i] = h.members[i] && t.choice.Usable(i)
	}
	if slices.Contains(h.members[:], true) {
		return
	}
	for i := range t.members {
		if t.choice.Usable(i) {
			h.members[i] = true
			return
		}
	}
}
