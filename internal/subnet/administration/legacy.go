package administration

import (
	"maps"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// A manager that takes over finds ports that are served at the multicast LIDs of the one before it. They are served further, and a group that
// is made anew is given the multicast LID at which its member is served already.

// Served are the ports at a multicast LID of another manager, by GUID; false: a switch that its packets pass.
type Served map[uint64]bool

// legacyTime is how long the ports are served that have not joined again.
const legacyTime = 2 * time.Minute

// Inherit takes over the ports that are served already, by multicast LID.
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

// settled notes that a port is served, or not, as a member of a group: what it was before does not count any more.
func (a *SA) settled(mlid ib.LID, guid uint64) {
	l := a.legacies[mlid]
	if _, there := l[guid]; !there {
		return
	}
	if delete(l, guid); !slices.Contains(slices.Collect(maps.Values(l)), true) {
		delete(a.legacies, mlid)
	}
}

// mlidFor is the multicast LID of a new group: that which the port asks for, or one at which it is served already, or a free one; 0
// when the tables of the switches are full.
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
