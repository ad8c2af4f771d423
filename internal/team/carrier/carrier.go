// Package carrier chooses the member that carries what a team has, one at a time (WinOF 5.50, 4.2.8.3), whatever its members are: links of
// Ethernet frames (internal/team) or IPoIB interfaces (internal/ipoib). It says when others are to be told of another one, and how long
// the one before still takes what is sent to it. It is pure: it is told the time and whether the members' links are up.
//
// Files: carrier is the choice, change members that come and go, comeback what a link that comes back has to prove, announce when others
// are told, status the words, news what has changed.
package carrier

import "github.com/softvpi/softvpi/internal/clock"

// Chooser chooses among members, which it knows by their places.
type Chooser struct {
	primary    int // -1: none
	noFailBack bool
	members    []member
	active     int        // -1: none
	proving    clock.Time // when the next link that has come back is proven
	anyProven  bool       // a member that can be used is
	beginning  bool       // a member's link is heard of for the first time
}

// member is what is known of a member.
type member struct {
	up, disabled bool
	known        bool // whether its link is up has been said
	proves       bool // its link came back a moment ago, and is proven at:
	proven       clock.Time
	until        clock.Time // it takes what is sent to it so long though another is active
}

// usable says that a member's link is up and nobody has disabled it.
func (m *member) usable() bool { return m.up && !m.disabled }

// New returns a chooser for members whose links are all down. primary is active whenever it can be, -1: the first that is up; with
// noFailBack another one stays active when it comes back.
func New(members, primary int, noFailBack bool) *Chooser {
	return &Chooser{primary: primary, noFailBack: noFailBack, members: make([]member, members), active: -1, proving: clock.Never}
}

// Active returns the member that is active; -1: none can be.
func (c *Chooser) Active() int { return c.active }

// Knows reports whether it has been said that a member's link is up, or down.
func (c *Chooser) Knows(i int, up bool) bool { return c.members[i].known && c.members[i].up == up }

// Up reports whether the link of a member is up.
func (c *Chooser) Up(i int) bool { return c.members[i].up }

// SetLink says whether the link of a member is up. Choose or Prove follows.
func (c *Chooser) SetLink(now clock.Time, i int, up bool) {
	m := &c.members[i]
	c.beginning = !m.known
	m.came(now, up)
}

// SetDisabled takes a member out of use, or puts it back, and reports whether that is new. Choose or Prove follows if it is.
func (c *Chooser) SetDisabled(i int, disabled bool) (changed bool) {
	m := &c.members[i]
	changed = m.disabled != disabled
	m.disabled = disabled
	return changed
}

// Move is what has become of the active member.
type Move uint8

// The moves.
const (
	Stays      Move = iota
	Begins          // nobody was active before, or only for want of news of the others
	FailsOver       // the one before has failed
	FailsBack       // the primary one is active again
	NoneIsLeft      // nobody can be active
)

// Choose chooses the active member, after something has changed or at the Deadline, and returns which was before.
func (c *Chooser) Choose(now clock.Time) (before int, move Move) {
	before = c.active
	beginning := c.beginning
	c.beginning = false
	c.Prove(now)
	if c.active = c.choose(); c.active == before {
		return before, Stays
	}
	switch {
	case c.active < 0:
		return before, NoneIsLeft
	case beginning || before < 0:
		move = Begins
	case c.members[before].usable():
		move = FailsBack
	default:
		move = FailsOver
	}
	c.linger(now, before)
	return before, move
}

// choose returns which member is active: the primary one if it can be and the team fails back, once its link is proven, or nobody else
// is; otherwise that which is, as long as it can be, and then the first that can.
func (c *Chooser) choose() int {
	current := c.active >= 0 && c.members[c.active].usable()
	switch {
	case c.primary >= 0 && c.members[c.primary].usable() && (!current || !c.noFailBack && !c.members[c.primary].proves):
		return c.primary
	case current:
		return c.active
	}
	for i := range c.members {
		if c.Ready(i) {
			return i
		}
	}
	return -1
}

// Usable says that a member's link is up and nobody has disabled it.
func (c *Chooser) Usable(i int) bool { return c.members[i].usable() }

// Ready says that a member may send: it is proven, or nobody else is.
func (c *Chooser) Ready(i int) bool {
	m := &c.members[i]
	return m.usable() && (!m.proves || !c.anyProven)
}
