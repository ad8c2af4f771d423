package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// reorderSpan is how far ahead of its turn a packet may be and be kept: twice the
	// largest window, which is how far a requester goes on behind a gap. A power of two.
	reorderSpan = 1024
	// maxEarly bounds the packets that an engine keeps for all its QPs: some 8 MB of
	// path MTU 4096.
	maxEarly = 2048
	// earlyHead is room for the headers of a kept packet.
	earlyHead = 64
)

// reorder is the packets of sends and writes that came ahead of their turn, because
// one before them was lost or is late. They are carried out when it has come, in
// order, as if they came then: to the requester they were under way for longer (IBA
// 9.7.4.1 has a responder carry out nothing out of order, and leaves what it does with
// such packets to it). One lost packet so costs one packet and not all behind it.
type reorder struct {
	slots *earlySlots // by PSN; nil while there are none
	count int
}

type earlySlots [reorderSpan]*early

// early is a packet that is kept.
type early struct {
	op         ib.Opcode
	bth        ib.BTH
	rest, data []byte
	memory     []byte
	next       *early // carried out
}

// earlyPool is what an engine keeps early packets in; it grows only while there are
// more of them than ever before.
type earlyPool struct {
	packets pool[early]
	slots   pool[earlySlots]
	used    int
}

// keepEarly keeps a packet that came ahead of its turn, where it can be of use and
// there is room.
func (q *QP) keepEarly(op ib.Opcode, bth ib.BTH, rest, data []byte) {
	s, p := &q.resp, &q.eng.kept
	psn := bth.PSN()
	headers, _ := ib.HeaderLength(op)
	if !op.HasPayload() || psn.Diff(s.psn) >= reorderSpan || len(data) > q.mtu || ib.BTHLen+headers > earlyHead {
		return
	}
	if s.reorder.slots == nil {
		if p.used >= maxEarly {
			return
		}
		s.reorder.slots = p.slots.get()
	}
	slot := &s.reorder.slots[psn%reorderSpan]
	if *slot != nil || p.used >= maxEarly {
		return
	}
	v := p.packets.get()
	if cap(v.memory) < earlyHead+len(data) {
		v.memory = make([]byte, earlyHead+q.mtu)
	}
	v.op, v.bth = op, v.memory[:ib.BTHLen]
	copy(v.bth, bth[:ib.BTHLen])
	v.rest = v.memory[ib.BTHLen : ib.BTHLen+headers]
	copy(v.rest, rest)
	v.data = v.memory[earlyHead : earlyHead+len(data)]
	copy(v.data, data)
	*slot = v
	s.reorder.count++
	p.used++
}

// takeEarly takes the packet with this PSN out of those that are kept, nil if it is
// not there. The caller gives it back with freeEarly.
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

// dropEarly forgets the kept packets from one PSN up to another.
func (q *QP) dropEarly(from, to ib.PSN) {
	for n := min(to.Diff(from), reorderSpan); n > 0 && q.resp.reorder.count > 0; n-- {
		if v := q.takeEarly(from); v != nil {
			q.eng.freeEarly(v)
		}
		from = from.Next()
	}
}

// dropAllEarly forgets all kept packets.
func (q *QP) dropAllEarly() { q.dropEarly(0, reorderSpan) }

// replay carries out the kept packets whose turn has come and tells the requester how
// far that goes: an ACK, or a NAK where the next packet is missing too and others behind
// it are there. next is the PSN behind the packet that was missing; a READ takes several.
func (q *QP) replay(next ib.PSN) {
	s, e := &q.resp, q.eng
	q.dropEarly(next, s.psn)
	var done *early // until what was gathered of them is written
	carriedOut := true
	for carriedOut && s.reorder.count > 0 {
		v := q.takeEarly(s.psn)
		if v == nil {
			break
		}
		if e.gather.full {
			e.writeGathered()
		}
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
	case s.reorder.count > 0:
		s.nakSent = true
		q.owe(ib.NAKSequence)
	case q.settled():
		s.ack = true
		q.activate()
	default:
		s.effects.answerLast()
	}
}
