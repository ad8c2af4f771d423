package transport

import (
	"bytes"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// reorderSpan is how far ahead of the expected PSN a packet may be and still be kept: twice the
	// largest window, which is how far a requester continues past a gap. A power of two.
	reorderSpan = 1024
	// earlyReach is the longest gap behind which a packet is kept: more missing packets in a row are rare
	// where single ones are lost, and what overruns a receive buffer is better sent again in order.
	earlyReach = 8
	// earlyLife is how long packets are kept for the one that is missing.
	earlyLife = longestPause
	// maxEarly limits the packets that an engine keeps for all its QPs: about 8 MB with path MTU 4096.
	maxEarly = 2048
	// earlyHead is room for the headers of a kept packet.
	earlyHead = 64
)

// reorder holds the packets of sends and writes that arrived early because one before them is lost or
// late. They are carried out in order when their turn has come, as if they had arrived then: to the
// requester they were just longer in transit (IBA 9.7.4.1 forbids a responder to carry out packets out of
// order, but leaves open what it does with them). So a lost packet costs one packet and not all behind it.
//
// Whoever can forge the peer's addresses but does not know the expected PSN must not gain from the
// reorderSpan PSNs for which something may be kept, instead of one. Therefore
//
//   - a packet that arrives at its turn is carried out itself, whatever is kept for its PSN;
//   - if two packets differ that arrive early for one PSN, neither is kept;
//   - a packet is kept only if few are missing before it, and not for long;
//   - kept packets are carried out only when a packet that is ahead, too, directly follows one that knows
//     where the stream is: the one expected before them, or its repetition. A requester that has not sent
//     yet what is kept here does not skip it, and one that repeats a lost packet goes on with something
//     new, or with the last packet in flight (see selective);
//   - a packet that arrived after the one behind it is not carried out but sent again: it may stand in the
//     place of one that was lost.
//
// So to have a packet carried out before its turn somebody must forge two: one a few PSNs from the end of
// the stream, and another that arrives between the genuine packet before the first and the genuine one
// with its PSN, as the next request of all. At that time a single packet with this PSN would do, here and
// at a responder that keeps nothing; and whoever tries many PSNs is next with the wrong one. Where packets
// are lost the second may be genuine, and the first must stand for a lost one: few of the few PSNs.
// TestForgedCost compares.
type reorder struct {
	slots *earlySlots // by PSN; nil while there are none
	since clock.Time  // when the first of them arrived
	edge  ib.PSN      // after the last kept packet
	count uint16
	exact bool // the last request had the PSN that was expected, or repeated the one before
}

type earlySlots [reorderSpan]*early

// early is a packet that is kept.
type early struct {
	op         ib.Opcode
	bth        ib.BTH
	rest, data []byte
	memory     []byte
	named      uint32 // XRC: the SRQ
	serial     uint64 // order of arrival
	next       *early // next in the list of those carried out
}

// earlyPool is what an engine keeps early packets in; it grows only when there are more of them than ever
// before.
type earlyPool struct {
	packets pool[early]
	slots   pool[earlySlots]
	used    int
	serial  uint64 // of the last packet
}

// keepEarly keeps an early packet if it can be of use and there is room.
func (q *QP) keepEarly(op ib.Opcode, bth ib.BTH, rest, data []byte) {
	s, p := q.resp, &q.eng.kept
	psn := bth.PSN()
	headers, _ := ib.HeaderLength(op)
	if psn.Diff(s.psn) >= reorderSpan {
		return
	}
	if s.reorder.at(psn) != nil {
		q.compareEarly(psn, op, bth, rest, data)
		return
	}
	if s.reorder.count == 0 || s.reorder.edge.Before(s.psn) {
		s.reorder.edge = s.psn
	}
	if psn.Diff(s.reorder.edge) > earlyReach || !op.HasPayload() || len(data) > q.mtu || ib.BTHLen+headers > earlyHead ||
		p.used >= maxEarly {
		return
	}
	if s.reorder.slots == nil {
		s.reorder.slots, s.reorder.since = p.slots.get(), q.eng.now
	}
	v := p.packets.get()
	if cap(v.memory) < earlyHead+len(data) {
		v.memory = make([]byte, earlyHead+q.mtu)
	}
	v.op, v.named, v.bth = op, s.named, v.memory[:ib.BTHLen]
	copy(v.bth, bth[:ib.BTHLen])
	v.rest = v.memory[ib.BTHLen : ib.BTHLen+headers]
	copy(v.rest, rest)
	v.data = v.memory[earlyHead : earlyHead+len(data)]
	copy(v.data, data)
	s.reorder.slots[psn%reorderSpan] = v
	s.reorder.count++
	if p.used, p.serial = p.used+1, p.serial+1; !psn.Before(s.reorder.edge) {
		s.reorder.edge = psn.Next()
	}
	v.serial = p.serial
}

