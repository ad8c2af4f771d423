// Package path is the choice of where the messages of a connection between two queue pairs of one host go: as packets
// (wire), through the loop from region to region (local), or by the programs at its ends themselves (direct). It is one
// state machine with one table of transitions (table.go). It decides; its owner looks, waits and carries out: the
// transport moves and holds back messages, the device knows policies and has the timers, and leases talk to the programs.
//
// The machine is pure, like every engine: it has no clock, waits for nothing and calls nobody. A connection with an end
// elsewhere has no machine: its messages are packets.
package path

// State is where the messages of a connection go, and what is to change about that.
type State uint8

const (
	Wire        State = iota // packets
	Waiting                  // packets; to become local when nothing is in progress, of which no part is forced
	Joining                  // packets, but no message begins: local as soon as nothing is in progress
	Local                    // through the loop
	Offered                  // local; to be delegated when nothing is in progress
	Delegating               // local, but no message begins: delegated as soon as nothing is in progress
	Leaving                  // local, but no message begins: wire as soon as none is half moved
	Delegated                // direct: the programs at the ends carry out their requests
	Recalling                // direct no more, but a program may be in the middle of an operation; then local
	Withdrawing              // the same, then wire
	Ending                   // the same of a connection whose end has ended; then wire
	states
)

// Event is something that concerns the path of a connection.
type Event uint8

const (
	Permit   Event = iota // nothing needs packets, and both ends accept messages
	Demand                // something needs packets: a policy, a capture, an impairment, a limit of the rate
	Quiet                 // a look found nothing in progress
	Busy                  // a look found something in progress that will end soon
	Long                  // a look found something in progress that may take long
	Expire                // no message has begun for as long as programs may be kept waiting
	Offer                 // the programs at the ends may be entrusted with the connection
	Refuse                // they may not, after all
	Recall                // the engine needs the connection
	Returned              // no program is in the middle of an operation any more
	Break                 // an end has ended, or its memory cannot be accessed within a call
	events
)

// Actions are what a transition asks the owner to do, at once.
type Actions uint8

const (
	Hold     Actions = 1 << iota // keep both ends from beginning messages
	Release                      // let them begin messages again
	Rest                         // look again only after a while, a longer one each time, and let messages begin meanwhile
	Join                         // both ends send through the loop
	Leave                        // both ends send packets; what was handed over and not finished starts over
	Delegate                     // hand the queues to the programs
	Withdraw                     // ask the programs to leave
	Reclaim                      // take the queues back
)

// Carrier is who carries messages. Its order is that of command.QPInfo.Path.
type Carrier uint8

const (
	ByPackets  Carrier = iota // the link
	ByLoop                    // the loop, between engines
	ByPrograms                // the programs at the ends
)

// Connection is the path of a connection. The zero value is on the wire.
type Connection struct{ state State }

// State returns the state.
func (c *Connection) State() State { return c.state }

// Carrier returns who carries the connection's messages.
func (c *Connection) Carrier() Carrier { return c.state.Carrier() }

// Begins reports whether an engine may begin messages.
func (c *Connection) Begins() bool { return c.state.Begins() }

// Step makes the transition for an event, and returns what it asks the owner to do. false: the event cannot happen in
// this state, and nothing has changed.
func (c *Connection) Step(e Event) (Actions, bool) {
	if e >= events {
		return 0, false
	}
	t := &table[c.state][e]
	if !t.legal {
		return 0, false
	}
	c.state = t.to
	return t.do, true
}

// Carrier returns who carries messages in the state.
func (s State) Carrier() Carrier { return properties[s].carrier }

// Begins reports whether an engine may begin messages in the state.
func (s State) Begins() bool { return properties[s].begins }

// String returns the name of the state.
func (s State) String() string {
	if s >= states {
		return "unknown"
	}
	return properties[s].name
}

// String returns the name of the event.
func (e Event) String() string {
	if e >= events {
		return "unknown"
	}
	return eventNames[e]
}

var properties = [states]struct {
	name    string
	carrier Carrier
	begins  bool
}{
	Wire:        {"wire", ByPackets, true},
	Waiting:     {"waiting", ByPackets, true},
	Joining:     {"joining", ByPackets, false},
	Local:       {"local", ByLoop, true},
	Offered:     {"offered", ByLoop, true},
	Delegating:  {"delegating", ByLoop, false},
	Leaving:     {"leaving", ByLoop, false},
	Delegated:   {"delegated", ByPrograms, false},
	Recalling:   {"recalling", ByPrograms, false},
	Withdrawing: {"withdrawing", ByPrograms, false},
	Ending:      {"ending", ByPrograms, false},
}

var eventNames = [events]string{"permit", "demand", "quiet", "busy", "long", "expire", "offer", "refuse", "recall", "returned", "break"}
