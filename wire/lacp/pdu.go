package lacp

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/wire/eth"
)

// EtherType is that of slow protocols (IEEE 802.3, table 57A-2).
const EtherType eth.EtherType = 0x8809

// SlowProtocols is where their frames go (IEEE 802.3, table 57A-1).
var SlowProtocols = eth.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x02}

// Subtype is the first byte of a slow protocol's data unit (IEEE 802.3, table 57A-3).
type Subtype uint8

// Subtypes of link aggregation.
const (
	SubtypeLACP   Subtype = 1
	SubtypeMarker Subtype = 2
)

// State is that of a port in a data unit (6.4.2.3, m).
type State uint8

// The bits of a state.
const (
	Activity        State = 1 << iota // it sends without being asked (active LACP)
	Timeout                           // it wants data units every second (short timeout)
	Aggregation                       // its link may be aggregated; otherwise it is individual
	Synchronization                   // it is attached to the right aggregator
	Collecting                        // it takes frames
	Distributing                      // it may send frames
	Defaulted                         // what it knows of its partner was configured, not heard
	Expired                           // it waits for its partner
)

var stateNames = [...]string{"active", "fast", "aggregation", "synchronized", "collecting", "distributing", "defaulted", "expired"}

// String names the bits that are set.
func (s State) String() string {
	var all []string
	for i, name := range stateNames {
		if s>>i&1 != 0 {
			all = append(all, name)
		}
	}
	if all == nil {
		return "none"
	}
	return strings.Join(all, ",")
}

// Participant is one end of a link: the port, and the system and key by which those that may be aggregated are alike (6.3).
type Participant struct {
	SystemPriority uint16
	System         eth.MAC
	Key            uint16
	PortPriority   uint16
	Port           uint16
	State          State
}

// PDU is a data unit of LACP.
type PDU struct {
	// Version is that of the protocol; 0 is written as 1.
	Version uint8
	// Actor is who sends it, and Partner what that knows of the other end.
	Actor, Partner Participant
	// MaxDelay is for how long the sender may keep a frame that it has collected, in units of 10 us.
	MaxDelay uint16
}

// Types and lengths of the TLVs of a data unit (6.4.2.3), and those of a marker (6.5.3.3).
const (
	tlvActor     = 1
	tlvPartner   = 2
	tlvCollector = 3
	lenInfo      = 20
	lenCollector = 16

	tlvMarker         = 1
	tlvMarkerResponse = 2
	lenMarker         = 16

	// bodyLen is what follows the Ethernet header: 124 bytes with it.
	bodyLen     = 110
	atActor     = 2
	atPartner   = atActor + lenInfo
	atCollector = atPartner + lenInfo
	// used is what is read of a data unit of LACP. What follows is reserved, or of a later version.
	used       = atCollector + 4
	markerUsed = atActor + lenMarker
)

// Error is why a data unit is invalid.
type Error struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("data unit of link aggregation: %s %v: want %s", e.Field, e.Value, e.Want)
}

func bad(field string, value any, want string) error { return &Error{field, value, want} }

// Parse reads a data unit of LACP: what follows the Ethernet header of a frame. Those of later versions than 1 begin alike and are
// read (6.4.2.3, c). The error is an *Error.
func Parse(b []byte) (p PDU, err error) {
	switch {
	case len(b) < used:
		return p, bad("length", len(b), fmt.Sprintf("%d or more", used))
	case Subtype(b[0]) != SubtypeLACP:
		return p, bad("subtype", b[0], "1")
	case b[1] == 0:
		return p, bad("version", b[1], "1 or more")
	}
	p.Version = b[1]
	for _, t := range []struct {
		name    string
		at      int
		tlv, of byte
	}{{"actor information", atActor, tlvActor, lenInfo}, {"partner information", atPartner, tlvPartner, lenInfo},
		{"collector information", atCollector, tlvCollector, lenCollector}} {
		if b[t.at] != t.tlv {
			return p, bad(t.name+" TLV type", b[t.at], fmt.Sprint(t.tlv))
		}
		if b[t.at+1] != t.of {
			return p, bad(t.name+" length", b[t.at+1], fmt.Sprint(t.of))
		}
	}
	p.Actor = parseParticipant(b[atActor+2:])
	p.Partner = parseParticipant(b[atPartner+2:])
	p.MaxDelay = binary.BigEndian.Uint16(b[atCollector+2:])
	return p, nil
}

func parseParticipant(b []byte) (p Participant) {
	p.SystemPriority = binary.BigEndian.Uint16(b)
	p.System = eth.MAC(b[2:])
	p.Key = binary.BigEndian.Uint16(b[8:])
	p.PortPriority = binary.BigEndian.Uint16(b[10:])
	p.Port = binary.BigEndian.Uint16(b[12:])
	p.State = State(b[14])
	return p
}

func (p *Participant) put(b []byte, tlv byte) {
	b[0], b[1] = tlv, lenInfo
	binary.BigEndian.PutUint16(b[2:], p.SystemPriority)
	copy(b[4:], p.System[:])
	binary.BigEndian.PutUint16(b[10:], p.Key)
	binary.BigEndian.PutUint16(b[12:], p.PortPriority)
	binary.BigEndian.PutUint16(b[14:], p.Port)
	b[16] = byte(p.State)
}

// Frame returns the Ethernet frame of a data unit from a port.
func (p *PDU) Frame(src eth.MAC) []byte {
	f, b := frame(src, SubtypeLACP, max(p.Version, 1))
	p.Actor.put(b[atActor:], tlvActor)
	p.Partner.put(b[atPartner:], tlvPartner)
	b[atCollector], b[atCollector+1] = tlvCollector, lenCollector
	binary.BigEndian.PutUint16(b[atCollector+2:], p.MaxDelay)
	return f // the terminator TLV, its length and what is reserved are zeros
}

// frame returns a frame of a slow protocol with nothing in it, and what follows its header.
func frame(src eth.MAC, s Subtype, version uint8) (f, body []byte) {
	f = make([]byte, eth.EthernetLen+bodyLen)
	h := eth.Ethernet{Dst: SlowProtocols, Src: src, Type: EtherType}
	h.Put(f)
	body = f[eth.EthernetLen:]
	body[0], body[1] = byte(s), version
	return f, body
}
