package port

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// macsLen is where a frame's VLAN tag is.
	macsLen = 12
	// looked is how much of a frame the switch looks at: headers up to UDP's ports, with a tag and the longest of IPv4.
	looked = eth.EthernetLen + eth.VLANLen + 60 + 4
)

// embedded is the switch between a wire and the functions there (WinOF-2 24.4, Single Root I/O Virtualization). A Station's At says at
// which of its ports it is.
type embedded struct {
	*eswitch.Switch
	made, sent, arrived eswitch.Recent
	head                []byte      // the beginning of a frame that is in pieces
	bare                []byte      // a frame without its tag
	one                 [1]frame.In // which that is
}

// Embed puts a switch between a wire and its stations, whose At have to be ports of it; nil takes it away.
func (w *Wire) Embed(s *eswitch.Switch) {
	w.embedded = nil
	if s != nil {
		w.embedded = &embedded{Switch: s}
		w.embedded.made.Made = true
	}
}

// switched sends a station's packets, sealed for a wire, where the embedded switch says. What is not for the wire does not leave.
func (p *Port) switched(now clock.Time, w *Wire, s *Station, out []frame.Out) {
	e := w.embedded
	if w.overlays(s) != nil {
		p.tunnelled(now, w, s, out)
		return
	}
	for i := 0; i < len(out); i++ {
		o := &out[i]
		if s.Tag != 0 && s.Kind != RDMA && !addTag(o, s.Tag) {
			e.Refuse(s.At, eswitch.WrongVLAN)
			o.Inside = true
			continue
		}
		if o.HeadEnd-o.HeadStart >= eth.EthernetLen && eth.MAC(o.Head[o.HeadStart:]) == s.MAC {
			p.toItself(w, s, o)
			continue
		}
		r, why := e.follow(s, o)
		if why != 0 {
			o.Inside = true // nobody gets it
			s.refused(why)
			continue
		}
		if n := p.switchedStraight(now, w, s, r, out[i:]); n > 0 {
			i += n - 1
			continue
		}
		p.pass(w, s, o, r)
	}
}

// refused notes why the switch has refused a frame.
func (s *Station) refused(why eswitch.Reason) {
	if why == eswitch.SourceMAC || why == eswitch.EtherType {
		s.spoofed++
	}
}

// follow asks the switch where a station's frame goes.
func (e *embedded) follow(s *Station, o *frame.Out) (*eswitch.Recent, eswitch.Reason) {
	r, head := &e.sent, o.Head[o.HeadStart:o.HeadEnd]
	if s.Kind == RDMA {
		r = &e.made
	} else if len(head) < looked && len(o.Payload) > 0 && e.RedirectsDHCP() {
		e.head = append(append(e.head[:0], head...), o.Payload[:min(len(o.Payload), looked)]...)
		head = e.head
	}
	return r, e.Follow(s.At, head, o.Len(), r)
}

// pass sends a frame where the switch has said, and counts it.
func (p *Port) pass(w *Wire, s *Station, o *frame.Out, r *eswitch.Recent) {
	to, only := r.To, r.Only
	switch head := o.Head[o.HeadStart:o.HeadEnd]; {
	case head[0]&group != 0:
		o.Inside, only = !r.Wire, eswitch.Wire
		to.Add(s.At) // its other stations may be in the group
	case r.Wire && s.Kind != RDMA && w.named(head): // a rule of a program takes what nobody at the port has
		o.Inside = true
	default:
		o.Inside = !r.Wire
		if to.Empty() {
			s.Carried.sentOne(o)
			return
		}
	}
	s.Carried.sentOne(o)
	p.turnTo(w, s, o, to, only)
}

// turnTo keeps a frame for ports of the switch.
func (p *Port) turnTo(w *Wire, s *Station, o *frame.Out, to eswitch.Set, only eswitch.Port) {
	t := &p.turned
	if !t.add(w, s, o) {
		p.counters.TurnedLost++
		return
	}
	p.counters.Turned++
	f := &t.frames[t.n-1]
	f.switched, f.to, f.only = true, to, only
}

