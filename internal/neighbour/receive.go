package neighbour

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// Concerns reports whether a frame is an ARP packet or a neighbour discovery, by its types alone. It is cheap, for every
// frame that arrives.
func Concerns(frame []byte) bool {
	const least = eth.EthernetLen
	if len(frame) < least {
		return false
	}
	at := 12
	kind := eth.EtherType(uint16(frame[at])<<8 | uint16(frame[at+1]))
	if kind == eth.TypeVLAN && len(frame) >= least+eth.VLANLen {
		at += eth.VLANLen
		kind = eth.EtherType(uint16(frame[at])<<8 | uint16(frame[at+1]))
	}
	body := frame[at+2:]
	switch kind {
	case eth.TypeARP:
		return true
	case eth.TypeIPv6:
		return len(body) > eth.IPv6Len && eth.IsDiscovery(eth.IPv6(body), body[eth.IPv6Len:])
	}
	return false
}

// Receive handles a whole Ethernet frame. taken is true if it was a question for an address for which the engine answers,
// or news of a neighbour in the table: then it is of no use for others. It does not retain the frame.
func (e *Engine) Receive(now clock.Time, frame []byte) (taken bool) {
	h, body, err := eth.ParseEthernet(frame)
	if err != nil {
		return false
	}
	vlan := uint16(0)
	if h.Tagged {
		vlan = h.TCI & eth.VIDMask
	}
	switch h.Type {
	case eth.TypeARP:
		return e.receiveARP(now, vlan, body)
	case eth.TypeIPv6:
		return e.receiveIPv6(now, vlan, h.Src, body)
	}
	return false
}

// station reports whether a MAC may be that of a station.
func station(m eth.MAC) bool { return m[0]&1 == 0 && m != eth.MAC{} }

// receiveARP follows the steps of RFC 826, "Packet Reception".
func (e *Engine) receiveARP(now clock.Time, vlan uint16, b []byte) (taken bool) {
	a, err := eth.ParseARP(b)
	if err != nil || !station(a.SenderMAC) {
		e.counters.Malformed++
		return false
	}
	if a.SenderIP.IsUnspecified() && a.Operation == eth.ARPRequest { // a probe (RFC 5227 2.1.1)
		e.claimed(now, Key{vlan, a.TargetIP}, a.SenderMAC)
	}
	own := e.conflict(now, Key{vlan, a.SenderIP}, a.SenderMAC)
	mac, mine := e.own[Key{vlan, a.TargetIP}]
	if own {
		return mine
	}
	n := e.entries[Key{vlan, a.SenderIP}]
	merged := n != nil
	if merged {
		e.learned(now, n, a.SenderMAC, a.Operation == eth.ARPReply && n.from.Addr == a.TargetIP)
	}
	if a.Operation != eth.ARPRequest || !mine {
		return merged && a.Operation == eth.ARPReply
	}
	if !merged {
		e.meet(now, Key{vlan, a.SenderIP}, a.SenderMAC, Source{mac, a.TargetIP})
	}
	r := eth.ARP{Operation: eth.ARPReply, SenderMAC: mac, SenderIP: a.TargetIP, TargetMAC: a.SenderMAC, TargetIP: a.SenderIP}
	e.counters.Answered++
	e.send(a.SenderMAC, mac, vlan, eth.TypeARP, r.Append)
	return true
}

// meet makes an entry for who has asked for a station's address: it will want an answer to more than that.
func (e *Engine) meet(now clock.Time, key Key, mac eth.MAC, from Source) {
	if !key.Addr.IsValid() || key.Addr.IsUnspecified() || key.Addr.IsMulticast() {
		return
	}
	n := e.add(key)
	n.from = from
	e.learned(now, n, mac, false)
}

func (e *Engine) receiveIPv6(now clock.Time, vlan uint16, from eth.MAC, b []byte) (taken bool) {
	h, payload, err := eth.ParseIPv6(b)
	if err != nil || !eth.IsDiscovery(h, payload) {
		return false
	}
	d, err := eth.ParseDiscovery(payload, h.Src(), h.Dst(), h.HopLimit())
	if err != nil || !station(from) || d.Link != nil && (len(d.Link) != len(from) || !station(eth.MAC(d.Link))) {
		e.counters.Malformed++
		return false
	}
	if d.Advertisement {
		return e.advertised(now, vlan, from, &d)
	}
	return e.solicited(now, vlan, from, h.Src(), &d)
}

// solicited answers a solicitation (RFC 4861 7.2.3, 7.2.4).
func (e *Engine) solicited(now clock.Time, vlan uint16, from eth.MAC, src netip.Addr, d *eth.Discovery) (taken bool) {
	if src.IsUnspecified() { // somebody checks whether the address is taken (RFC 4862 5.4.3)
		e.claimed(now, Key{vlan, d.Target}, from)
	}
	mac, mine := e.own[Key{vlan, d.Target}]
	if d.Link != nil && !e.conflict(now, Key{vlan, src}, eth.MAC(d.Link)) {
		switch n := e.entries[Key{vlan, src}]; {
		case n != nil:
			e.learned(now, n, eth.MAC(d.Link), false)
		case mine:
			e.meet(now, Key{vlan, src}, eth.MAC(d.Link), Source{mac, d.Target})
		}
		from = eth.MAC(d.Link)
	}
	if !mine {
		return false
	}
	r := eth.Discovery{Advertisement: true, Solicited: !src.IsUnspecified(), Override: true, Target: d.Target}
	dst := src
	if src.IsUnspecified() {
		dst = allNodes
	}
	e.counters.Answered++
	e.sendDiscovery(&r, mac, vlan, from, d.Target, dst)
	return true
}

// advertised handles an advertisement (RFC 4861 7.2.5).
func (e *Engine) advertised(now clock.Time, vlan uint16, from eth.MAC, d *eth.Discovery) (taken bool) {
	key := Key{vlan, d.Target}
	var mac eth.MAC
	if d.Link != nil {
		mac = eth.MAC(d.Link)
	}
	if d.Link == nil && (e.own[key] != (eth.MAC{}) || e.trials[key] != nil) {
		mac = from
	}
	if e.conflict(now, key, mac) {
		return true
	}
	n := e.entries[key]
	switch {
	case n == nil:
		return false
	case d.Link == nil && !n.known():
		return true
	case d.Link == nil:
		mac = n.mac
	case n.known() && !d.Override && mac != n.mac:
		if n.state == confirmed {
			e.doubt(now, n)
		}
		return true
	}
	e.learned(now, n, mac, d.Solicited)
	return true
}
