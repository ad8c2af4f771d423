package ipoib

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Path is how packets travel to a port or to a multicast group.
type Path struct {
	LID          ib.LID
	SL           uint8
	Rate         uint8 // static rate, a code of PathRecord.Rate; 0: as fast as the link
	GRH          bool  // there is a global route header; always for groups
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

// Action is something that the interface wants done: one of the types below. Take returns them in order.
type Action interface{ action() }

// Datagram is to be sent from the interface's queue pair, including its header.
type Datagram struct {
	To   Destination
	Data []byte
}

// Request is a MAD for the subnet administration: to queue pair 1 of a LID. Its answer must be passed to
// Response. The interface itself handles retransmissions.
type Request struct {
	LID         ib.LID
	SL          uint8
	Transaction uint64 // of the MAD
	MAD         [mad.Len]byte
}

// Attach makes the queue pair receive what is sent to a multicast group; Detach ends that.
type Attach struct {
	MGID ib.GID
	MLID ib.LID
}

// Detach ends an Attach with the same fields.
type Detach struct {
	MGID ib.GID
	MLID ib.LID
}

// Deliver passes to the system an IP packet that the interface itself created: a query of the multicast
// monitor.
type Deliver struct{ Packet []byte }

// Event is something that the interface's owner may want to log or act on.
type Event struct {
	Kind EventKind
	// MTU is that of the interface in Connected. In MTUAboveSubnet it is the configured one, and SubnetMTU
	// what the subnet allows.
	MTU, SubnetMTU int
	// Protocol is that of the packet in UnknownProtocol.
	Protocol eth.EtherType
	Text     string
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	Connected       EventKind = iota // the broadcast group is joined, or its MTU has changed: IP packets flow
	Disconnected                     // they do not flow; Text says why
	MTUAboveSubnet                   // the configured MTU is larger than that of the broadcast group
	JoinFailed                       // joining the broadcast group failed; it will be retried
	UnknownProtocol                  // a packet of a protocol other than IP and ARP was dropped; at most one event a minute
	Failed                           // the interface's carrier failed; the engine itself never reports this
)

// Resolved is the result of Resolve.
type Resolved struct {
	Addr     netip.Addr
	Neighbor Neighbor
	Err      error // nil, ErrUnreachable or ErrDown
}

func (Datagram) action() {}
func (Request) action()  {}
func (Attach) action()   {}
func (Detach) action()   {}
func (Deliver) action()  {}
func (Event) action()    {}
func (Resolved) action() {}

func (i *Interface) do(a Action) { i.actions = append(i.actions, a) }

// Take returns the next action, or false if there is none.
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