// toItself sends a frame to the sender's own MAC: to another station that has it, as without a switch, else by the link.
func (p *Port) toItself(w *Wire, s *Station, o *frame.Out) {
	head := o.Head[o.HeadStart:o.HeadEnd]
	if why := w.embedded.Admit(s.At, head, s.Kind == RDMA); why != 0 {
		o.Inside = true
		s.refused(why)
		return
	}
	o.Inside = w.other(s, s.MAC) || s.Kind != RDMA && w.named(head)
	s.Carried.sentOne(o)
	if o.Inside {
		var to eswitch.Set
		to.Add(s.At)
		p.turnTo(w, s, o, to, s.At)
	}
}

// switchedStraight hands frames of a Steered station to the rules of one port straight, as straight does, and returns how many. The
// switch has said of the first where it goes.
func (p *Port) switchedStraight(now clock.Time, w *Wire, s *Station, r *eswitch.Recent, out []frame.Out) int {
	e, n := w.embedded, 0
	if s.Kind != Steered || r.Only == eswitch.Wire || r.Wire || p.turned.waiting() || e.RedirectsDHCP() {
		return 0
	}
	for i := range w.places {
		to := w.places[i].station
		if to.At != r.Only || to.Kind != Steered || to.off || to.cut {
			continue
		}
		if n == 0 {
			n = sameWay(out[:w.plain(s, out)])
		}
		if k := to.steerer.Turn(now, out[:n]); k > 0 {
			for j := range out[:k] {
				o := &out[j]
				o.Inside = true
				s.Carried.sentOne(o)
				if j > 0 {
					e.Follow(s.At, o.Head[o.HeadStart:o.HeadEnd], o.Len(), r) // as the first one
				}
			}
			to.Carried.handed(out[:k])
			p.counters.Turned += uint64(k)
			p.counters.Received += uint64(k)
			return k
		}
	}
	return 0
}

// sameWay returns how many frames at the front of out have the same addresses, type and tag.
func sameWay(out []frame.Out) int {
	const compared = eth.EthernetLen + eth.VLANLen
	for i := range out {
		o := &out[i]
		if o.HeadEnd-o.HeadStart < compared {
			return i
		}
		a, b := out[0].Head[out[0].HeadStart:], o.Head[o.HeadStart:]
		if [eth.EthernetLen]byte(a) != [eth.EthernetLen]byte(b) ||
			tagged(b) && [eth.VLANLen]byte(a[eth.EthernetLen:]) != [eth.VLANLen]byte(b[eth.EthernetLen:]) {
			return i
		}
	}
	return len(out)
}

// fromWire hands what a wire has brought to the stations that the embedded switch says.
func (p *Port) fromWire(now clock.Time, w *Wire, in []frame.In) {
	e := w.embedded
	var x *place
	begin := 0
	for i := range in {
		f := &in[i]
		why := e.Follow(eswitch.Wire, f.Data, len(f.Data), &e.arrived)
		one := why == 0 && e.arrived.Only != eswitch.Wire && !multicast(f)
		var y *place
		switch {
		case one:
			y = w.seat(e.arrived.Only, f)
		case why == eswitch.Nobody && !multicast(f):
			y, one = w.strays(f), true
		}
		if one && x != nil && y == x {
			continue
		}
		p.hand(now, x, in[begin:i], false)
		x, begin = y, i
		if y != nil {
			continue
		}
		if begin = i + 1; one || why != 0 {
			p.counters.Unclaimed++
			continue
		}
		if multicast(f) {
			p.giveAll(now, w, &e.arrived.To, nil, in[i:i+1], false)
		} else {
			p.giveEach(now, w, &e.arrived.To, in[i:i+1], false)
		}
	}
	p.hand(now, x, in[begin:], false)
}

// giveEach gives a frame for one station to the stations at several ports, of those too who see all. Opening consumes a frame, so each
// gets its own.
func (p *Port) giveEach(now clock.Time, w *Wire, to *eswitch.Set, in []frame.In, inside bool) {
	for at := range to.Each {
		each := [1]frame.In{in[0]}
		if x := w.seat(at, &each[0]); x != nil {
			p.hand(now, x, each[:], inside)
		}
	}
}

