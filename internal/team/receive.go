package team

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// Receive reports whether a frame that has arrived at a member is for those that the team serves; they get b as it is afterwards. b is
// the whole frame, or the first Headers bytes if it is longer.
func (t *Team) Receive(now clock.Time, i int, b []byte) bool {
	m := &t.members[i]
	switch {
	case len(b) < eth.EthernetLen:
		t.counters.Malformed++
		return false
	case t.lacp != nil && t.slow(now, i, b):
		return false
	case !m.takes && !t.late(now, i, b):
		t.counters.StoodBy++
		return false
	case t.cfg.Type.aggregates():
		return true
	case t.macs[eth.MAC(b[6:])]: // of the team itself: a switch has brought it back by another member
		t.counters.Returned++
		return false
	case t.cfg.Type.Balances():
		return t.admit(now, i, b)
	}
	return true
}

// slow takes a frame of link aggregation.
func (t *Team) slow(now clock.Time, i int, b []byte) bool {
	if eth.MAC(b) != lacp.SlowProtocols || eth.EtherType(binary.BigEndian.Uint16(b[12:])) != lacp.EtherType {
		return false
	}
	if t.choice.Usable(i) && t.lacp.Receive(now, i, b[eth.EthernetLen:]) == nil { // otherwise it has counted it
		t.settle(now)
		t.marked(now, i)
	}
	return true
}

// admit takes at a member that has an address of its own what is for that, and all else at the active one: what a switch floods arrives
// at all of them.
func (t *Team) admit(now clock.Time, i int, b []byte) bool {
	if dst := eth.MAC(b); dst == t.members[i].own {
		return t.deliver(now, i, b)
	}
	if i != t.active && !t.late(now, i, b) {
		t.counters.StoodBy++
		return false
	}
	t.answered(now, b)
	return true
}

// deliver puts the MAC of the station that a frame is for in the place of a member's. One that is for the member itself, as the active
// one, is left as it is.
func (t *Team) deliver(now clock.Time, i int, b []byte) bool {
	s := t.wanted(b)
	if s == (eth.MAC{}) {
		if i == t.active {
			return true
		}
		t.counters.Strange++
		return false
	}
	copy(b, s[:])
	t.answered(now, b)
	return true
}

// wanted is the MAC of the station that a frame to a member's address is for: by its IP addresses, and otherwise the only one there is
// in its VLAN; zero: nobody can know.
func (t *Team) wanted(b []byte) eth.MAC {
	vlan, dst := destination(b)
	if dst.IsValid() {
		if mac := t.stationOf(vlan, dst); mac != (eth.MAC{}) {
			return mac
		}
	}
	var only eth.MAC
	for i := range t.stations {
		switch s := &t.stations[i]; {
		case s.VLAN != vlan:
		case only != (eth.MAC{}):
			return eth.MAC{}
		default:
			only = s.MAC
		}
	}
	return only
}

// destination is the VLAN of a frame and the IP address that it is for, if it carries IP, RoCE v1 or ARP.
func destination(b []byte) (vlan uint16, dst netip.Addr) {
	at := eth.EthernetLen - 2
	kind := eth.EtherType(binary.BigEndian.Uint16(b[at:]))
	if kind == eth.TypeVLAN && len(b) >= at+eth.VLANLen+2 {
		vlan = binary.BigEndian.Uint16(b[at+2:]) & eth.VIDMask
		at += eth.VLANLen
		kind = eth.EtherType(binary.BigEndian.Uint16(b[at:]))
	}
	p := b[at+2:]
	switch {
	case kind == eth.TypeIPv4 && len(p) >= eth.IPv4Len:
		return vlan, eth.IPv4(p).Dst()
	case (kind == eth.TypeIPv6 || kind == eth.TypeRoCEv1) && len(p) >= grhLen:
		return vlan, eth.IPv6(p).Dst().Unmap() // a GID of RoCE v1 may be an IPv4 address
	case kind == eth.TypeARP:
		if a, err := eth.ParseARP(p); err == nil {
			return vlan, a.TargetIP
		}
	}
	return vlan, netip.Addr{}
}

// answered notes a peer's answer to a station's question: the peer has heard the question, and sends to the active member from now on.
// It is told another if that has its share already.
func (t *Team) answered(now clock.Time, b []byte) {
	var x notice
	if kind, discovery := carried(b); !t.cfg.Type.tells() || kind != eth.TypeARP && !discovery || !x.parse(b) || !x.answer {
		return
	}
	if t.stationOf(x.vlan, x.to) == (eth.MAC{}) || x.mac[0]&1 != 0 {
		return
	}
	if p := t.meet(peerKey{x.vlan, x.to, x.addr}, x.mac); p != nil && p.member != t.active {
		p.stale = true
		t.peers.due = clock.Min(t.peers.due, now.Add(retellAfter))
	}
}
