package eswitch

import (
	"math/bits"

	"github.com/softvpi/softvpi/wire/eth"
)

// Delivery is a port that gets a frame.
type Delivery struct {
	To  Port
	Tag Tag
	TCI uint16 // of a tag that is put in or replaced
	// Redirected says that it is DHCP of virtual functions that comes here in place of its destination.
	Redirected bool
}

const (
	groupBit  = 1 << 40 // of an address as a number
	broadcast = 1<<48 - 1
)

// Forward adds to list where a frame goes that a port sends, and allocates nothing while list has room. A frame never goes back to the
// port that sent it. It returns why a frame goes nowhere.
func (s *Switch) Forward(from Port, frame []byte, list []Delivery) ([]Delivery, Reason) {
	return s.forward(from, frame, len(frame), false, list)
}

// forward is Forward for a frame of size bytes that begins with head. made is as in Recent.
func (s *Switch) forward(from Port, head []byte, size int, made bool, list []Delivery) ([]Delivery, Reason) {
	if int(from) >= mostPorts || s.ports[from] == nil {
		return list, NoPort
	}
	o, n := s.ports[from], len(list)
	var h header
	why := s.admit(from, o, &h, head, made)
	if why == 0 {
		list, why = s.deliver(from, o, &h, head, size, made, list)
	}
	if why == 0 || s.cfg.CountSpoofed && (why == SourceMAC || why == EtherType) {
		o.counters.In.count(size)
	}
	if why != 0 {
		o.counters.Dropped[why]++
		return list[:n], why
	}
	return list, 0
}

// admit returns why the switch does not take a frame from a port; 0: it does.
func (s *Switch) admit(from Port, o *port, h *header, frame []byte, made bool) Reason {
	switch {
	case !s.up.Has(from):
		return NoPort
	case !h.parse(frame):
		return Malformed
	case s.blocked.Has(from):
		return Blocked
	}
	if from.IsVF() && !made {
		if why := s.guard(o, h); why != 0 {
			return why
		}
	}
	switch {
	case h.src&groupBit != 0:
		return Malformed
	case h.of == eth.TypeMACControl && from != PF:
		return Control
	case h.of == eth.TypeMACControl: // it is about the link, not about a VLAN
		return 0
	case from == Wire:
		if h.tagged {
			h.vid = h.tci & eth.VIDMask
		}
		return 0
	case !h.enter(&o.VLAN):
		return WrongVLAN
	}
	return 0
}

// deliver finds the ports that get a frame.
func (s *Switch) deliver(from Port, o *port, h *header, head []byte, size int, made bool,
	list []Delivery) ([]Delivery, Reason) {
	to, why := s.destinations(from, h)
	if why != 0 {
		return list, why
	}
	redirected := s.cfg.RedirectDHCP && !made && from != PF && isDHCP(h, head) && s.redirect(from, &to)
	if redirected {
		o.counters.Redirected++
	}
	n := len(list)
	s.held = false
	for i, word := range to {
		for word &= s.up[i]; word != 0; word &= word - 1 {
			list = s.to(Port(i<<6+bits.TrailingZeros64(word)), h, size, redirected, list)
		}
	}
	switch {
	case len(list) > n:
		return list, 0
	case s.held:
		return list, Blocked
	case redirected:
		return list, Unheard
	}
	return list, Nobody
}

// to adds a port that is in the frame's VLAN.
func (s *Switch) to(p Port, h *header, n int, redirected bool, list []Delivery) []Delivery {
	o, v := s.ports[p], (*VLAN)(nil)
	if p != Wire {
		if v = &o.VLAN; !v.has(h.vid) {
			return list
		}
	}
	if s.blocked.Has(p) {
		o.counters.Held++
		s.held = true
		return list
	}
	tag, tci := h.leave(v)
	switch tag {
	case Insert:
		n += eth.VLANLen
	case Strip:
		n -= eth.VLANLen
	}
	o.counters.Out.count(n)
	return append(list, Delivery{To: p, Tag: tag, TCI: tci, Redirected: redirected && p == PF})
}

// destinations returns the ports that want a frame if they are in its VLAN and their link is up.
func (s *Switch) destinations(from Port, h *header) (to Set, why Reason) {
	wire := from != Wire
	switch {
	case h.of == eth.TypeMACControl: // the physical function's, for the other end of the wire
		to.Add(Wire)
		return to, 0
	case h.dst == broadcast:
		for i := range to {
			to[i] = s.up[i]
		}
	case h.dst&groupBit != 0:
		to = s.hearing
		g := s.groups[h.dst]
		for i := range to {
			if to[i] |= s.allGroups[i]; g != nil {
				to[i] |= g[i]
			}
		}
	default:
		to = s.hearing
		for _, p := range s.stations[h.dst] {
			if !s.ports[p].VLAN.has(h.vid) {
				continue
			}
			if p == from {
				return to, ToItself
			}
			to.Add(p)
			wire = false
		}
	}
	to.put(Wire, wire)
	to.Drop(from)
	return to, 0
}