// hand counts frames for a station and gives them to it.
func (p *Port) hand(now clock.Time, x *place, in []frame.In, inside bool) {
	if x == nil || len(in) == 0 {
		return
	}
	x.station.Carried.received(in, inside)
	p.giveBare(now, x, in)
}

// giveBare gives frames to a station, without the tag of its VLAN if that is none of its function's business.
func (p *Port) giveBare(now clock.Time, x *place, in []frame.In) {
	s := x.station
	if s.Tag == 0 || s.Kind == RDMA || len(s.wires) == 0 || s.wires[0].embedded == nil {
		p.give(now, x, in)
		return
	}
	e := s.wires[0].embedded
	for i := range in {
		b := in[i].Data
		e.one[0] = in[i]
		if tagged(b) && len(b) >= eth.EthernetLen+eth.VLANLen {
			e.bare = append(append(e.bare[:0], b[:macsLen]...), b[macsLen+eth.VLANLen:]...)
			e.one[0].Data = e.bare
		}
		p.give(now, x, e.one[:])
	}
}

// deliverSwitched delivers the turned frame that was given last, of which the switch has said where it goes, and those behind it that
// go to the same station.
func (p *Port) deliverSwitched(now clock.Time, f *insideFrame, end int) {
	t := &p.turned
	switch {
	case f.only != eswitch.Wire:
	case multicast(&t.in[0]):
		p.giveSwitched(now, f)
		return
	case f.to.Empty(): // for a rule
		p.hand(now, f.wire.steeredBy(f.data), t.in[:1], true)
		return
	default:
		p.giveEach(now, f.wire, &f.to, t.in[:1], true)
		return
	}
	w, n := f.wire, 1
	x := w.seat(f.only, &t.in[0])
	for ; n < len(t.in) && t.given < end; n++ {
		next := &t.frames[t.given]
		if !next.switched || next.wire != w || next.only != f.only {
			break
		}
		t.in[n] = frame.In{Data: next.data, Raw: true, Task: next.task}
		if multicast(&t.in[n]) || w.seat(f.only, &t.in[n]) != x {
			break
		}
		t.given++
	}
	if x == nil {
		p.counters.Unclaimed += uint64(n)
		return
	}
	p.hand(now, x, t.in[:n], true)
}

// giveSwitched gives a frame to a group to those at the ports that get it.
func (p *Port) giveSwitched(now clock.Time, f *insideFrame) {
	if f.from.Kind != Steered {
		p.giveAll(now, f.wire, &f.to, f.from, p.turned.in[:1], true)
		return
	}
	f.from.steerer.SentBy(f.route) // it may take what it sends to groups itself
	p.giveAll(now, f.wire, &f.to, nil, p.turned.in[:1], true)
	f.from.steerer.SentBy(nil)
}

// tagged reports whether a frame has a VLAN tag.
func tagged(b []byte) bool {
	return eth.EtherType(binary.BigEndian.Uint16(b[macsLen:])) == eth.TypeVLAN
}

// addTag puts a frame into a VLAN of which its function knows nothing; false: it has a tag of its own. One that is only a priority is
// none.
func addTag(o *frame.Out, tci uint16) bool {
	b := o.Head[o.HeadStart:o.HeadEnd]
	if len(b) < eth.EthernetLen || o.HeadStart < eth.VLANLen {
		return false
	}
	o.Staged = nil
	if tagged(b) {
		if len(b) < eth.EthernetLen+eth.VLANLen {
			return false
		}
		own := binary.BigEndian.Uint16(b[eth.EthernetLen:])
		binary.BigEndian.PutUint16(b[eth.EthernetLen:], own|tci&eth.VIDMask) // with its own priority
		return own&eth.VIDMask == 0
	}
	o.HeadStart -= eth.VLANLen
	b = o.Head[o.HeadStart:o.HeadEnd]
	copy(b, b[eth.VLANLen:][:macsLen])
	binary.BigEndian.PutUint16(b[macsLen:], uint16(eth.TypeVLAN))
	binary.BigEndian.PutUint16(b[macsLen+2:], tci)
	return true
}
