package team

import (
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/internal/team/carrier"
)

// Counters count since the team was made.
type Counters struct {
	FailOvers uint64 // another member became active because one failed
	FailBacks uint64 // the primary one became active again
	Announced uint64 // rounds in which everybody was told of the active member
	Told      uint64 // peers that were told another member
	Lost      uint64 // frames that no member could send
	Unsent    uint64 // frames of the team's own that were not sent, because too many waited
	StoodBy   uint64 // frames that arrived at a member that does not take them
	Returned  uint64 // frames of the team itself that a switch has brought back
	Strange   uint64 // frames to a member's address that are for no station
	Malformed uint64 // frames shorter than an Ethernet header
}

// Status and Role are how a member is, and what it does; News is that one of them has changed.
type (
	Status = carrier.Status
	Role   = carrier.Role
	News   = carrier.News
)

// The statuses and the roles.
const (
	Disconnected = carrier.Disconnected
	Connected    = carrier.Connected
	Disabled     = carrier.Disabled
	Backup       = carrier.Backup
	Active       = carrier.Active
)

// MemberStatus is how a member is, and what it does.
type MemberStatus struct {
	Status Status
	Role   Role
	Speed  uint64 // in bits per second; 0: nobody knows
	// LACP is how its port is with type 3AD; nil with others.
	LACP *lacp.Status
}

// Status returns how a member is.
func (t *Team) Status(i int) MemberStatus {
	m := &t.members[i]
	s := MemberStatus{Status: t.choice.Status(i), Role: m.role(), Speed: m.speed}
	if t.lacp != nil {
		l := t.lacp.Status(i)
		s.LACP = &l
	}
	return s
}

func (m *member) role() Role {
	if m.sends {
		return Active
	}
	return Backup
}

// Up reports whether the team carries anything, and at which speed: what its members that send have together, in bits per second; 0:
// nobody knows.
func (t *Team) Up() (up bool, speed uint64) {
	for i := range t.members {
		if m := &t.members[i]; m.sends {
			up = true
			speed += m.speed
		}
	}
	return up, speed
}

// Counters returns a copy of the counters.
func (t *Team) Counters() Counters { return t.counters }

// note keeps what has changed of members, until somebody asks.
func (t *Team) note() {
	for i := range t.members {
		if m := &t.members[i]; !m.gone {
			t.notes.Note(i, t.choice.Status(i), m.role())
		}
	}
}

// News returns what has changed since the last call, in order.
func (t *Team) News() []News { return t.notes.Take() }
