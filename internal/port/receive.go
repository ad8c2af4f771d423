package port

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// Receive passes on what the link of a wire has received: it opens the packets and hands them to their functions.
func (p *Port) Receive(now clock.Time, w *Wire, in []frame.In) {
	if w.flow != nil {
		if in = p.toFlow(now, w, in); len(in) == 0 {
			return
		}
	}
	p.arrived(w, in)
	if w.steered > 0 {
		w.sniff(now, in)
	}
	if w.agent != nil {
		if in = p.toAgent(now, w, in); len(in) == 0 {
			return
		}
	}
	if w.embedded != nil {
		p.fromWire(now, w, in)
		return
	}
	if w.steered == 0 && len(w.places) == 1 {
		w.places[0].station.Carried.received(in, false)
		p.give(now, &w.places[0], in)
		return
	}
	if w.InfiniBand {
		p.fromFabric(now, w, in)
		return
	}
	for len(in) > 0 {
		x := w.classify(&in[0])
		n, many := 1, multicast(&in[0])
		for n < len(in) && w.classify(&in[n]) == x && multicast(&in[n]) == many {
			n++
		}
		switch {
		case x != nil:
			x.station.Carried.received(in[:n], false)
			p.give(now, x, in[:n])
		case many:
			p.giveAll(now, w, nil, nil, in[:n], false)
		default:
			p.counters.Unclaimed += uint64(n)
		}
		in = in[n:]
	}
}

// toAgent gives the wire's Agent its frames, and returns the others. They are rare: a frame to a group is the first sign of one.
func (p *Port) toAgent(now clock.Time, w *Wire, in []frame.In) []frame.In {
	s, kept := w.agent.station, 0
	for i := range in {
		if b := in[i].Data; len(b) >= eth.EthernetLen && b[0]&group != 0 && s.taker.Takes(b) && !in[i].BadFCS {
			p.give(now, w.agent, in[i:i+1])
			continue
		}
		if kept < i {
			in[kept] = in[i]
		}
		kept++
	}
	return in[:kept]
}

// give opens packets for one station and hands them to its function, in parts: after each part the function knows where
// the payload of the next packets goes, and they are copied there as they are opened.
func (p *Port) give(now clock.Time, x *place, in []frame.In) {
	s := x.station
	if s.off {
		p.counters.Unclaimed += uint64(len(in))
		return
	}
	if s.cut {
		p.counters.Dark += uint64(len(in))
		return
	}
	s.bell.Ring()
	if s.waiter != nil && (p.backlog.mode.Timeout != 0 || p.backlog.n > 0) {
		p.offer(now, x, in)
		return
	}
	if x.encap == nil {
		p.counters.Received += uint64(len(in))
		s.function.Receive(now, in)
		return
	}
	x.encap.Tick(now)
	for len(in) > 0 {
		n, next := len(in), (*frame.Next)(nil)
		if s.placer != nil {
			var ok bool
			if n, ok = s.placer.Place(&p.next, in); ok {
				next = &p.next
			}
		}
		if good := x.encap.OpenNext(in[:n], next); good > 0 {
			p.counters.Received += uint64(good)
			s.function.Receive(now, in[:good])
		}
		in = in[n:]
	}
	p.next.Memory = nil
}

// giveAll hands frames to a group to every station on the wire but one, of those at the ports to of its switch. Opening consumes
// a frame, so each gets its own.
// RoCE is for RDMA functions, if there are any, and everything else for Ethernet functions, if there are any.
func (p *Port) giveAll(now clock.Time, w *Wire, to *eswitch.Set, but *Station, in []frame.In, inside bool) {
	var copies [16]frame.In
	for len(in) > 0 {
		n := min(len(in), len(copies))
		for i := range w.places {
			x := &w.places[i]
			if x.station == but || x.station.off || to != nil && !to.Has(x.station.At) {
				continue
			}
			k := 0
			for j := range in[:n] {
				if w.joins(x, &in[j]) && !w.apart(x.station, &in[j]) {
					copies[k] = in[j]
					k++
				}
			}
			if k > 0 {
				if x.station.Kind != Steered || !w.hasCard(x.station.MAC) { // an adapter counts it once
					x.station.Carried.received(copies[:k], inside)
				}
				p.giveBare(now, x, copies[:k])
			}
		}
		in = in[n:]
	}
}

// hasCard reports whether an Ethernet station that is on has a MAC.
func (w *Wire) hasCard(mac eth.MAC) bool {
	for i := range w.places {
		if s := w.places[i].station; s.Kind == Ethernet && !s.off && s.MAC == mac {
			return true
		}
	}
	return false
}
