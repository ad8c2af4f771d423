package ipoib

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Arrival is a datagram received by the interface's queue pair.
type Arrival struct {
	SLID   ib.LID
	SL     uint8
	SrcQP  ib.QPN
	HasGRH bool
	SGID   ib.GID // of the GRH
	Data   []byte // beginning with the IPoIB header
}

// Send accepts an IP packet from the system. If ok, the caller must send it to the destination at once,
// preceded by HeaderOf it; that is the usual case, and nothing is copied. Otherwise it was copied to wait
// for an address, or dropped and counted.
func (i *Interface) Send(now clock.Time, packet []byte) (to Destination, ok bool) {
	return i.SendPieces(now, packet, nil)
}

// SendPieces is Send for a packet in two pieces, of which the first holds the headers.
func (i *Interface) SendPieces(now clock.Time, head, body []byte) (to Destination, ok bool) {
	size := len(head) + len(body)
	if i.state != Up {
		i.counters.DroppedDown++
		return to, false
	}
	src, dst, ok := endsOf(head)
	switch {
	case !ok:
		i.counters.DroppedInvalid++
		return to, false
	case size > i.mtu:
		i.counters.DroppedLong++
		return to, false
	}
	i.sends(src)
	i.counters.SentPackets++
	i.counters.SentBytes += uint64(size)
	data := func() []byte {
		h, _ := HeaderOf(head)
		return append(append(append(make([]byte, 0, HeaderLen+size), h[:]...), head...), body...)
	}
	if dst.IsMulticast() || dst.Is4() && i.isBroadcast(dst) {
		return i.sendGroup(now, head, src, dst, data)
	}
	n := i.lookup(now, i.nextHop(dst), src)
	if n != nil && n.ready() {
		i.use(now, n)
		return n.to, true
	}
	switch {
	case n == nil:
		i.counters.DroppedNoRoute++
	case len(n.waiting) >= maxWaiting:
		i.counters.DroppedFull++
	default:
		n.waiting = append(n.waiting, data())
	}
	return to, false
}

// SendMore counts another packet of size bytes to the destination that Send has just returned, and reports
// whether it may be sent there.
func (i *Interface) SendMore(size int) bool {
	if size > i.mtu {
		i.counters.DroppedLong++
		return false
	}
	i.counters.SentPackets++
	i.counters.SentBytes += uint64(size)
	return true
}

// sendGroup is Send for multicast and broadcast packets.
func (i *Interface) sendGroup(now clock.Time, packet []byte, src, dst netip.Addr, data func() []byte) (Destination, bool) {
	i.counters.SentMulticast++
	if !dst.IsMulticast() {
		return i.toGroup(now, i.broadcast.mgid, data)
	}
	if dst.Is4() {
		h := eth.IPv4(packet)
		if n := h.HeaderLen(); h.Protocol() == eth.ProtocolIGMP && n >= eth.IPv4Len && n <= h.TotalLen() && h.TotalLen() <= len(packet) {
			i.snoop(now, packet[n:h.TotalLen()])
		}
	} else if h := eth.IPv6(packet); h.NextHeader() == eth.ProtocolHopByHop && eth.IPv6Len+h.PayloadLen() <= len(packet) {
		i.snoop6(now, packet[eth.IPv6Len:eth.IPv6Len+h.PayloadLen()], src, dst)
	}
	mgid, _ := groupMGID(dst, i.cfg.Scope, i.pkey)
	return i.toGroup(now, mgid, data)
}

// isBroadcast reports whether an address is that of all nodes of the link.
func (i *Interface) isBroadcast(a netip.Addr) bool {
	v := a.As4()
	if v == [4]byte{255, 255, 255, 255} {
		return true
	}
	for _, p := range i.prefixes {
		if p.Addr().Is4() && p.Bits() < 31 && p.Contains(a) && lastOf(p) == v {
			return true
		}
	}
	return false
}

// lastOf returns the last address of an IPv4 prefix.
func lastOf(p netip.Prefix) [4]byte {
	v := p.Addr().As4()
	for n := p.Bits(); n < 32; n++ {
		v[n/8] |= 0x80 >> (n % 8)
	}
	return v
}

// endsOf reads the addresses of an IP packet, whose header must be complete.
func endsOf(p []byte) (src, dst netip.Addr, ok bool) {
	switch {
	case len(p) >= eth.IPv4Len && p[0]>>4 == 4:
		h := eth.IPv4(p)
		return h.Src(), h.Dst(), true
	case len(p) >= eth.IPv6Len && p[0]>>4 == 6:
		h := eth.IPv6(p)
		return h.Src(), h.Dst(), true
	}
	return src, dst, false
}

