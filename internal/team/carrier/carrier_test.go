package carrier

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
)

// step is something that happens to a member, and what becomes of the active one.
type step struct {
	at       clock.Time
	member   int
	up       bool
	disable  bool
	want     int
	wantMove Move
}

// TestChooser: the first member that is up is active until it fails or is disabled; the primary one takes over once its link is proven,
// unless the team does not fail back, and at once if nobody else can.
func TestChooser(t *testing.T) {
	const second = clock.Time(Proves)
	for _, c := range []struct {
		name    string
		primary int
		stays   bool
		steps   []step
	}{
		{"no primary", -1, false, []step{
			{0, 1, true, false, 1, Begins},
			{0, 0, true, false, 1, Stays},
			{1, 1, false, false, 0, FailsOver},
			{2, 1, true, false, 0, Stays},
			{second + 2, 1, true, false, 0, Stays},
			{second + 3, 0, false, true, 1, FailsOver},
			{second + 4, 1, false, false, -1, NoneIsLeft},
			{second + 5, 1, true, false, 1, Begins},
		}},
		{"fails back", 0, false, []step{
			{0, 0, true, false, 0, Begins},
			{0, 1, true, false, 0, Stays},
			{1, 0, false, false, 1, FailsOver},
			{2, 0, true, false, 1, Stays},
			{second + 2, 0, true, false, 0, FailsBack},
		}},
		{"does not", 0, true, []step{
			{0, 1, true, false, 1, Begins},
			{0, 0, true, false, 1, Stays},
			{1, 1, false, false, 0, FailsOver},
			{2, 1, true, false, 0, Stays},
			{3, 0, false, false, 1, FailsOver},
			{4, 0, true, false, 1, Stays},
			{second + 4, 0, true, false, 1, Stays},
		}},
		{"the primary one is heard of last", 1, false, []step{{0, 0, true, false, 0, Begins}, {0, 1, true, false, 1, Begins}}},
	} {
		h := New(2, c.primary, c.stays)
		for n, s := range c.steps {
			if s.disable {
				h.SetDisabled(s.member, true)
			} else if !h.Knows(s.member, s.up) {
				h.SetLink(s.at, s.member, s.up)
			}
			before, move := h.Choose(s.at)
			if h.Active() != s.want || move != s.wantMove {
				t.Errorf("%s, step %d: member %d is active (%d), want %d (%d)", c.name, n, h.Active(), move, s.want, s.wantMove)
			}
			if lingers := before >= 0 && h.Until(before) > s.at; lingers != (move == FailsBack || move == Begins && before >= 0) {
				t.Errorf("%s, step %d: the member before takes frames: %v", c.name, n, lingers)
			}
		}
	}
}
