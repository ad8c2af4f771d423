package team

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
)

// tellAll tells everybody, and the switches, that the stations are at the active member.
func (t *Team) tellAll(now clock.Time) {
	by := t.active
	if by < 0 { // all alike
		by = slices.IndexFunc(t.members, func(m member) bool { return m.sends })
	}
	if by < 0 {
		t.announce.Told(now)
		return
	}
	for i := range t.stations {
		s := &t.stations[i]
		for _, a := range s.Addrs {
			t.put(by, everybody(a, s.MAC, s.VLAN))
			t.heardAll(now, s.VLAN, a)
		}
		if len(s.Addrs) == 0 {
			t.put(by, switchesOnly(s.MAC, s.VLAN))
		}
	}
	t.counters.Announced++
	t.announce.Told(now)
}
