package lacp

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// Times of the protocol (6.4.4).
const (
	// FastPeriod and SlowPeriod are between data units, by what the partner wants.
	FastPeriod = time.Second
	SlowPeriod = 30 * time.Second
	// ShortTimeout and LongTimeout are for how long a partner may be silent.
	ShortTimeout = 3 * FastPeriod
	LongTimeout  = 3 * SlowPeriod
	// AggregateWait is for how long a port waits for others before it is attached, so that they are attached together.
	AggregateWait = 2 * time.Second
)

// DefaultPriority is that of a system, and of a port, that is given none; lower ones go first.
const DefaultPriority = 0x8000

// Choice is by what a group chooses its partner, if its ports have several.
type Choice uint8

// The choices. In all of them a partner that speaks goes before one that is silent.
const (
	// Stable keeps the partner as long as one link to it is left, and then takes that with the most links.
	Stable Choice = iota
	// Bandwidth always has the partner to which the links carry most.
	Bandwidth
	// Count always has that to which the most links lead.
	Count
)

var choiceNames = [...]string{"stable", "bandwidth", "count"}

// String returns the name of a choice.
func (c Choice) String() string {
	if int(c) < len(choiceNames) {
		return choiceNames[c]
	}
	return fmt.Sprintf("choice %d", uint8(c))
}

// ParseChoice reads the name of a choice.
func ParseChoice(name string) (Choice, bool) {
	for i, n := range choiceNames {
		if n == name {
			return Choice(i), true
		}
	}
	return 0, false
}

// Config describes a system.
type Config struct {
	// System is its MAC, and Priority goes before that where systems are compared.
	System   eth.MAC
	Priority uint16
	// Groups are the sets of its ports that may be aggregated.
	Groups []Group
}

// Group is ports with one aggregator.
type Group struct {
	// Key is the operational key, another one for each group; 1 or more.
	Key uint16
	// Passive ports speak to a partner that does; others without being asked (6.4.1, d).
	Passive bool
	// Fast wants the partner to speak every second, and finds it silent after three; otherwise it is every 30 s, and 90.
	Fast   bool
	Choice Choice
	Ports  []Port
}

// Port is one of a system.
type Port struct {
	// Number names the port in data units; 1 or more, and no other port's.
	Number   uint16
	Priority uint16
	MAC      eth.MAC // that its data units come from
}

// Error says which field of a configuration is invalid, and what it may be.
type Error struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s is %v, want %s", e.Field, e.Value, e.Want) }

func bad(field string, value any, want string) error { return &Error{field, value, want} }

func (c *Config) check() error {
	if c.System[0]&1 != 0 || c.System == (eth.MAC{}) {
		return bad("System", c.System, "the address of a station")
	}
	keys, numbers := map[uint16]bool{}, map[uint16]bool{}
	for i := range c.Groups {
		g := &c.Groups[i]
		switch {
		case g.Key == 0 || keys[g.Key]:
			return bad(fmt.Sprintf("Groups[%d].Key", i), g.Key, "1 or more, and another one for each group")
		case int(g.Choice) >= len(choiceNames):
			return bad(fmt.Sprintf("Groups[%d].Choice", i), g.Choice, "stable, bandwidth or count")
		case len(g.Ports) == 0:
			return bad(fmt.Sprintf("Groups[%d].Ports", i), 0, "one at least")
		}
		keys[g.Key] = true
		for k, p := range g.Ports {
			if p.Number == 0 || numbers[p.Number] {
				return bad(fmt.Sprintf("Groups[%d].Ports[%d].Number", i, k), p.Number, "1 or more, and no other port's")
			}
			numbers[p.Number] = true
		}
	}
	return nil
}

// silent is what is taken for a partner that says nothing (the Partner_Admin parameters of 6.4.7): a system that knows no aggregation, and
// takes and sends frames on a link by itself. That it wants data units every second lets it be found soon when it begins to speak.
var silent = lacp.Participant{State: lacp.Timeout | lacp.Synchronization | lacp.Collecting | lacp.Distributing}
