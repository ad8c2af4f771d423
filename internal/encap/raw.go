package encap

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// sealRaw writes everything before the BTH, and pad and ICRC after the payload.
func (e *Encap) sealRaw(o *frame.Out) {
	r := o.Route
	bth := o.Head[frame.HeadRoom:o.HeadEnd]
	length := len(bth) + len(o.Payload) + int(o.Pad&3) + ib.ICRCLen
	e2 := eth.Ethernet{Dst: r.DstMAC, Src: r.SrcMAC, Tagged: r.VLAN != 0, TCI: r.VLAN, Type: eth.TypeRoCEv1}
	var crc uint32
	at := frame.HeadRoom
	if e.mode == RoCEv2 {
		// It is never fragmented, so it needs no identification (RFC 6864).
		d := eth.Datagram{Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, DstPort: e.dstPort(r),
			TrafficClass: r.TrafficClass, HopLimit: frame.Hops(r.HopLimit), FlowLabel: r.FlowLabel}
		e2.Type = d.Type()
		at -= d.HeaderLen()
		d.Put(o.Head[at:], length)
		ip, udp := o.Head[at:frame.HeadRoom-eth.UDPLen], o.Head[frame.HeadRoom-eth.UDPLen:frame.HeadRoom]
		if e2.Type == eth.TypeIPv4 {
			crc = ib.ICRCSeedIPv4(&e.icrc, ip, udp, bth)
		} else {
			crc = ib.ICRCSeedIPv6(&e.icrc, ip, udp, bth)
		}
	} else {
		at -= ib.GRHLen
		grh := ib.GRH(o.Head[at:])
		grh.Encode(r.TrafficClass, r.FlowLabel, length, frame.Hops(r.HopLimit), ib.GID(r.Src.As16()), ib.GID(r.Dst.As16()))
		crc = ib.ICRCSeedGRH(&e.icrc, grh[:ib.GRHLen], bth)
	}
	at -= e2.Len()
	e2.Put(o.Head[at:])
	o.HeadStart, o.Segment = uint16(at), 0
	finish(o, ib.ICRCUpdate(crc, bth[ib.BTHLen:]), 0)
}

// openRaw checks a whole frame and fills in the fields that a socket would provide.
func (e *Encap) openRaw(p *frame.In) bool {
	if e.mode == InfiniBand {
		return e.openIB(p)
	}
	e2, packet, err := eth.ParseEthernet(p.Data)
	if err != nil {
		e.counters.Malformed++
		return false
	}
	switch {
	case e.mode != RoCEv2 && e2.Type == eth.TypeRoCEv1:
		return e.openGRH(p, packet)
	case e.mode == RoCEv2 && e2.Type == eth.TypeIPv4:
		return e.openIPv4(p, packet)
	case e.mode == RoCEv2 && e2.Type == eth.TypeIPv6:
		return e.openIPv6(p, packet)
	case e.otherMode(e2.Type, packet):
		e.counters.OtherMode++
	}
	e.counters.NotForUs++
	return false
}

// otherMode reports whether a packet that is not of the port's mode is RoCE all the same.
func (e *Encap) otherMode(t eth.EtherType, b []byte) bool {
	var udp []byte
	switch t {
	case eth.TypeRoCEv1:
		return true
	case eth.TypeIPv4:
		if h, payload, err := eth.ParseIPv4(b); err == nil && h.Protocol() == eth.ProtocolUDP && !h.Fragment() {
			udp = payload
		}
	case eth.TypeIPv6:
		if h, payload, err := eth.ParseIPv6(b); err == nil && h.NextHeader() == eth.ProtocolUDP {
			udp = payload
		}
	}
	return len(udp) >= eth.UDPLen && eth.UDP(udp).DstPort() == e.port
}