// Receive handles a datagram and returns the IP packet in it that is for the system, without copying; nil
// if there is none.
func (i *Interface) Receive(now clock.Time, a *Arrival) []byte {
	if i.state != Up {
		return nil
	}
	if a.SrcQP == i.qpn && i.ownLID(a.SLID) && (!a.HasGRH || a.SGID == i.port.GID) {
		return nil // our own, sent to a group of which we are a member
	}
	t, payload, err := parseHeader(a.Data)
	if err != nil {
		i.counters.ReceivedInvalid++
		return nil
	}
	switch t {
	case eth.TypeARP:
		i.receiveARP(now, a, payload)
		return nil
	case eth.TypeIPv4, eth.TypeIPv6:
		return i.receiveIP(now, a, t, payload)
	}
	i.counters.UnknownProtocol++
	if now >= i.unknown {
		i.unknown = now.Add(unknownInterval)
		i.do(Event{Kind: UnknownProtocol, Protocol: t})
	}
	return nil
}

func (i *Interface) ownLID(l ib.LID) bool { return l&^(1<<i.port.LMC-1) == i.port.LID }

func (i *Interface) receiveIP(now clock.Time, a *Arrival, t eth.EtherType, p []byte) []byte {
	src, dst, ok := endsOf(p)
	if !ok || (t == eth.TypeIPv4) != src.Is4() || src.IsMulticast() {
		i.counters.ReceivedInvalid++
		return nil
	}
	if t == eth.TypeIPv6 {
		h := eth.IPv6(p)
		if eth.IPv6Len+h.PayloadLen() > len(p) {
			i.counters.ReceivedInvalid++
			return nil
		}
		if body := p[eth.IPv6Len : eth.IPv6Len+h.PayloadLen()]; eth.IsDiscovery(h, body) {
			i.receiveDiscovery(now, a, body, src, dst, h.HopLimit())
			return nil
		}
	}
	if e := i.local[dst]; e != nil {
		e.age = 0
	}
	i.counters.ReceivedPackets++
	i.counters.ReceivedBytes += uint64(len(p))
	if dst.IsMulticast() {
		i.counters.ReceivedMulticast++
	}
	return p
}

// receiveARP handles an ARP packet (RFC 826): it learns the sender if that is known or asks for us, and
// answers a request for one of our addresses.
func (i *Interface) receiveARP(now clock.Time, a *Arrival, b []byte) {
	p, err := parseARP(b)
	if err != nil {
		i.counters.ReceivedInvalid++
		return
	}
	mine := i.local[p.TargetIP] != nil
	i.learn(now, p.SenderIP, p.Sender, a, mine, mine && p.Operation == eth.ARPReply)
	if !mine || p.Operation != eth.ARPRequest || p.SenderIP == p.TargetIP || !p.Sender.unicast() {
		return
	}
	i.local[p.TargetIP].age = 0
	r := arp{Operation: eth.ARPReply, Sender: i.Address(), SenderIP: p.TargetIP, Target: p.Sender, TargetIP: p.SenderIP}
	i.answer(now, p.SenderIP, p.Sender, a, r.Append(appendHeader(nil, eth.TypeARP)))
}

// receiveDiscovery handles a neighbour solicitation or advertisement (RFC 4861 7.2).
func (i *Interface) receiveDiscovery(now clock.Time, a *Arrival, body []byte, src, dst netip.Addr, hopLimit uint8) {
	d, err := parseDiscovery(body, src, dst, hopLimit)
	if err != nil {
		i.counters.ReceivedInvalid++
		return
	}
	if d.Advertisement {
		if d.HasLink {
			i.learn(now, d.Target, d.Link, a, false, d.Solicited)
		}
		return
	}
	mine := i.local[d.Target] != nil
	if d.HasLink {
		i.learn(now, src, d.Link, a, mine, false)
	}
	if !mine {
		return
	}
	i.local[d.Target].age = 0
	r := discovery{Advertisement: true, Solicited: !src.IsUnspecified(), Override: true, Target: d.Target, Link: i.Address(), HasLink: true}
	if src.IsUnspecified() { // duplicate address detection: the address is taken
		i.groupPacket(now, allNodes[1], r.appendPacket(appendHeader(nil, eth.TypeIPv6), d.Target, allNodes[1]))
		return
	}
	i.answer(now, src, d.Link, a, r.appendPacket(appendHeader(nil, eth.TypeIPv6), d.Target, src))
}

// answer sends a datagram to the requester: on the reverse path, or when its path is known.
func (i *Interface) answer(now clock.Time, addr netip.Addr, link Address, a *Arrival, data []byte) {
	if n := i.neighbours[addr]; n != nil {
		switch {
		case n.ready():
			i.do(Datagram{n.to, data})
		case len(n.waiting) < maxWaiting:
			n.waiting = append(n.waiting, data)
		default:
			i.counters.DroppedFull++
		}
		return
	}
	if way, ok := i.wayBack(link, a); ok { // it probes whether its address is free, and has none yet
		i.do(Datagram{Destination{way, link.QPN, i.broadcast.rec.QKey}, data})
		return
	}
	i.counters.DroppedNoRoute++
}
