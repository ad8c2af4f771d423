package teams

import (
	"slices"

	"github.com/softvpi/softvpi/internal/api"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

// kind is what a team that was made by command has in the way of its kind: of wires, or of IPoIB interfaces.
type kind interface {
	// knows says whether the kind has a type, and parse reads one.
	knows(number uint32) bool
	parse(name string) (team.Type, error)
	// noMember says why an adapter can be in no team of the kind, whatever others are; empty: it can.
	noMember(i int) string
	// mayAttach returns why an adapter that can be a member of some team cannot be one of this.
	mayAttach(i int, q *api.TeamMemberRequest) error
	// complete fills in what follows from what the team is to be, and returns what is wrong with it.
	complete(next *registry.Team) error
	// become has members be what they are to be, and makes the team next. If it fails, back puts what was before in its place.
	become(next registry.Team) error
	back(before, next registry.Team) error
	// look returns who says how the members are; nil: nothing runs. Anybody may ask.
	look() func() state
}

// state is how a team is that runs.
type state struct {
	kind, hash, address string // hash is empty for IPoIB, and address while no member has one
	counters            team.Counters
	members             []linkteam.MemberStatus
}

// team returns a team as it is kept, of its kind.
func (r *Roster) team(kept registry.Team) *Team {
	t := &Team{Team: kept}
	if kept.IPoIB {
		t.kind = &interfaces{r: r, t: t}
	} else {
		t.kind = &wires{r: r, t: t}
	}
	return t
}

// only returns the member by which two lists of them differ, its place in the longer one, and whether it is last in the second; -1: they
// are alike. few is false if they differ by more.
func only(were, are []int) (i, place int, more, few bool) {
	if slices.Equal(were, are) {
		return -1, -1, false, true
	}
	if more = len(are) > len(were); more {
		were, are = are, were
	}
	for place < len(are) && were[place] == are[place] { // the first is the longer list
		place++
	}
	if len(were) != len(are)+1 || more && place < len(are) {
		return -1, -1, false, false
	}
	return were[place], place, more, slices.Equal(were[place+1:], are[place:])
}
