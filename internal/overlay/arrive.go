package overlay

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// Arrived is what the wire has brought for an adapter.
type Arrived struct {
	// Frame is the frame from the tunnel, in the memory of that which arrived; nil: there is nothing for adapters.
	Frame []byte
	// To is the adapter that gets it; Everybody says that all of the Subnet do.
	To        Port
	Everybody bool
	Subnet    uint32

	host netip.Addr // that has sent it
}

// Arrive takes what the wire has brought for the MAC of the provider addresses, or for groups: a frame of another host for an adapter, or
// something about hosts. unsummed says that a checksum outside is still to be made.
func (e *Engine) Arrive(now clock.Time, b []byte, unsummed bool) Arrived {
	var h eth.Headers
	if !h.Parse(b) {
		e.drop(Malformed)
		return Arrived{}
	}
	if h.Type == eth.TypeARP || h.Type == eth.TypeIPv6 && h.Protocol == eth.ProtocolICMPv6 {
		e.neighbours.Receive(now, b)
		e.follow()
		return Arrived{}
	}
	if b[0]&1 != 0 {
		return Arrived{} // it is nobody's of this engine
	}
	a, why := e.open(&h, b, unsummed)
	if why != 0 {
		e.drop(why)
		return Arrived{}
	}
	e.counters.Arrived++
	e.counters.ArrivedBytes += uint64(len(b))
	e.answerHost(now, &a)
	return a
}

// ArriveLarge is Arrive for a large frame of TCP in a tunnel, of which the system or another port says by t into what it is cut.
func (e *Engine) ArriveLarge(now clock.Time, b []byte, t offload.Task) Arrived {
	a := e.Arrive(now, b, true)
	if a.Frame != nil {
		frames, bytes := t.OnWire(b, len(b))
		e.counters.Arrived += uint64(frames - 1)
		e.counters.ArrivedBytes += uint64(bytes - len(b))
	}
	return a
}

// answerHost answers a question from another host for an address of an adapter that does not answer itself.
func (e *Engine) answerHost(now clock.Time, a *Arrived) {
	if len(a.Frame) < eth.EthernetLen {
		return
	}
	switch eth.EtherType(binary.BigEndian.Uint16(a.Frame[12:])) { // it has no tag
	case eth.TypeARP:
		q, err := eth.ParseARP(a.Frame[eth.EthernetLen:])
		if mac, ok := e.speaks(a, q.TargetIP); ok && err == nil && q.Operation == eth.ARPRequest && q.SenderIP != q.TargetIP {
			e.reply = replyARP(e.reply[:0], eth.MAC(a.Frame[6:]), mac, &q)
			e.respond(now, a)
		}
	case eth.TypeIPv6:
		q, _, ok := parseSolicitation(a.Frame)
		if mac, speaks := e.speaks(a, q.target); ok && speaks {
			e.reply = q.advertise(e.reply[:0], eth.MAC(a.Frame[6:]), mac)
			e.respond(now, a)
		}
	}
}

// speaks returns the MAC of the adapter that gets a frame, and for one of whose addresses the engine answers.
func (e *Engine) speaks(a *Arrived, target netip.Addr) (mac eth.MAC, ok bool) {
	for _, p := range e.members[a.Subnet] {
		if t := e.tenants[p]; (a.Everybody || p == a.To) && slices.Contains(t.addrs, target) {
			return t.mac, true
		}
	}
	return mac, false
}

// respond sends the answer to a frame to the host from which that has come.
func (e *Engine) respond(now clock.Time, a *Arrived) {
	w, why := e.way(now, a.host)
	if why != 0 && why != Unresolved {
		e.drop(why)
		return
	}
	f := Frame{Head: e.reply}
	h := parse(e.reply)
	outer := e.wrap(&w, a.Subnet, &f, &h, e.reply)
	e.counters.Answered++
	if why == Unresolved {
		e.hold(&w, outer, &f)
	} else if b := join(outer, &f); e.queue(b) {
		e.sent(len(b))
	}
}

// open takes a frame out of its tunnel.
func (e *Engine) open(h *eth.Headers, b []byte, unsummed bool) (a Arrived, why Reason) {
	src, dst, ok := ends(h, b)
	if !ok {
		return a, Foreign
	}
	own := e.own[dst]
	if own == nil || h.Tags > 1 || h.TCI&eth.VIDMask != own.VLAN {
		return a, Foreign
	}
	if h.Fragment {
		return a, Fragment
	}
	var f tunnel.Frame
	if !f.Find(h, b, tunnel.Recognition{VXLANPort: e.cfg.UDPPort, NVGRE: true}) {
		return a, Foreign
	}
	if !unsummed && !sound(h, b, f.Kind) {
		return a, BadSum
	}
	inner := b[f.At:h.End]
	if f.Kind == tunnel.VXLAN {
		inner = b[f.At : h.Transport+eth.UDP(b[h.Transport:]).Length()]
	}
	switch members := e.members[f.ID]; {
	case len(members) == 0:
		return a, NoSubnet
	case !e.known[e.domain(f.ID)][src]:
		return a, NoHost
	case f.Inner.Tags > 0:
		return a, Tagged
	case inner[6]&1 != 0:
		return a, Malformed
	}
	if !combine(h, b, inner) {
		return a, Congested
	}
	a = Arrived{Frame: inner, Subnet: f.ID, Everybody: inner[0]&1 != 0, host: src}
	if !a.Everybody {
		if a.To, ok = e.here[inSubnet[eth.MAC]{f.ID, eth.MAC(inner)}]; !ok {
			return Arrived{}, Nobody
		}
	}
	return a, 0
}

// ends returns the addresses of a packet.
func ends(h *eth.Headers, b []byte) (src, dst netip.Addr, ok bool) {
	switch h.Version {
	case 4:
		ip := eth.IPv4(b[h.Network:])
		return ip.Src(), ip.Dst(), true
	case 6:
		ip := eth.IPv6(b[h.Network:])
		return ip.Src(), ip.Dst(), true
	}
	return src, dst, false
}

// sound reports whether the checksums outside are right. That of UDP may be missing (RFC 7348, 5).
func sound(h *eth.Headers, b []byte, k tunnel.Kind) bool {
	if h.Version == 4 && !eth.IPv4(b[h.Network:h.Transport]).ChecksumOK() {
		return false
	}
	if k != tunnel.VXLAN || eth.UDP(b[h.Transport:]).Checksum() == 0 {
		return true
	}
	return offload.CheckTransport(h, b)&offload.BadTransport == 0
}

// combine brings a mark of congestion in, which switches have put outside (RFC 6040, 4.2); false: the packet inside cannot have it, and
// is dropped for that.
func combine(h *eth.Headers, b, inner []byte) bool {
	if !eth.Marked(class(h, b)) {
		return true
	}
	i := parse(inner)
	if (i.Type != eth.TypeIPv4 && i.Type != eth.TypeIPv6) || class(&i, inner)&eth.ECNMask == 0 {
		return i.Type != eth.TypeIPv4 && i.Type != eth.TypeIPv6
	}
	return eth.MarkCongestion(inner)
}
