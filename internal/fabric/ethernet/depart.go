package ethernet

import "github.com/softvpi/softvpi/internal/clock"

// departs takes what leaves a node.
func (f *Fabric) departs(now clock.Time, x *node, i int) {
	s := x.Switch
	for s.taken < len(s.out) {
		d := s.out[s.taken]
		s.taken++
		if way := x.ways[d.Port]; way >= 0 && x.loss == nil { // as nearly always
			f.push(way, d.At, d.Frame)
		} else {
			f.depart(now, x, i, d)
		}
	}
	s.out, s.taken = s.out[:0], 0
}

// depart takes a frame that leaves a node, by whatever port.
func (f *Fabric) depart(now clock.Time, x *node, i int, d Departure) {
	to, lane := x.Peers[d.Port], x.ways[d.Port]
	if x.station != nil && d.Port == x.station.host && f.Deliver != nil {
		if to, lane = (End{i, d.Port}), x.lane+int32(d.Port); d.At <= now {
			f.Deliver(now, to, d.Frame)
			return
		}
	}
	switch {
	case x.loss != nil && f.lose(x, d.Port):
		if to.Node < 0 {
			to = End{i, d.Port}
		}
		f.port(to).dropped.Lost++
		f.Store.Drop(d.Frame)
	case to.Node >= 0:
		f.push(lane, d.At, d.Frame)
	case f.Away != nil:
		f.Away(d.At, End{i, d.Port}, d.Frame)
	default: // nobody is there
		f.Store.Drop(d.Frame)
	}
}
