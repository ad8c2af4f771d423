package overlay

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// asked returns the MAC that the tables have for an address in an adapter's subnet; known is false if they have none.
func (e *Engine) asked(t tenant, a netip.Addr) (mac eth.MAC, known bool) {
	k := inSubnet[netip.Addr]{t.subnet, a}
	if r := e.records[k]; r != nil {
		return r.MAC, true
	}
	return Router, e.gateways[k]
}

// answerARP answers a request of an adapter in place of who has the address (RFC 826). Others never see it. What is no request goes its
// way: an adapter may answer what another host has asked it through a tunnel.
func (e *Engine) answerARP(t tenant, b []byte) (v Verdict, answered bool) {
	a, err := eth.ParseARP(b[eth.EthernetLen:])
	if err != nil {
		return e.drop(Malformed), true
	}
	if a.Operation != eth.ARPRequest {
		return v, false
	}
	mac, known := e.asked(t, a.TargetIP)
	switch {
	case known && mac == t.mac, a.SenderIP == a.TargetIP: // it says where it is, or asks whether its address is free: it is
		return v, true
	case !known:
		return e.drop(NoRecord), true
	}
	e.counters.Answered++
	e.reply = replyARP(e.reply[:0], t.mac, mac, &a)
	return Verdict{Reply: e.reply}, true
}

// replyARP appends the answer to a request, for the station that has sent it: who has the address is at a MAC.
func replyARP(b []byte, to, mac eth.MAC, a *eth.ARP) []byte {
	h := eth.Ethernet{Dst: to, Src: mac, Type: eth.TypeARP}
	r := eth.ARP{Operation: eth.ARPReply, SenderMAC: mac, SenderIP: a.TargetIP, TargetMAC: a.SenderMAC, TargetIP: a.SenderIP}
	return r.Append(h.Append(b))
}

// answerDiscovery does for neighbour solicitations what answerARP does for requests (RFC 4861, 7.2).
func (e *Engine) answerDiscovery(t tenant, b []byte) (v Verdict, answered bool) {
	q, is, ok := parseSolicitation(b)
	if !is || !ok {
		if is {
			v = e.drop(Malformed)
		}
		return v, is
	}
	mac, known := e.asked(t, q.target)
	switch {
	case known && mac == t.mac, q.from == q.target:
		return v, true
	case !known:
		return e.drop(NoRecord), true
	}
	e.counters.Answered++
	e.reply = q.advertise(e.reply[:0], t.mac, mac)
	return Verdict{Reply: e.reply}, true
}

// solicitation is a question for who has an address, and who asks: if that is unspecified, it wants to have the address.
type solicitation struct{ target, from netip.Addr }

// parseSolicitation reads a neighbour solicitation in a frame of IPv6; is says that it is one, and ok that it can be.
func parseSolicitation(b []byte) (q solicitation, is, ok bool) {
	packet := b[eth.EthernetLen:]
	if len(packet) <= eth.IPv6Len || eth.IPv6(packet).NextHeader() != eth.ProtocolICMPv6 || packet[eth.IPv6Len] != eth.NDPSolicitation {
		return q, false, false
	}
	h, body, err := eth.ParseIPv6(packet)
	if err != nil {
		return q, true, false
	}
	d, err := eth.ParseDiscovery(body, h.Src(), h.Dst(), h.HopLimit())
	return solicitation{d.Target, h.Src()}, true, err == nil
}

// advertise appends the answer, for the station that asks: who has the address is at a MAC.
func (q *solicitation) advertise(b []byte, asks, mac eth.MAC) []byte {
	to, solicited := q.from, true
	if to.IsUnspecified() { // the address is taken
		to, solicited = allNodes, false
	}
	out := eth.Ethernet{Dst: asks, Src: mac, Type: eth.TypeIPv6}
	r := eth.Discovery{Advertisement: true, Router: mac == Router, Solicited: solicited, Override: true, Target: q.target, Link: mac[:]}
	return r.AppendPacket(out.Append(b), q.target, to)
}

var allNodes = netip.MustParseAddr("ff02::1")

// How much of a packet that is too large the answer has (RFC 1812, 4.3.2.3; RFC 4443, 2.4).
const (
	quotedV4 = 576 - eth.IPv4Len - 8
	quotedV6 = 1280 - eth.IPv6Len - 8
)

// tooLarge drops a packet that is too large for its headers outside, and tells the sender, if the packet may not be cut by routers, what
// size there is (RFC 1191, RFC 8201): the packet comes back from where it was sent to, as nobody is in between.
func (e *Engine) tooLarge(f *Frame, h *eth.Headers, mtu int) Verdict {
	v := e.drop(TooLarge)
	b := f.begin(nil, eth.EthernetLen+quotedV6)
	packet := b[eth.EthernetLen:]
	out := eth.Ethernet{Dst: eth.MAC(b[6:]), Src: eth.MAC(b), Type: h.Type}
	switch {
	case h.Type == eth.TypeIPv4 && len(packet) >= eth.IPv4Len && eth.IPv4(packet).DontFragment() && !isErrorV4(packet):
		ip := eth.IPv4(packet)
		m := eth.ICMP{Type: eth.ICMPUnreachable, Code: eth.ICMPFragNeeded, Rest: uint32(mtu), Data: packet[:min(len(packet), quotedV4)]}
		body := m.Append(nil)
		var head [eth.IPv4Len]byte
		eth.IPv4(head[:]).Encode(0, eth.IPv4Len+len(body), 0, hops, eth.ProtocolICMP, ip.Dst().As4(), ip.Src().As4())
		e.reply = append(append(out.Append(e.reply[:0]), head[:]...), body...)
	case h.Type == eth.TypeIPv6 && len(packet) > eth.IPv6Len && !isErrorV6(packet):
		ip := eth.IPv6(packet)
		m := eth.ICMP{Type: eth.ICMPv6PacketTooBig, Rest: uint32(mtu), Data: packet}
		body := m.AppendV6(nil, ip.Dst(), ip.Src())
		var head [eth.IPv6Len]byte
		eth.IPv6(head[:]).Encode(0, 0, len(body), eth.ProtocolICMPv6, hops, ip.Dst().As16(), ip.Src().As16())
		e.reply = append(append(out.Append(e.reply[:0]), head[:]...), body...)
	default:
		return v
	}
	v.Reply = e.reply
	return v
}

// isErrorV4 reports whether a packet is an ICMP error, or one to or from a group, which gets no answer (RFC 1122, 3.2.2).
func isErrorV4(p []byte) bool {
	ip := eth.IPv4(p)
	n := ip.HeaderLen()
	return ip.Dst().IsMulticast() || ip.Src().IsUnspecified() ||
		ip.Protocol() == eth.ProtocolICMP && (len(p) <= n || p[n] != eth.ICMPEcho && p[n] != eth.ICMPEchoReply)
}

// isErrorV6 is isErrorV4 for ICMPv6 (RFC 4443, 2.4).
func isErrorV6(p []byte) bool {
	ip := eth.IPv6(p)
	return ip.Dst().IsMulticast() || ip.Src().IsUnspecified() || ip.NextHeader() == eth.ProtocolICMPv6 && p[eth.IPv6Len] < 128
}
