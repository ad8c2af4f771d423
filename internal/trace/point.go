package trace

// Point is what an engine records: a row of the table of points.
type Point uint32

// The points of the engines.
const (
	QPState         Point = iota // of a queue pair
	AckTimeout                   // no acknowledgement in time (IBA 9.7.6.1.3)
	Retry                        // a requester goes back to the oldest packet that is not acknowledged
	Probe                        // it sends that one again, long before the time-out
	ImpliedNAK                   // a lost response was noticed (IBA 9.7.5.1.1)
	NAKReceived                  // RNR NAKs included
	NAKSent                      // RNR NAKs included
	RequestFailed                // a requester's
	PacketSent                   // of a queue pair
	PacketArrived                // for a queue pair
	ConnectionState              // of the connection manager
	LinkUp                       // of a port
	LinkDown                     //
	AddressesChange              // of a port
	PauseAsked                   // priorities for which a pause or PFC frame that leaves asks for silence
	PauseObeyed                  // priorities that are silent, as the peer has asked
	Points
)

// maxArguments is how many arguments of 32 bits a record has room for.
const maxArguments = 4

// Kind is what an argument is.
type Kind uint8

// The kinds of arguments.
const (
	Number     Kind = iota
	State           // of a queue pair
	Syndrome        // of an AETH
	Opcode          // of a BTH
	Status          // of a completion
	Verdict         // what the engine made of a packet that arrived
	Reason          // why a packet was sent
	ConnState       // of a connection
	Priorities      // bit p for priority p
)

// Argument is a named argument of a point.
type Argument struct {
	Name string
	Kind Kind
}

type point struct {
	name      string
	component Component
	level     Level
	args      []Argument
}

var qpn, psn = Argument{"qp", Number}, Argument{"psn", Number}

var points = [Points]point{
	QPState:         {"state", Transport, Information, []Argument{qpn, {"from", State}, {"to", State}}},
	AckTimeout:      {"time-out", Transport, Warning, []Argument{qpn, psn, {"timeouts", Number}, {"retries left", Number}}},
	Retry:           {"retry", Transport, Information, []Argument{qpn, psn, {"in flight", Number}, {"retries left", Number}}},
	Probe:           {"probe", Transport, Information, []Argument{qpn, psn, {"probes", Number}}},
	ImpliedNAK:      {"implied NAK", Transport, Information, []Argument{qpn, psn}},
	NAKReceived:     {"NAK received", Transport, Information, []Argument{qpn, psn, {"syndrome", Syndrome}}},
	NAKSent:         {"NAK sent", Transport, Information, []Argument{qpn, psn, {"syndrome", Syndrome}}},
	RequestFailed:   {"request failed", Transport, Warning, []Argument{qpn, psn, {"status", Status}}},
	PacketSent:      {"packet sent", Transport, Verbose, []Argument{qpn, psn, {"opcode", Opcode}, {"reason", Reason}}},
	PacketArrived:   {"packet arrived", Transport, Verbose, []Argument{qpn, psn, {"opcode", Opcode}, {"verdict", Verdict}}},
	ConnectionState: {"connection", CM, Information, []Argument{{"id", Number}, {"from", ConnState}, {"to", ConnState}}},
	LinkUp:          {"link up", Link, Information, []Argument{{"Mb/s", Number}}},
	LinkDown:        {"link down", Link, Warning, nil},
	AddressesChange: {"addresses", Link, Information, []Argument{{"served", Number}}},
	PauseAsked:      {"pause asked for", Link, Verbose, []Argument{{"priorities", Priorities}}},
	PauseObeyed:     {"pause obeyed", Link, Verbose, []Argument{{"from", Priorities}, {"to", Priorities}}},
}

// Describe returns the name of an engine's point and its arguments, each with its value; nothing if the record has none.
func Describe(r Record) (name string, args []Argument, values []uint32) {
	if r.Code >= uint32(Points) {
		return "", nil, nil
	}
	row := &points[r.Code]
	all := [maxArguments]uint32{uint32(r.A >> 32), uint32(r.A), uint32(r.B >> 32), uint32(r.B)}
	return row.name, row.args, all[:len(row.args)]
}
