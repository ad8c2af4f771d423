package cm

// state is the state of an id (IBA 12.9).
type state uint8

const (
	stateIdle         state = iota
	stateListen             // accepts requests
	stateReqSent            // active: waits for REP
	stateRepReceived        // active: waits for Establish
	stateReqReceived        // passive: waits for Accept or Reject
	stateRepSent            // passive: waits for RTU or the first packet
	stateEstablished        // both sides
	stateDreqSent           // waits for DREP
	stateTimewait           // packets of the connection may still be in flight
	stateSidrSent           // active: waits for SIDR_REP
	stateSidrReceived       // passive: waits for Accept or Reject
	stateSidrReplied        // passive: keeps the answer for duplicates of the request
	stateLinger             // final answer sent: keeps it for duplicates, for a while
	stateDone               // over; waits for Destroy
)

var stateNames = [...]string{
	stateIdle: "idle", stateListen: "listening", stateReqSent: "waiting for REP", stateRepReceived: "REP received",
	stateReqReceived: "request received", stateRepSent: "waiting for RTU", stateEstablished: "established",
	stateDreqSent: "waiting for DREP", stateTimewait: "in time-wait", stateSidrSent: "waiting for SIDR_REP",
	stateSidrReceived: "SIDR request received", stateSidrReplied: "SIDR request answered",
	stateLinger: "answered", stateDone: "over",
}

func (s state) String() string { return stateNames[s] }

// StateName returns the name of a state in a trace; "" if there is none with that number.
func StateName(n uint32) string {
	if n >= uint32(len(stateNames)) {
		return ""
	}
	return stateNames[n]
}

// halfOpen reports whether a peer's request alone can bring about the state.
func (s state) halfOpen() bool {
	return s == stateReqReceived || s == stateRepSent || s == stateSidrReceived
}
