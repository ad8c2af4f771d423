package eswitch

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// compared is how much of frames is the same if they go the same way: addresses, type, and with a tag that and a type.
const compared = eth.EthernetLen + eth.VLANLen

// Recent remembers where the last frame went that one port sent, or several did: frames come in runs. The zero value remembers none.
type Recent struct {
	from    Port
	version uint64
	head    [compared]byte
	list    []Delivery // kept for its memory; none: nothing is remembered

	// Made says that the adapter itself has made the frames' headers, of RoCE: there is nothing that a function could have forged, and
	// none is DHCP, each of which would have to be looked at.
	Made bool
	// To are the ports that get the frame, and Wire says whether the wire does.
	To   Set
	Wire bool
	// Only is the port that gets it if To has no other; else it is Wire.
	Only Port
}

// Follow is Forward for a frame of size bytes that begins with head, which has its headers up to the UDP ports at least. It leaves
// where the frame goes in r, with the tag that it has: none of the ports may have a VLAN that it knows nothing of.
func (s *Switch) Follow(from Port, head []byte, size int, r *Recent) Reason {
	if r.again(s, from, head) {
		s.recount(r, size)
		return 0
	}
	list, why := s.forward(from, head, size, r.Made, r.list[:0])
	if r.list = list; why != 0 {
		r.list = r.list[:0]
		return why
	}
	r.To, r.Wire, r.Only = Set{}, false, Wire
	for i := range list {
		if list[i].To == Wire {
			r.Wire = true
			continue
		}
		r.To.Add(list[i].To)
		r.Only = list[i].To
	}
	if r.To.Len() > 1 {
		r.Only = Wire
	}
	if s.cfg.RedirectDHCP && !r.Made || len(head) < compared || s.held {
		r.list = r.list[:0] // the next of the kind may be DHCP, or this one no better, or a blocked port counts each
		return 0
	}
	r.from, r.version = from, s.version
	copy(r.head[:], head)
	return 0
}

// again reports whether a frame goes where the last one went.
func (r *Recent) again(s *Switch, from Port, head []byte) bool {
	if len(r.list) == 0 || r.from != from || r.version != s.version || len(head) < compared {
		return false
	}
	const tag = eth.EthernetLen - 2
	if [eth.EthernetLen]byte(head) != [eth.EthernetLen]byte(r.head[:]) {
		return false
	}
	return eth.EtherType(binary.BigEndian.Uint16(head[tag:])) != eth.TypeVLAN || [eth.VLANLen]byte(head[eth.EthernetLen:]) ==
		[eth.VLANLen]byte(r.head[eth.EthernetLen:])
}

// recount counts one more frame on its way.
func (s *Switch) recount(r *Recent, size int) {
	s.ports[r.from].counters.In.count(size)
	for i := range r.list {
		s.ports[r.list[i].To].counters.Out.count(size)
	}
}

// Admit reports why a port may not send a frame, whoever it is for, and counts it if so; 0: it may. made is as in
// Recent.
func (s *Switch) Admit(from Port, head []byte, made bool) Reason {
	if int(from) >= mostPorts || s.ports[from] == nil {
		return NoPort
	}
	var h header
	why := s.admit(from, s.ports[from], &h, head, made)
	if why != 0 {
		s.ports[from].counters.Dropped[why]++
	}
	return why
}

// Refuse counts a frame that a port sent, and that goes nowhere for a reason which the switch does not know.
func (s *Switch) Refuse(p Port, why Reason) {
	if c := s.Counters(p); c != nil && why < reasons {
		c.Dropped[why]++
	}
}

// RedirectsDHCP reports whether DHCP of virtual functions goes to the physical function.
func (s *Switch) RedirectsDHCP() bool { return s.cfg.RedirectDHCP }

// Inside reports whether frames that a port sends to a MAC of one station in a VLAN, 0: without one, go to ports of the switch alone.
func (s *Switch) Inside(from Port, dst eth.MAC, vlan uint16) bool {
	for _, p := range s.stations[number(dst[:])] {
		if p != from && s.up.Has(p) && s.ports[p].VLAN.has(vlan) {
			return true
		}
	}
	return false
}
