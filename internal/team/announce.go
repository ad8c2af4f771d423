package team

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// announcements is how often everybody is told that another member is active, each announceInterval after the one before
	// (ANNOUNCE_NUM and ANNOUNCE_INTERVAL of RFC 5227 1.1).
	announcements    = 2
	announceInterval = 2 * time.Second
)

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
	if t.announced++; t.announced < announcements {
		t.announce = now.Add(announceInterval)
	}
}
