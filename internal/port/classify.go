package port

import (
	"cmp"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// group is the bit of a MAC that is set in addresses of groups (IEEE 802, 8.2.2).
const group = 1

// vlanID are the bits of a tag that hold the VLAN's identifier (IEEE 802.1Q, 9.6).
const vlanID = 0x0fff

// classify returns the place of the station that a packet of a wire with several is for; nil if there is none, or it is
// for a group.
func (w *Wire) classify(in *frame.In) *place {
	if len(w.places) == 0 {
		return nil
	}
	e, packet, err := eth.ParseEthernet(in.Data)
	if err != nil || e.Dst[0]&group != 0 {
		return nil
	}
	vlan := uint16(0)
	if e.Tagged {
		vlan = e.TCI & vlanID
	}
	if w.steered > 0 {
		if x, ok := w.before(&e, vlan, packet, in.Data); ok {
			return x
		}
	}
	if w.mac < len(w.places) {
		if x := &w.places[w.mac]; x.takes(&e, vlan, packet) {
			return x
		}
	}
	for i := range w.places {
		if x := &w.places[i]; x.takes(&e, vlan, packet) {
			w.mac = i
			return x
		}
	}
	return w.otherwise(e.Dst)
}

// otherwise returns the place for a frame that no station takes at once: RoCE to a MAC without an RDMA function that is on, or
// frames to a MAC of none. RoCE to an RDMA function in another VLAN is for nobody.
func (w *Wire) otherwise(dst eth.MAC) *place {
	var owner, curious, rest *place
	for i := range w.places {
		x := &w.places[i]
		switch s := x.station; {
		case s.off:
		case s.Kind == Steered:
			if rest == nil && s.steerer.TakesRest() {
				rest = x
			}
		case s.MAC == dst && s.Kind == RDMA:
			return w.rest(dst)
		case s.MAC == dst:
			owner = x
		case s.Promiscuous && curious == nil:
			curious = x
		}
	}
	switch {
	case owner != nil:
		return owner
	case curious != nil:
		return curious
	}
	return rest
}

// takes reports whether a frame is for a station.
func (x *place) takes(e *eth.Ethernet, vlan uint16, packet []byte) bool {
	s := x.station
	if s.MAC != e.Dst || s.off {
		return false
	}
	roce := isRoCE(e.Type, packet, cmp.Or(s.UDPPort, eth.PortRoCEv2))
	return s.Kind == Ethernet && !roce || s.Kind == RDMA && s.VLAN == vlan && roce
}

// joins reports whether a station takes a frame to a group: one of its kind, or any if the wire has stations of one kind that are on.
func (w *Wire) joins(x *place, in *frame.In) bool {
	only := true
	for i := range w.places {
		s := w.places[i].station
		only = only && (s.Kind == x.station.Kind || s.off)
	}
	if only {
		return true
	}
	e, packet, err := eth.ParseEthernet(in.Data)
	roce := err == nil && isRoCE(e.Type, packet, cmp.Or(x.station.UDPPort, eth.PortRoCEv2))
	return roce == (x.station.Kind == RDMA)
}

// apart reports whether a frame to a group is of another VLAN than a station's.
func (w *Wire) apart(s *Station, in *frame.In) bool {
	if s.Kind != RDMA || w.InfiniBand {
		return false
	}
	e, _, err := eth.ParseEthernet(in.Data)
	if err != nil {
		return false // its encapsulation counts it
	}
	vlan := uint16(0)
	if e.Tagged {
		vlan = e.TCI & vlanID
	}
	return vlan != s.VLAN
}

// isRoCE reports whether a frame carries RoCE: its own EtherType (IBA annex A16), or UDP to a port (annex A17). A
// fragment is none.
func isRoCE(t eth.EtherType, packet []byte, port uint16) bool {
	var udp []byte
	switch t {
	case eth.TypeRoCEv1:
		return true
	case eth.TypeIPv4:
		h, data, err := eth.ParseIPv4(packet)
		if err != nil || h.Protocol() != eth.ProtocolUDP || h.Fragment() {
			return false
		}
		udp = data
	case eth.TypeIPv6:
		h, data, err := eth.ParseIPv6(packet)
		if err != nil || h.NextHeader() != eth.ProtocolUDP {
			return false
		}
		udp = data
	}
	return len(udp) >= eth.UDPLen && eth.UDP(udp).DstPort() == port
}
