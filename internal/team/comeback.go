package team

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// proves is how long a link that comes back must be up before anything that another member carries moves to it: until then the port at
	// its other end may not forward yet, and whatever is sent there, announcements too, would be lost. Linux, for one, activates a link and
	// the port of its bridge up to a second after the carrier is there.
	proves = time.Second
	// lingers is how long the member that was active takes what is still sent to it while its link is up: until peers and switches
	// have heard the last announcement of where the stations are now, and the frames on the way have come.
	lingers = 3 * time.Second
)

// came notes that a link is up or down. The first that is heard of a link is how it was before the team was made.
func (m *member) came(now clock.Time, up bool) {
	if m.known && up && !m.up {
		m.proven = now.Add(proves)
	}
	m.up, m.known = up, true
}

// prove decides which members have been up for long enough.
func (t *Team) prove(now clock.Time) {
	t.proving = clock.Never
	t.anyProven = false
	for i := range t.members {
		m := &t.members[i]
		if m.proves = m.up && now < m.proven; m.proves {
			t.proving = clock.Min(t.proving, m.proven)
		}
		t.anyProven = t.anyProven || m.usable() && !m.proves
	}
}

// ready says that a member may send: it is proven, or nobody else is.
func (t *Team) ready(i int) bool {
	m := &t.members[i]
	return m.usable() && (!m.proves || !t.anyProven)
}

// linger lets the member that was active take frames for a while. What is for groups it leaves alone: that arrives at all members.
func (t *Team) linger(now clock.Time, before int) {
	for i := range t.members {
		t.members[i].until = 0
	}
	if before >= 0 && t.members[before].usable() {
		t.members[before].until = now.Add(lingers)
	}
}

// late says that a frame to a member that is not active any more is one that its sender would send elsewhere by now.
func (m *member) late(now clock.Time, b []byte) bool {
	return now < m.until && m.usable() && b[0]&1 == 0
}
