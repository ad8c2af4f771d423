package port

import (
	"cmp"

	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// seat returns the place of the station at a port of the embedded switch that takes a frame to one station: RoCE is for an RDMA
// function with its MAC, the rest for rules of programs, then for the Ethernet function, then for programs that take what is left.
func (w *Wire) seat(at eswitch.Port, in *frame.In) *place {
	e, packet, err := eth.ParseEthernet(in.Data)
	if err != nil {
		return nil
	}
	vlan := uint16(0)
	if e.Tagged {
		vlan = e.TCI & vlanID
	}
	if w.mac < len(w.places) {
		x := &w.places[w.mac]
		if s := x.station; s.At == at && (s.Kind == RDMA || w.steered == 0) && x.takes(&e, vlan, packet) {
			return x
		}
	}
	var ruled, card, rest *place
	mine := true
	for i := range w.places {
		x := &w.places[i]
		s := x.station
		if s.At != at || s.off {
			continue
		}
		switch s.Kind {
		case RDMA:
			if x.takes(&e, vlan, packet) {
				w.mac = i
				return x
			}
			mine = mine && (s.MAC != e.Dst || !isRoCE(e.Type, packet, cmp.Or(s.UDPPort, eth.PortRoCEv2)))
		case Ethernet:
			card = x
		case Steered:
			switch {
			case s.steerer.Steers(in.Data):
				ruled = x
			case s.steerer.TakesRest():
				rest = x
			}
		}
	}
	if !mine { // RoCE in another VLAN is for no Ethernet function
		card = nil
	}
	for _, x := range [...]*place{ruled, card, rest} {
		if x != nil {
			return x
		}
	}
	return nil
}

// strays returns the place for a frame from the wire to a MAC that nobody has at the embedded switch: of programs of the physical
// function, or other adapters at the port, whose rules name it or that take what is left.
func (w *Wire) strays(in *frame.In) (x *place) {
	for i := range w.places {
		o := &w.places[i]
		s := o.station
		if s.off || s.Kind != Steered || s.At.IsVF() {
			continue
		}
		if s.steerer.Steers(in.Data) {
			return o
		}
		if x == nil && s.steerer.TakesRest() {
			x = o
		}
	}
	return x
}
