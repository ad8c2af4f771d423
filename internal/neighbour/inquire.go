package neighbour

import "github.com/softvpi/softvpi/wire/eth"

// Inquire appends the answer to a question that a host beside the stations asks, at a function of their own port: its frames do not come
// back from the wire. nil: it is none for an address of a station, or its asker has that too. Nothing is learned from it, so that who
// shares the port with a station changes nothing of what that knows. The answer goes to who has sent the question, whatever that says.
func (e *Engine) Inquire(b, frame []byte) []byte {
	h, body, err := eth.ParseEthernet(frame)
	if err != nil || !station(h.Src) {
		return nil
	}
	vlan := uint16(0)
	if h.Tagged {
		vlan = h.TCI & eth.VIDMask
	}
	switch h.Type {
	case eth.TypeARP:
		return e.inquireARP(b, &h, vlan, body)
	case eth.TypeIPv6:
		return e.inquireIPv6(b, &h, vlan, body)
	}
	return nil
}

// to begins the answer of a station's MAC; nil: the asker has that.
func (h answered) to(b []byte, mac eth.MAC) []byte {
	if mac == h.Src {
		return nil
	}
	a := eth.Ethernet{Dst: h.Src, Src: mac, Tagged: h.Tagged, TCI: h.TCI & eth.VIDMask, Type: h.Type}
	return a.Append(b)
}

// answered is the header of a question.
type answered struct{ *eth.Ethernet }

func (e *Engine) inquireARP(b []byte, h *eth.Ethernet, vlan uint16, body []byte) []byte {
	a, err := eth.ParseARP(body)
	if err != nil || a.Operation != eth.ARPRequest {
		return nil
	}
	mac, mine := e.own[Key{vlan, a.TargetIP}]
	if !mine {
		return nil
	}
	if b = (answered{h}).to(b, mac); b == nil {
		return nil
	}
	e.counters.Answered++
	r := eth.ARP{Operation: eth.ARPReply, SenderMAC: mac, SenderIP: a.TargetIP, TargetMAC: h.Src, TargetIP: a.SenderIP}
	return r.Append(b)
}

// inquireIPv6 leaves out who checks whether an address is taken (RFC 4862 5.4.3): the answer would be for everybody.
func (e *Engine) inquireIPv6(b []byte, h *eth.Ethernet, vlan uint16, body []byte) []byte {
	p, payload, err := eth.ParseIPv6(body)
	if err != nil || !eth.IsDiscovery(p, payload) || p.Src().IsUnspecified() {
		return nil
	}
	d, err := eth.ParseDiscovery(payload, p.Src(), p.Dst(), p.HopLimit())
	if err != nil || d.Advertisement {
		return nil
	}
	mac, mine := e.own[Key{vlan, d.Target}]
	if !mine {
		return nil
	}
	if b = (answered{h}).to(b, mac); b == nil {
		return nil
	}
	e.counters.Answered++
	r := eth.Discovery{Advertisement: true, Solicited: true, Override: true, Target: d.Target, Link: mac[:]}
	return r.AppendPacket(b, d.Target, p.Src())
}
