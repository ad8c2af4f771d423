package carrier

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// Proves is how long a link that comes back must be up before anything that another member carries moves to it: until then the port at
	// its other end may not forward yet, and whatever is sent there, announcements too, would be lost. Linux, for one, activates a link and
	// the port of its bridge up to a second after the carrier is there.
	Proves = time.Second
	// Lingers is how long the member that was active takes what is still sent to it while its link is up: until peers and switches
	// have heard the last announcement of where the stations are now, and the frames on the way have come.
	Lingers = 3 * time.Second
)

// came notes that a link is up or down. The first that is heard of a link is how it was before the team was made.
func (m *member) came(now clock.Time, up bool) {
	if m.known && up && !m.up {
		m.proven = now.Add(Proves)
	}
	m.up, m.known = up, true
}

// Prove decides which members have been up for long enough.
func (c *Chooser) Prove(now clock.Time) {
	c.proving = clock.Never
	c.anyProven = false
	for i := range c.members {
		m := &c.members[i]
		if m.proves = m.up && now < m.proven; m.proves {
			c.proving = clock.Min(c.proving, m.proven)
		}
		c.anyProven = c.anyProven || m.usable() && !m.proves
	}
}

// Deadline returns when Choose or Prove is wanted next.
func (c *Chooser) Deadline() clock.Time { return c.proving }

// linger lets the member that was active take for a while what is sent to it.
func (c *Chooser) linger(now clock.Time, before int) {
	for i := range c.members {
		c.members[i].until = 0
	}
	if before >= 0 && c.members[before].usable() {
		c.members[before].until = now.Add(Lingers)
	}
}

// Linger lets all members take for a while what is sent to them: others send to any of them until they have heard where the stations are.
func (c *Chooser) Linger(now clock.Time) {
	for i := range c.members {
		c.members[i].until = now.Add(Lingers)
	}
}

// Until returns until when a member that is not active any more takes what is sent to it alone, since its sender would send it elsewhere by
// now; what is for groups arrives at all members. It is past if it takes nothing.
func (c *Chooser) Until(i int) clock.Time {
	if m := &c.members[i]; m.usable() {
		return m.until
	}
	return 0
}
