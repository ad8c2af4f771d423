// Package qos says how a port treats the eight priorities of its frames (IEEE 802.1Q, 6.9.3): to which traffic classes they belong
// and how these share the wire (ETS), which are paused on their own (PFC), and which priority an application has. It is pure, and
// knows nothing of who decides that: package dcb agrees it with the peer.
package qos

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Priorities is how many there are, and Classes how many traffic classes a port has.
const (
	Priorities = 8
	Classes    = 8
)

// MostApplications is how many entries a table of applications has: as many as a TLV of DCBX can carry.
const MostApplications = 168

// Algorithm is how a traffic class gets its turn.
type Algorithm uint8

// Algorithms.
const (
	// Strict classes go first, the higher one before the lower.
	Strict Algorithm = iota
	// Enhanced classes share what is left by their bandwidths (ETS).
	Enhanced
)

// String returns an algorithm's name.
func (a Algorithm) String() string {
	if a == Enhanced {
		return "ets"
	}
	return "strict"
}

// ETS puts priorities into traffic classes.
type ETS struct {
	// Class is that of each priority.
	Class [Priorities]uint8
	// Algorithm and Bandwidth, in percent, are those of each class; the bandwidths of Enhanced classes add up to 100.
	Algorithm [Classes]Algorithm
	Bandwidth [Classes]uint8
}

// DefaultETS has all priorities in one class.
func DefaultETS() ETS {
	return ETS{Algorithm: [Classes]Algorithm{Enhanced}, Bandwidth: [Classes]uint8{100}}
}

// Check returns what is wrong with the classes, nil if nothing is. The error is a *FieldError.
func (e *ETS) Check() error {
	sum, enhanced := 0, false
	for c := range e.Bandwidth {
		switch {
		case e.Algorithm[c] > Enhanced:
			return bad("algorithm", uint8(e.Algorithm[c]), "strict or ets")
		case e.Algorithm[c] == Enhanced:
			enhanced = true
			sum += int(e.Bandwidth[c])
		case e.Bandwidth[c] != 0:
			return bad(fmt.Sprintf("bandwidth of class %d, which is strict,", c), e.Bandwidth[c], "0")
		}
	}
	if enhanced && sum != 100 {
		return bad("bandwidths of all classes", sum, "100 percent")
	}
	for p, c := range e.Class {
		if c >= Classes {
			return bad(fmt.Sprintf("class of priority %d", p), c, "0 to 7")
		}
	}
	return nil
}

// Used returns the classes that have priorities, bit c for class c.
func (e *ETS) Used() (classes uint8) {
	for _, c := range e.Class {
		classes |= 1 << c
	}
	return classes
}

// Selector is what the protocol of an application is (IEEE 802.1Q, table D-9).
type Selector uint8

// Selectors.
const (
	EtherType Selector = 1
	TCP       Selector = 2 // a port of TCP or SCTP
	UDP       Selector = 3 // a port of UDP or DCCP
	Port      Selector = 4 // of any of them
	DSCP      Selector = 5
)

var selectorNames = map[Selector]string{EtherType: "ethertype", TCP: "tcp", UDP: "udp", Port: "port", DSCP: "dscp"}

// String returns a selector's name.
func (s Selector) String() string {
	if n, ok := selectorNames[s]; ok {
		return n
	}
	return fmt.Sprintf("selector %d", uint8(s))
}

// ParseSelector returns the selector of a name.
func ParseSelector(name string) (Selector, error) {
	for s, n := range selectorNames {
		if n == name {
			return s, nil
		}
	}
	return 0, bad("selector", name, "ethertype, tcp, udp, port or dscp")
}

// Application gives a priority to an application. EtherType 0 means all that has no entry.
type Application struct {
	Selector Selector
	Protocol uint16
	Priority uint8
}

// String returns an application as it is configured: port:4791=3.
func (a Application) String() string {
	if a.Selector == EtherType {
		return fmt.Sprintf("%v:0x%04x=%d", a.Selector, a.Protocol, a.Priority)
	}
	return fmt.Sprintf("%v:%d=%d", a.Selector, a.Protocol, a.Priority)
}

// Settings are how a port treats priorities.
type Settings struct {
	ETS ETS
	// PFC are the priorities that are paused on their own, bit p for priority p.
	PFC uint8
	// Applications are in the order of selector, protocol and priority.
	Applications []Application
}

// Defaults returns those of a port for which nobody has chosen any: one class, no PFC, no applications.
func Defaults() Settings { return Settings{ETS: DefaultETS()} }

// CheckApplications returns what is wrong with a table, nil if nothing is. The error is a *FieldError.
func CheckApplications(table []Application) error {
	if len(table) > MostApplications {
		return bad("applications", len(table), fmt.Sprintf("at most %d", MostApplications))
	}
	for _, a := range table {
		switch {
		case selectorNames[a.Selector] == "":
			return bad("selector", uint8(a.Selector), "1 to 5")
		case a.Priority >= Priorities:
			return bad("priority of "+a.String(), a.Priority, "0 to 7")
		case a.Selector == DSCP && a.Protocol > 63:
			return bad("DSCP", a.Protocol, "0 to 63")
		}
	}
	return nil
}

// Sort puts a table into its order.
func Sort(table []Application) {
	slices.SortFunc(table, func(a, b Application) int {
		return (int(a.Selector)-int(b.Selector))<<24 + (int(a.Protocol)-int(b.Protocol))<<4 + int(a.Priority) - int(b.Priority)
	})
}

// Origin is who decided something.
type Origin uint8

// Origins.
const (
	FromDefault Origin = iota // nobody did
	FromLocal                 // the port's own configuration
	FromPeer                  // the peer, by DCBX
)

// String returns an origin's name.
func (o Origin) String() string { return [...]string{"default", "local", "peer"}[o] }

// Operative are the settings by which a port is to work, with the origin of each part.
type Operative struct {
	Settings
	ETSFrom, PFCFrom, ApplicationsFrom Origin
}

// Equal reports whether two are the same.
func (o *Operative) Equal(p *Operative) bool {
	return o.ETS == p.ETS && o.PFC == p.PFC && o.ETSFrom == p.ETSFrom && o.PFCFrom == p.PFCFrom &&
		o.ApplicationsFrom == p.ApplicationsFrom && slices.Equal(o.Applications, p.Applications)
}

// FieldError says which field of settings is wrong, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %v: want %s", e.Field, e.Value, e.Want) }

func bad(field string, value any, want string) error { return &FieldError{field, value, want} }

// FormatPriorities returns priorities as they are written, "3,5", or "none".
func FormatPriorities(set uint8) string {
	if set == 0 {
		return None
	}
	var b []string
	for ; set != 0; set &= set - 1 {
		b = append(b, fmt.Sprint(bits.TrailingZeros8(set)))
	}
	return strings.Join(b, ",")
}
