package team

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// announcements are when everybody is told that another member is active, each after the one before: soon again, since the first one may
// be lost at a port that begins to forward, and then after ANNOUNCE_INTERVAL (RFC 5227 1.1).
var announcements = [...]time.Duration{0, 100 * time.Millisecond, 2 * time.Second}

// tellAll tells everybody, and the switches, that the stations are at the active member.
func (t *Team) tellAll(now clock.Time) {
	for i := range t.stations {
		s := &t.stations[i]
		for _, a := range s.Addrs {
			t.put(t.active, everybody(a, s.MAC, s.VLAN))
			t.heardAll(now, s.VLAN, a)
		}
		if len(s.Addrs) == 0 {
			t.put(t.active, switchesOnly(s.MAC, s.VLAN))
		}
	}
	t.counters.Announced++
	t.announce = clock.Never
	if t.announced++; t.announced < len(announcements) {
		t.announce = now.Add(announcements[t.announced])
	}
}
