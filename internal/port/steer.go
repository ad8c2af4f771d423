package port

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// before returns the place for a frame to one station that a rule takes; ok is false if none does. RoCE to an RDMA function is
// for no rule.
func (w *Wire) before(e *eth.Ethernet, vlan uint16, packet, b []byte) (x *place, ok bool) {
	x = w.steeredBy(b)
	if x == nil {
		return nil, false
	}
	for i := range w.places {
		if o := &w.places[i]; o.station.Kind == RDMA && o.takes(e, vlan, packet) {
			return o, true
		}
	}
	return x, true
}

// steeredBy returns the place whose rules take a frame that begins with head.
func (w *Wire) steeredBy(head []byte) *place {
	if w.steered == 0 {
		return nil
	}
	for i := range w.places {
		if x := &w.places[i]; x.station.Kind == Steered && !x.station.off && x.station.steerer.Steers(head) {
			return x
		}
	}
	return nil
}

// named reports whether a rule that names the destination of a frame takes it. Rules that do not are for what arrives: what is sent
// to somebody else leaves.
func (w *Wire) named(head []byte) bool {
	if w.steered == 0 {
		return false
	}
	for i := range w.places {
		if s := w.places[i].station; s.Kind == Steered && !s.off && s.steerer.Names(head) {
			return true
		}
	}
	return false
}

// rest returns the place for a frame to the MAC of an RDMA function that is not for it.
func (w *Wire) rest(dst eth.MAC) *place {
	for i := range w.places {
		if x := &w.places[i]; x.station.Kind == Steered && x.station.MAC == dst && x.station.steerer.TakesRest() {
			return x
		}
	}
	return nil
}

// sniff shows received frames to those who see all.
func (w *Wire) sniff(now clock.Time, in []frame.In) {
	for i := range w.places {
		s := w.places[i].station
		if s.Kind != Steered || s.off || s.cut || !s.steerer.Sniffs() {
			continue
		}
		for j := range in {
			if !in[j].BadFCS {
				s.steerer.Sniff(now, in[j].Data)
			}
		}
	}
}

// sniffSent shows frames that leave to those who see all.
func (p *Port) sniffSent(now clock.Time, w *Wire, out []frame.Out) {
	for i := range w.places {
		s := w.places[i].station
		if s.Kind != Steered || s.off || s.cut || !s.steerer.Sniffs() {
			continue
		}
		for j := range out {
			o := &out[j]
			p.shown = append(p.shown[:0], o.Head[o.HeadStart:o.HeadEnd]...)
			p.shown = append(p.shown, o.Payload...)
			p.shown = append(p.shown, o.Tail[:o.TailLen]...)
			s.steerer.Sniff(now, p.shown)
		}
	}
}
