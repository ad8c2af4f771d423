package administration

import (
	"maps"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// A manager that takes over finds ports that are served at its predecessor's multicast LIDs. They continue
// to be served, and a group that is created again gets the multicast LID at which its member is already
// served.

// Served are the ports at a multicast LID of another manager, by GUID; false: a switch that its packets
// pass.
type Served map[uint64]bool

// legacyTime is how long ports are served that have not joined again.
const legacyTime = 2 * time.Minute

// Inherit adopts the ports that are already served, by multicast LID.
func (a *SA) Inherit(now clock.Time, served map[ib.LID]Served) {
	a.legacies, a.legaciesEnd = served, clock.Never
	if len(served) > 0 {
		a.legaciesEnd = now.Add(legacyTime)
	}
}

// legaciesOver forgets the ports that have not joined again in time.
func (a *SA) legaciesOver() {
	if a.now.Before(a.legaciesEnd) {
		return
	}
	a.legacies, a.legaciesEnd = nil, clock.Never
	a.groupsDue = true
}

// settled notes that a port's membership in a group is now known, so that its inherited state no longer
// counts.
func (a *SA) settled(mlid ib.LID, guid uint64) {
	l := a.legacies[mlid]
	if _, there := l[guid]; !there {
		return
	}
	if delete(l, guid); !slices.Contains(slices.Collect(maps.Values(l)), true) {
		delete(a.legacies, mlid)
	}
}

// mlidFor returns the multicast LID for a new group: the one that the port asks for, or one at which it is
// already served, or a free one; 0 if the switches' tables are full.
func (a *SA) mlidFor(r *request, wanted ib.LID, guid uint64) ib.LID {
	taken := a.takenMLIDs()
	if r.has(mad.MemberMLID) && wanted >= firstMLID && int(wanted-firstMLID) < a.roomForMLIDs() && !taken[wanted] {
		return wanted
	}
	for _, mlid := range slices.Sorted(maps.Keys(a.legacies)) {
		if a.legacies[mlid][guid] && !taken[mlid] {
			return mlid
		}
	}
	return a.freeMLID()
}
