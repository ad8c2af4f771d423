package ipoib

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Path is how packets travel to a port or to a multicast group.
type Path struct {
	LID          ib.LID
	SL           uint8
	Rate         uint8 // static rate, as a code of PathRecord.Rate; 0: as fast as the link
	GRH          bool  // there is a global route header; always to groups
	GID          ib.GID
	FlowLabel    uint32
	HopLimit     uint8
	TrafficClass uint8
}

// Destination is where a datagram goes.
type Destination struct {
	Path
	QPN  ib.QPN
	QKey uint32
}

// Action is something that the interface wants done: one of the types below. Take hands them out in their order.
type Action interface{ action() }

// Datagram is to be sent from the interface's queue pair, header and all.
type Datagram struct {
	To   Destination
	Data []byte
}

// Request is a MAD for the subnet administration: to queue pair 1 of a LID. Its answer is to be given to Response. The interface itself
// repeats it.
type Request struct {
	LID         ib.LID
	SL          uint8
	Transaction uint64 // that of the MAD
	MAD         [mad.Len]byte
}

// Attach lets the queue pair receive what is sent to a multicast group; Detach ends it.
type Attach struct {
	MGID ib.GID
	MLID ib.LID
}

// Detach ends an Attach with the same fields.
type Detach struct {
	MGID ib.GID
	MLID ib.LID
}

// Deliver hands the system an IP packet that the interface made itself: the queries of the multicast monitor.
type Deliver struct{ Packet []byte }

// Event is what the interface's owner may want to write down, or act on.
type Event struct {
	Kind EventKind
	// MTU is that of the interface in Connected. In MTUAboveSubnet it is what was configured, and SubnetMTU what the subnet allows.
	MTU, SubnetMTU int
	Text           string
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	Connected      EventKind = iota // the broadcast group is joined, or its MTU has changed: IP packets flow
	Disconnected                    // they do not; Text says why
	MTUAboveSubnet                  // the configured MTU is larger than that of the broadcast group
	JoinFailed                      // the broadcast group could not be joined; it is tried again
	Failed                          // what carries the interface failed; never an engine's
)

// Resolved ends what Resolve began.
type Resolved struct {
	Addr     netip.Addr
	Neighbor Neighbor
	Err      error // nil; else ErrUnreachable or ErrDown
}

func (Datagram) action() {}
func (Request) action()  {}
func (Attach) action()   {}
func (Detach) action()   {}
func (Deliver) action()  {}
func (Event) action()    {}
func (Resolved) action() {}

func (i *Interface) do(a Action) { i.actions = append(i.actions, a) }

// Take hands out the next action, false where there is none.
func (i *Interface) Take() (Action, bool) {
	if i.taken == len(i.actions) {
		clear(i.actions)
		i.actions, i.taken = i.actions[:0], 0
		return nil, false
	}
	a := i.actions[i.taken]
	i.actions[i.taken] = nil
	i.taken++
	return a, true
}