func (e *Encap) openGRH(p *frame.In, b []byte) bool {
	if len(b) < ib.GRHLen {
		e.counters.Malformed++
		return false
	}
	h := ib.GRH(b[:ib.GRHLen])
	n := h.PayLen()
	if h.Version() != 6 || h.NextHeader() != ib.GRHNextHeader || n > len(b)-ib.GRHLen {
		e.counters.Malformed++
		return false
	}
	data := b[ib.GRHLen : ib.GRHLen+n]
	src, dst := h.SGID().Addr(), h.DGID().Addr()
	if !e.mine(dst) || !e.wellFormed(len(data)) {
		return false
	}
	p.Src, p.Dst, p.SrcPort = src, dst, 0
	p.TrafficClass, p.HopLimit, p.FlowLabel = h.TrafficClass(), h.HopLimit(), h.FlowLabel()
	p.IDKnown, p.ID, p.Segment, p.GRH = false, 0, 0, (*[ib.GRHLen]byte)(h)
	return e.check(p, data, ib.ICRCSeedGRH(&e.icrc, h, data[:ib.BTHLen]))
}

func (e *Encap) openIPv4(p *frame.In, b []byte) bool {
	h, payload, err := eth.ParseIPv4(b)
	if err != nil {
		e.counters.Malformed++
		return false
	}
	if h.Protocol() != eth.ProtocolUDP {
		e.counters.NotForUs++
		return false
	}
	if h.Fragment() { // RoCE packets are never fragmented
		e.counters.Malformed++
		return false
	}
	udp, data, ok := e.udp(payload, h.Dst())
	if !ok {
		return false
	}
	p.Src, p.Dst, p.SrcPort = h.Src(), h.Dst(), udp.SrcPort()
	p.TrafficClass, p.HopLimit, p.FlowLabel = h.ToS(), h.TTL(), 0
	p.IDKnown, p.ID, p.Segment, p.GRH = true, h.ID(), 0, nil
	return e.check(p, data, ib.ICRCSeedIPv4(&e.icrc, h, udp, data[:ib.BTHLen]))
}

func (e *Encap) openIPv6(p *frame.In, b []byte) bool {
	h, payload, err := eth.ParseIPv6(b)
	if err != nil {
		e.counters.Malformed++
		return false
	}
	if h.NextHeader() != eth.ProtocolUDP { // RoCE v2 has no extension headers (IBA annex A17)
		e.counters.NotForUs++
		return false
	}
	udp, data, ok := e.udp(payload, h.Dst())
	if !ok {
		return false
	}
	p.Src, p.Dst, p.SrcPort = h.Src(), h.Dst(), udp.SrcPort()
	p.TrafficClass, p.HopLimit, p.FlowLabel = h.TrafficClass(), h.HopLimit(), h.FlowLabel()
	p.IDKnown, p.ID, p.Segment, p.GRH = false, 0, 0, nil
	return e.check(p, data, ib.ICRCSeedIPv6(&e.icrc, h, udp, data[:ib.BTHLen]))
}

// udp dissects a datagram sent to dst. It does not check the checksum, which may be absent, or left for a
// device to fill in; the ICRC covers more.
func (e *Encap) udp(b []byte, dst netip.Addr) (h eth.UDP, data []byte, ok bool) {
	h, data, err := eth.ParseUDP(b)
	if err != nil {
		e.counters.Malformed++
		return nil, nil, false
	}
	if h.DstPort() != e.port {
		e.counters.NotForUs++
		return nil, nil, false
	}
	if !e.mine(dst) || !e.wellFormed(len(data)) {
		return nil, nil, false
	}
	// Bytes after the datagram would not be covered by the ICRC.
	if h.Length() != len(b) {
		e.counters.Malformed++
		return nil, nil, false
	}
	return h, data, true
}

// mine refuses and counts packets to other addresses.
func (e *Encap) mine(dst netip.Addr) bool {
	if e.local(dst) {
		return true
	}
	e.counters.NotForUs++
	return false
}

// check finishes an ICRC that was begun over the headers and the BTH of data.
func (e *Encap) check(p *frame.In, data []byte, crc uint32) bool {
	body := data[:len(data)-ib.ICRCLen]
	if ib.ICRCUpdate(crc, body[ib.BTHLen:]) != ib.ICRC(data[len(body):]) {
		e.counters.ICRCErrors++
		return false
	}
	p.Data, p.Raw = body, false
	return true
}
