package overlay

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// looked is how much of a frame is looked at: headers with four tags, IPv6, and a neighbour solicitation.
const looked = 128

// Frame is a frame in pieces. Head begins with the Ethernet header, and has the IP header if there is one; routing changes it.
type Frame struct {
	Head, Body, Tail []byte
	// Task says what it is to be cut into, if it is a large one of TCP; Head has all headers then.
	Task offload.Task
}

// Len returns the frame's length.
func (f *Frame) Len() int { return len(f.Head) + len(f.Body) + len(f.Tail) }

// most returns the length of the longest frame that leaves: of those that a large one is cut into.
func (f *Frame) most() int {
	if f.Task.Kind == offload.Whole {
		return f.Len()
	}
	n, _ := f.Task.HeadersOf(f.Head)
	return min(f.Len(), n+int(f.Task.Segment))
}

// begin returns the first n bytes of the frame, in one piece, or all.
func (f *Frame) begin(scratch []byte, n int) []byte {
	if len(f.Head) >= n || len(f.Body)+len(f.Tail) == 0 {
		return f.Head[:min(n, len(f.Head))]
	}
	b := append(scratch[:0], f.Head...)
	b = append(b, f.Body[:min(len(f.Body), n-len(b))]...)
	return append(b, f.Tail[:min(len(f.Tail), n-len(b))]...)
}

// Verdict is what becomes of a frame that an adapter sends.
type Verdict struct {
	// Why says why it goes nowhere; 0: it goes somewhere, or was answered.
	Why Reason
	// Local says that it goes to the adapter To, and Everybody that it goes to all others of the subnet here. The engine sends it to other
	// hosts itself then.
	Local, Everybody bool
	To               Port
	// Outer are headers to be put before the frame, which then leaves by the wire. They are valid until the next call.
	Outer []byte
	// Reply is a frame for the sender, in place of what it sent or because of it; valid until the next call.
	Reply []byte
	// Changed says that routing has changed the frame's Head.
	Changed bool
}

func (e *Engine) drop(why Reason) Verdict {
	e.counters.Dropped[why]++
	return Verdict{Why: why}
}

// Send says what becomes of a frame that an adapter in a virtual subnet sends.
func (e *Engine) Send(now clock.Time, from Port, f *Frame) Verdict {
	t, ok := e.tenants[from]
	if !ok {
		return e.drop(NoSubnet)
	}
	head := f.begin(e.scratch, looked)
	if len(head) < eth.EthernetLen {
		return e.drop(Malformed)
	}
	h := parse(head)
	dst := eth.MAC(head)
	switch {
	case h.Tags > 0:
		return e.drop(Tagged)
	case h.Type == eth.TypeARP:
		if v, answered := e.answerARP(t, head); answered {
			return v
		}
	case h.Type == eth.TypeIPv6:
		if v, answered := e.answerDiscovery(t, head); answered {
			return v
		}
	}
	switch {
	case dst[0]&1 != 0:
		return e.toAll(now, t, f, &h, head)
	case dst == Router:
		return e.route(now, from, t, f, &h)
	}
	return e.toOne(now, from, t.subnet, dst, f, &h, head)
}

// parse looks at the headers of a frame of which the beginning is there.
func parse(b []byte) (h eth.Headers) {
	h.Parse(b)
	return h
}

// toOne sends a frame to the station of a subnet that has a MAC.
func (e *Engine) toOne(now clock.Time, from Port, subnet uint32, dst eth.MAC, f *Frame, h *eth.Headers, head []byte) Verdict {
	k := inSubnet[eth.MAC]{subnet, dst}
	if to, ok := e.here[k]; ok {
		if to == from {
			return e.drop(Nobody) // no station talks to itself by the wire
		}
		e.counters.Local++
		return Verdict{Local: true, To: to}
	}
	host, ok := e.stations[k]
	switch {
	case !ok:
		return e.drop(NoRecord)
	case e.own[host] != nil:
		return e.drop(Nobody)
	}
	w, why := e.way(now, host)
	if why != 0 && why != Unresolved {
		return e.drop(why)
	}
	if w.size(f.most()) > e.cfg.MTU {
		return e.tooLarge(f, h, e.cfg.MTU-w.overhead())
	}
	outer := e.wrap(&w, subnet, f, h, head)
	if why == Unresolved {
		return e.hold(&w, outer, f)
	}
	e.sentLarge(f, len(outer))
	return Verdict{Outer: outer}
}

