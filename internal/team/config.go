package team

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// MostMembers is how many members a team has at most.
	MostMembers = 8
	// switches is how many members a team of type SFT has at most: one at each of two switches.
	switches = 2
	// key is that of a team's ports in LACP: a team is a system of its own, so that any number does.
	key = 1
)

// Config describes a team.
type Config struct {
	Type Type
	Hash Hash
	// NoFailBack leaves another member active when the primary one comes back (NoFailBackToPrimary; WinOF 5.50, 4.2.8.3).
	NoFailBack bool
	// Address is the team's, unless a member gives its own; zero: it is made from that of a member.
	Address eth.MAC
	// Members may be none: such a team is always down.
	Members []Member
	// Passive, Fast and Choice are as of lacp.Group, and for type 3AD alone.
	Passive, Fast bool
	Choice        lacp.Choice
}

// Member is a link of a team.
type Member struct {
	// MAC is the link's own address, which no other member has.
	MAC eth.MAC
	// Primary is active whenever it can be, if the team fails back; one at most. Without one the first that is up is active.
	Primary bool
	// GivesMAC makes the team's address that of this member (SetTeamMacAddress; WinOF 5.50, 4.1.6.1); one at most.
	GivesMAC bool
}

// Station is an end that a team serves: a function's MAC in a VLAN, and the IP addresses that it has there.
type Station struct {
	MAC   eth.MAC
	VLAN  uint16
	Addrs []netip.Addr
}

// Error says which field of a configuration is invalid, and what it may be.
type Error struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("team: %s is %v, want %s", e.Field, e.Value, e.Want)
}

func bad(field string, value any, want string) error { return &Error{field, value, want} }

// Check reports what is wrong with a configuration: an *Error.
func (c *Config) Check() error {
	switch {
	case c.Type < AFT || c.Type > SLA:
		return bad("Type", c.Type, "one of "+Types)
	case int(c.Hash) >= len(hashNames):
		return bad("Hash", c.Hash, "L2, L3 or L4")
	case c.Type != LACP && (c.Passive || c.Fast || c.Choice != lacp.Stable):
		return bad("Type", c.Type, "3AD, which alone has LACP's Passive, Fast and Choice")
	case c.Address[0]&1 != 0:
		return bad("Address", c.Address, "the address of a station")
	case c.Choice > lacp.Count:
		return bad("Choice", c.Choice, "stable, bandwidth or count")
	case len(c.Members) > MostMembers:
		return bad("Members", len(c.Members), fmt.Sprintf("%d at most", MostMembers))
	case c.Type == SFT && len(c.Members) > switches:
		return bad("Members", len(c.Members), "2 at most with type SFT, one at each switch")
	}
	return c.checkMembers()
}

func (c *Config) checkMembers() error {
	taken, primary, gives := map[eth.MAC]bool{}, false, false
	for i, m := range c.Members {
		field := fmt.Sprintf("Members[%d]", i)
		switch {
		case m.MAC == (eth.MAC{}) || m.MAC[0]&1 != 0:
			return bad(field+".MAC", m.MAC, "the address of a station")
		case taken[m.MAC]:
			return bad(field+".MAC", m.MAC, "one that no other member has")
		case m.Primary && primary:
			return bad(field+".Primary", true, "false: another member is it")
		case m.GivesMAC && gives:
			return bad(field+".GivesMAC", true, "false: another member does")
		}
		taken[m.MAC], primary, gives = true, primary || m.Primary, gives || m.GivesMAC
	}
	return nil
}

// MAC is the team's address: that of the member that gives it, as it is ("without manipulation"; WinOF 5.50, change log, 4.95), or the
// one that it is to have, or one of its own made from that of the primary member, or of the first. It is zero without members.
func (c *Config) MAC() eth.MAC {
	if len(c.Members) == 0 {
		return eth.MAC{}
	}
	from := c.Members[0].MAC
	for _, m := range c.Members {
		if m.GivesMAC {
			return m.MAC
		}
		if m.Primary {
			from = m.MAC
		}
	}
	if c.Address != (eth.MAC{}) {
		return c.Address
	}
	return other(from, func(a eth.MAC) bool {
		for _, m := range c.Members {
			if m.MAC == a {
				return true
			}
		}
		return false
	})
}

// other makes a locally administered address from another, that is not taken.
func other(from eth.MAC, taken func(eth.MAC) bool) eth.MAC {
	const local, step, steps = 2, 4, 64
	a := from
	a[0] = a[0]&^1 | local
	for n := 1; a == from || taken(a); n++ {
		if a[0] += step; n%steps == 0 {
			a[1]++
		}
	}
	return a
}