// expireEarly drops what is kept if the missing packet has not come in time.
func (q *QP) expireEarly() {
	if r := &q.resp.reorder; r.count > 0 && q.eng.now.Sub(r.since) > earlyLife {
		q.dropAllEarly()
	}
}

// at returns the packet that is kept for a PSN less than reorderSpan ahead, nil if there is none.
func (r *reorder) at(psn ib.PSN) *early {
	if r.slots == nil {
		return nil
	}
	return r.slots[psn%reorderSpan]
}

// late reports whether the packet kept for a PSN arrived after the one kept for the next.
func (r *reorder) late(psn ib.PSN) bool {
	v, next := r.at(psn), r.at(psn.Next())
	return v != nil && next != nil && v.serial > next.serial
}

// same reports whether a packet is the one kept as v. A retransmission may differ in the request for an
// acknowledgement, and switches mark congestion.
func (v *early) same(op ib.Opcode, named uint32, bth ib.BTH, rest, data []byte) bool {
	return v.op == op && v.named == named && v.bth.Solicited() == bth.Solicited() && bytes.Equal(v.rest, rest[:len(v.rest)]) &&
		bytes.Equal(v.data, data)
}

// compareEarly drops what is kept for a PSN if the packet that arrived for it differs.
func (q *QP) compareEarly(psn ib.PSN, op ib.Opcode, bth ib.BTH, rest, data []byte) {
	if v := q.resp.reorder.at(psn); v != nil && !v.same(op, q.resp.named, bth, rest, data) {
		q.eng.counters.ConflictingPackets++
		q.dropEarly(psn, psn.Next())
	}
}

// vouches reports whether a packet that is ahead shows that the kept packets whose turn has come are the
// requester's.
func (q *QP) vouches(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	s := q.resp
	psn := bth.PSN()
	if !s.reorder.exact || psn.Diff(s.psn) >= reorderSpan || s.reorder.at(s.psn) == nil {
		return false
	}
	if v := s.reorder.at(psn); v != nil {
		return v.same(op, s.named, bth, rest, data)
	}
	return psn.Diff(s.reorder.edge) <= earlyReach
}

// takeEarly removes and returns the kept packet with this PSN, nil if there is none. The caller returns it
// with freeEarly.
func (q *QP) takeEarly(psn ib.PSN) *early {
	r := &q.resp.reorder
	slot := &r.slots[psn%reorderSpan]
	v := *slot
	if v == nil {
		return nil
	}
	*slot = nil
	if r.count--; r.count == 0 {
		q.eng.kept.slots.put(r.slots)
		r.slots = nil
	}
	return v
}

func (e *Engine) freeEarly(v *early) {
	e.kept.used--
	e.kept.packets.put(v)
}

// dropEarly drops the kept packets with PSNs from from up to but not including to.
func (q *QP) dropEarly(from, to ib.PSN) {
	for n := min(to.Diff(from), reorderSpan); n > 0 && q.resp.reorder.count > 0; n-- {
		if v := q.takeEarly(from); v != nil {
			q.eng.freeEarly(v)
		}
		from = from.Next()
	}
}

// dropAllEarly drops all kept packets.
func (q *QP) dropAllEarly() { q.dropEarly(0, reorderSpan) }

// replay carries out the kept packets whose turn has come, up to but not including PSN end, and
// acknowledges them.
func (q *QP) replay(end ib.PSN) {
	s, e := q.resp, q.eng
	named := s.named
	defer func() { s.named = named }()
	var done *early // released once what was gathered of them has been written
	carriedOut := true
	for carriedOut && s.reorder.count > 0 && s.psn.Before(end) {
		late := s.reorder.late(s.psn)
		v := q.takeEarly(s.psn)
		if v == nil {
			break
		}
		if late {
			e.freeEarly(v)
			break
		}
		if e.gather.full {
			e.writeGathered()
		}
		s.named = v.named
		carriedOut = q.inTurn(v.op, v.bth, v.rest, v.data)
		v.next, done = done, v
	}
	e.writeGathered()
	for v := done; v != nil; v = done {
		done, v.next = v.next, nil
		e.freeEarly(v)
	}
	switch {
	case !carriedOut || q.state == command.Err:
	case q.settled():
		s.ack = true
		q.activate()
	default:
		s.effects.answerLast()
	}
}
