package team

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// Headers is how much of a frame's beginning Send looks at: Ethernet with tags, IPv6, and ports. IPv4 with all its options is shorter.
const Headers = 96

// source is where a frame has the address that it comes from.
const source = 6

// Send returns which member a frame leaves by; -1: none, and it is lost. b is the frame, or its first Headers bytes if it is longer and
// neither of ARP nor of ICMPv6; size is the frame's. The frame is to leave as b is afterwards: a member that is not active has its own
// address where a station's was.
func (t *Team) Send(now clock.Time, b []byte, size int) (i int) {
	switch {
	case len(b) < eth.EthernetLen:
		i = -1
	case t.cfg.Type.aggregates():
		i = t.by(now, flow(b, t.cfg.Hash), size)
	case t.cfg.Type.Balances():
		i = t.balance(now, b, size)
	default:
		i = t.active
	}
	if i < 0 {
		t.counters.Lost++
	}
	return i
}

// balance chooses among members that have addresses of their own. What says where a station is, or is for more than one, leaves by
// the active one, so that all others know it by one address.
func (t *Team) balance(now clock.Time, b []byte, size int) int {
	if t.active < 0 || b[0]&1 != 0 {
		t.asked(now, b)
		return t.active
	}
	kind, discovery := carried(b)
	switch {
	case kind == eth.TypeARP || discovery:
		return t.answer(now, b)
	case kind != eth.TypeIPv4 && kind != eth.TypeIPv6 && kind != eth.TypeRoCEv1:
		return t.active
	}
	i := t.by(now, flow(b, t.cfg.Hash), size)
	if i >= 0 && i != t.active {
		copy(b[source:], t.members[i].own[:])
	}
	return i
}

// carried returns what a frame carries behind a tag, and whether that may be neighbour discovery.
func carried(b []byte) (kind eth.EtherType, icmp6 bool) {
	at := eth.EthernetLen - 2
	kind = eth.EtherType(binary.BigEndian.Uint16(b[at:]))
	if kind == eth.TypeVLAN && len(b) >= at+eth.VLANLen+2 {
		at += eth.VLANLen
		kind = eth.EtherType(binary.BigEndian.Uint16(b[at:]))
	}
	ip := b[at+2:]
	return kind, kind == eth.TypeIPv6 && len(ip) >= eth.IPv6Len && eth.IPv6(ip).NextHeader() == eth.ProtocolICMPv6
}

// asked notes a question or an announcement of a station's, which everybody hears.
func (t *Team) asked(now clock.Time, b []byte) {
	var x notice
	if t.cfg.Type.tells() && x.parse(b) {
		t.heardAll(now, x.vlan, x.addr)
	}
}

// answer returns by which member a station answers a peer's question, with that member's address in it; all else of the kind leaves by
// the active one.
func (t *Team) answer(now clock.Time, b []byte) int {
	var x notice
	if !t.cfg.Type.tells() || !x.parse(b) {
		return t.active
	}
	if !x.answer {
		t.heardAll(now, x.vlan, x.addr)
		return t.active
	}
	if t.stationOf(x.vlan, x.addr) != eth.MAC(b[source:]) {
		return t.active // of an address that is not the station's own: what comes to it could not be told apart
	}
	p := t.meet(peerKey{x.vlan, x.addr, x.to}, eth.MAC(b))
	if p == nil || p.member == t.active {
		return t.active
	}
	p.stale = false
	x.say(b, t.members[p.member].own)
	return p.member
}
