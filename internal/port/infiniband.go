package port

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Numbered is a Function of an InfiniBand wire that others share: those that have no LID of their own have its LIDs, and packets without a
// global route header are told apart by the queue pairs that they are for, messages for QP1 by what they answer.
type Numbered interface {
	Function
	// HasNumber reports whether it has a queue pair of that number.
	HasNumber(qpn uint32) bool
	// Expects reports whether a message for QP1 answers or concerns one of its own.
	Expects(m []byte) bool
}

// fromFabric is Receive for an InfiniBand wire of several stations.
func (p *Port) fromFabric(now clock.Time, w *Wire, in []frame.In) {
	for len(in) > 0 {
		if g, ok := groupOf(&in[0]); ok {
			if !p.giveGroup(now, w, g, &in[0], false) {
				p.counters.Unclaimed++
			}
			in = in[1:]
			continue
		}
		x, n := w.byNumber(&in[0]), 1
		for ; n < len(in); n++ {
			if _, many := groupOf(&in[n]); many || w.byNumber(&in[n]) != x {
				break
			}
		}
		if x == nil {
			p.counters.Unclaimed += uint64(n)
		} else {
			x.station.Carried.received(in[:n], false)
			p.give(now, x, in[:n])
		}
		in = in[n:]
	}
}

// giveGroup hands a packet to every station that is attached to its group, and reports whether there is any.
func (p *Port) giveGroup(now clock.Time, w *Wire, g netip.Addr, in *frame.In, inside bool) (any bool) {
	var one [1]frame.In
	for i := range w.places {
		x := &w.places[i]
		if s := x.station; s.off || s.Attached == nil || !s.Attached(g) {
			continue
		}
		any = true
		one[0] = *in // opening consumes it
		x.station.Carried.received(one[:], inside)
		p.give(now, x, one[:])
	}
	return any
}

// attached reports whether any station takes packets to a group.
func (w *Wire) attached(g netip.Addr) bool {
	for i := range w.places {
		if s := w.places[i].station; !s.off && s.Attached != nil && s.Attached(g) {
			return true
		}
	}
	return false
}

// groupOf returns the group that a packet of an InfiniBand wire is for; ok is false if it is for one port, or has no global route header.
func groupOf(in *frame.In) (g netip.Addr, ok bool) {
	const end = ib.LRHLen + ib.GRHLen
	if len(in.Data) < end || ib.LRH(in.Data).DLID() < ib.LIDFirstMulticast || ib.LRH(in.Data).NextHeader() != ib.LNHGlobal {
		return g, false
	}
	return ib.GRH(in.Data[ib.LRHLen:end]).DGID().Addr(), true
}

// byNumber returns the place of the station that a packet to one port is for: the one with its destination GID, or else with its queue
// pair. What is nobody's is for the first station, which counts it. Subnet management packets do not come here: QP0 is the link's.
func (w *Wire) byNumber(in *frame.In) *place {
	b := in.Data
	if len(b) < ib.LRHLen+ib.BTHLen {
		return &w.places[0]
	}
	if ib.LRH(b).NextHeader() == ib.LNHGlobal {
		if len(b) < ib.LRHLen+ib.GRHLen {
			return &w.places[0]
		}
		x := w.owner(ib.GRH(b[ib.LRHLen : ib.LRHLen+ib.GRHLen]).DGID())
		if x != nil && x.station.OwnsLID != nil && !x.station.OwnsLID(ib.LRH(b).DLID()) {
			return nil // a GID at another's LID
		}
		return x
	}
	if x := w.withLID(ib.LRH(b).DLID()); x != nil {
		return x
	}
	bth := b[ib.LRHLen:]
	qpn := ib.BTH(bth).DestQP()
	if qpn == ib.QPGSI {
		if m := bth[min(ib.BTHLen+ib.DETHLen, len(bth)):]; len(m) >= mad.Len {
			return w.concerned(m[:mad.Len])
		}
		return &w.places[0]
	}
	if w.mac < len(w.places) && w.places[w.mac].has(qpn) {
		return &w.places[w.mac]
	}
	for i := range w.places {
		if w.places[i].has(qpn) {
			w.mac = i
			return &w.places[i]
		}
	}
	return &w.places[0]
}

// withLID returns the place of the station that has a LID alone; nil: the LID is that of the others.
func (w *Wire) withLID(l ib.LID) *place {
	for i := range w.places {
		if s := w.places[i].station; s.OwnsLID != nil && s.OwnsLID(l) {
			return &w.places[i]
		}
	}
	return nil
}

// has reports whether a station that shares the wire's LIDs has a queue pair of that number.
func (x *place) has(qpn ib.QPN) bool {
	n := x.station.numbered
	return n != nil && x.station.OwnsLID == nil && n.HasNumber(uint32(qpn))
}

// owner returns the place of the station with a GID; nil: nobody here has it.
func (w *Wire) owner(gid ib.GID) *place {
	for i := range w.places {
		if s := w.places[i].station; s.Owns == nil && i == 0 || s.Owns != nil && s.Owns(gid.Addr()) {
			return &w.places[i]
		}
	}
	return nil
}

// concerned returns the place of the station that a message for QP1 is for. A request for a connection names the GID that is asked;
// others answer a message of somebody, or go on with his connection.
func (w *Wire) concerned(m []byte) *place {
	if r, err := mad.ParseREQ(m); err == nil {
		if x := w.owner(r.Primary.RemoteGID); x != nil {
			return x
		}
		return &w.places[0]
	}
	for i := range w.places {
		if s := w.places[i].station; s.numbered != nil && s.OwnsLID == nil && s.numbered.Expects(m) {
			return &w.places[i]
		}
	}
	return &w.places[0]
}

// refuseManagement keeps packets of a virtual function's queue pairs from anybody's QP0 (WinOF 5.50, 4.5.3.2.2: the fabric is managed by
// physical functions).
func (p *Port) refuseManagement(from *Station, out []frame.Out) {
	for i := range out {
		o := &out[i]
		if int(o.HeadEnd)-frame.HeadRoom >= ib.BTHLen && ib.BTH(o.Head[frame.HeadRoom:]).DestQP() == ib.QPSMI {
			o.Inside = true // it does not leave
			from.Refused++
		}
	}
}
