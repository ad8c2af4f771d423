package team

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// notice is what a packet of ARP or of neighbour discovery says: that somebody's address is at a MAC.
type notice struct {
	answer bool // to one who has asked; otherwise it is a question, or for everybody
	vlan   uint16
	addr   netip.Addr // whose MAC it says
	mac    eth.MAC
	to     netip.Addr // of an answer: who has asked; of a question: whom it is about
	// place is where the MAC stands in the frame, and message the message of ICMPv6 around it, nil in ARP.
	place, message []byte
}

// parse reads a whole frame. ok is false for one that tells nobody where an address is.
func (x *notice) parse(b []byte) (ok bool) {
	var h eth.Headers
	if !h.Parse(b) || h.Tags > 1 {
		return false
	}
	*x = notice{vlan: h.TCI & eth.VIDMask}
	switch {
	case h.Type == eth.TypeARP:
		return x.arp(b[h.Network:])
	case h.Version == 6 && !h.Options && h.Protocol == eth.ProtocolICMPv6:
		return x.discovery(eth.IPv6(b[h.Network:]), b[h.Transport:h.End])
	}
	return false
}

func (x *notice) arp(b []byte) bool {
	const sender = 8
	a, err := eth.ParseARP(b)
	if err != nil || a.SenderIP.IsUnspecified() {
		return false
	}
	x.answer = a.Operation == eth.ARPReply && a.SenderIP != a.TargetIP
	x.addr, x.mac, x.to = a.SenderIP, a.SenderMAC, a.TargetIP
	x.place = b[sender : sender+len(x.mac)]
	return true
}

func (x *notice) discovery(h eth.IPv6, message []byte) bool {
	d, err := eth.ParseDiscovery(message, h.Src(), h.Dst(), h.HopLimit())
	if err != nil || len(d.Link) != len(x.mac) {
		return false
	}
	x.mac, x.place, x.message = eth.MAC(d.Link), d.Link, message
	if d.Advertisement {
		x.answer, x.addr, x.to = d.Solicited && !h.Dst().IsMulticast(), d.Target, h.Dst()
		return true
	}
	x.addr, x.to = h.Src(), d.Target
	return true
}

// say puts another MAC in the frame.
func (x *notice) say(b []byte, mac eth.MAC) {
	copy(b[source:], mac[:])
	copy(x.place, mac[:])
	if x.message == nil {
		return
	}
	// The checksum is of the addresses too, which say() does not change: what changes is the sum of the option.
	const checksum = 2
	c := uint32(^binary.BigEndian.Uint16(x.message[checksum:]))
	for i := 0; i < len(mac); i += 2 {
		c += uint32(^binary.BigEndian.Uint16(x.mac[i:])) + uint32(binary.BigEndian.Uint16(mac[i:])) // RFC 1624
	}
	for c > 0xffff {
		c = c>>16 + c&0xffff
	}
	binary.BigEndian.PutUint16(x.message[checksum:], ^uint16(c))
	x.mac = mac
}

// told is the frame that tells a peer that a station's address is at a MAC, from that.
func told(k peerKey, to, mac eth.MAC) []byte {
	if k.own.Is4() {
		a := eth.ARP{Operation: eth.ARPReply, SenderMAC: mac, SenderIP: k.own, TargetMAC: to, TargetIP: k.addr}
		return a.Append(header(to, mac, k.vlan, eth.TypeARP))
	}
	d := eth.Discovery{Advertisement: true, Override: true, Target: k.own, Link: mac[:]}
	return d.AppendPacket(header(to, mac, k.vlan, eth.TypeIPv6), k.own, k.addr)
}

// everybody is the frame that tells everybody that a station's address is at its MAC (RFC 5227 2.3, RFC 4861 7.2.6).
func everybody(a netip.Addr, mac eth.MAC, vlan uint16) []byte {
	if a.Is4() {
		p := eth.ARP{Operation: eth.ARPRequest, SenderMAC: mac, SenderIP: a, TargetIP: a}
		return p.Append(header(eth.Broadcast, mac, vlan, eth.TypeARP))
	}
	nodes := netip.IPv6LinkLocalAllNodes()
	group, _ := eth.MulticastMAC(nodes)
	d := eth.Discovery{Advertisement: true, Override: true, Target: a, Link: mac[:]}
	return d.AppendPacket(header(group, mac, vlan, eth.TypeIPv6), a, nodes)
}

// typeRARP is the Ethernet type of reverse ARP (RFC 903).
const typeRARP eth.EtherType = 0x8035

// switchesOnly is the frame by which switches learn where a station without addresses is: it asks who knows its address by reverse ARP,
// as hosts of virtual machines do when one moves. Nobody answers that.
func switchesOnly(mac eth.MAC, vlan uint16) []byte {
	const reverseRequest = 3
	p := eth.ARP{Operation: reverseRequest, SenderMAC: mac, TargetMAC: mac}
	return p.Append(header(eth.Broadcast, mac, vlan, typeRARP))
}

// header begins a frame.
func header(dst, src eth.MAC, vlan uint16, kind eth.EtherType) []byte {
	const longest = 128
	h := eth.Ethernet{Dst: dst, Src: src, Tagged: vlan != 0, TCI: vlan, Type: kind}
	return h.Append(make([]byte, 0, longest))
}