// toAll sends a frame to all others of a subnet: to each host a copy (RFC 7348, 4.2, has multicast for that).
func (e *Engine) toAll(now clock.Time, t tenant, f *Frame, h *eth.Headers, head []byte) Verdict {
	v := Verdict{Everybody: len(e.members[t.subnet]) > 1}
	if v.Everybody {
		e.counters.Local++
	}
	for _, host := range e.hosts[t.subnet] {
		if e.own[host] != nil {
			continue
		}
		w, why := e.way(now, host)
		if why == 0 && w.size(f.Len()) > e.cfg.MTU {
			why = TooLarge
		}
		if why != 0 && why != Unresolved {
			e.drop(why)
			continue
		}
		outer := e.wrap(&w, t.subnet, f, h, head)
		if why == Unresolved {
			e.hold(&w, outer, f)
			continue
		}
		if b := join(outer, f); e.queue(b) {
			e.sent(len(b))
		}
	}
	if len(e.hosts[t.subnet]) == 0 && !v.Everybody {
		return e.drop(NoRecord)
	}
	return v
}

// join makes one piece of a frame and the headers before it.
func join(outer []byte, f *Frame) []byte {
	b := make([]byte, 0, len(outer)+f.Len())
	b = append(append(b, outer...), f.Head...)
	return append(append(b, f.Body...), f.Tail...)
}

// wrap makes the headers outside a frame.
func (e *Engine) wrap(w *way, subnet uint32, f *Frame, h *eth.Headers, head []byte) []byte {
	e.id++
	o := tunnel.Outer{Ethernet: eth.Ethernet{Dst: w.mac, Src: e.cfg.MAC, Tagged: w.from.VLAN != 0, TCI: w.from.VLAN},
		Src: w.from.Address.Addr(), Dst: w.host, TTL: hops, ToS: class(h, head), ID: e.id,
		SrcPort: tunnel.SourcePort(flow(h, head)), DstPort: e.cfg.UDPPort}
	e.outer = o.AppendHead(e.outer[:0], tunnel.Header{Kind: w.from.Kind, ID: subnet}, f.Len())
	if w.from.Kind == tunnel.VXLAN && o.Src.Is6() { // with IPv6 receivers want one (RFC 8200, 8.1)
		at := o.HeadLen(tunnel.VXLAN) - tunnel.HeaderLen - eth.UDPLen
		if f.Task.Kind != offload.Whole { // each part gets its own
			eth.UDP(e.outer[at:]).SetChecksum(offload.PartialSum(e.outer[at-eth.IPv6Len:], len(e.outer)-at+f.Len()))
			return e.outer
		}
		b := append(append(e.datagram[:0], e.outer[at:]...), f.Head...)
		e.datagram = append(append(b, f.Body...), f.Tail...)
		eth.UDP(e.outer[at:]).SetChecksum(eth.UDPChecksum(o.Src, o.Dst, e.datagram))
	}
	return e.outer
}

// hops is the hop limit of packets to other hosts.
const hops = 64

// class returns the traffic class of the packet inside, for that outside (RFC 6040, 4.1; RFC 2983, the uniform model).
func class(h *eth.Headers, b []byte) uint8 {
	switch {
	case h.Type == eth.TypeIPv4 && len(b) >= h.Network+eth.IPv4Len:
		return eth.IPv4(b[h.Network:]).ToS()
	case h.Type == eth.TypeIPv6 && len(b) >= h.Network+eth.IPv6Len:
		return eth.IPv6(b[h.Network:]).TrafficClass()
	}
	return 0
}

// flow returns a number of the flow of a frame, the same for all of its frames: of its addresses and ports. That of NVGRE is 0 always:
// there is no more to it than its spread over queues, and Linux compares the key as a whole.
func flow(h *eth.Headers, b []byte) uint32 {
	x := fnv(2166136261, b[:2*6])
	addresses, protocol, ports := 0, uint8(0), 0
	switch {
	case h.Type == eth.TypeIPv4 && len(b) >= h.Network+eth.IPv4Len:
		ip := eth.IPv4(b[h.Network:])
		x = fnv(x, ip[12:20])
		if protocol = ip.Protocol(); !ip.Fragment() {
			ports = h.Network + ip.HeaderLen()
		}
		addresses = 1
	case h.Type == eth.TypeIPv6 && len(b) >= h.Network+eth.IPv6Len:
		ip := eth.IPv6(b[h.Network:])
		x = fnv(x, ip[8:40])
		protocol, ports, addresses = ip.NextHeader(), h.Network+eth.IPv6Len, 1
	}
	if addresses == 0 {
		return x
	}
	x = fnv(x, []byte{protocol})
	if (protocol == eth.ProtocolTCP || protocol == eth.ProtocolUDP) && ports > 0 && len(b) >= ports+4 {
		x = fnv(x, b[ports:ports+4])
	}
	return x
}

// fnv goes on with an FNV-1a hash.
func fnv(x uint32, b []byte) uint32 {
	for _, c := range b {
		x = (x ^ uint32(c)) * 16777619
	}
	return x
}
