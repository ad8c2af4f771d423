package team

import "github.com/softvpi/softvpi/internal/clock"

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
	t.announce.Told(now)
}
