package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// reorderSpan is how far ahead of the expected PSN a packet may be and still be kept: twice the
	// largest window, which is how far a requester continues past a gap. A power of two.
	reorderSpan = 1024
	// maxEarly limits the packets that an engine keeps for all its QPs: about 8 MB with path MTU 4096.
	maxEarly = 2048
	// earlyHead is room for the headers of a kept packet.
	earlyHead = 64
)

// reorder holds the packets of sends and writes that arrived early because one before them is lost or
// late. They are carried out in order when their turn has come, as if they had arrived then: to the
// requester they were just longer in transit (IBA 9.7.4.1 forbids a responder to carry out packets out of
// order, but leaves open what it does with them). So a lost packet costs one packet and not all behind it.
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
	next       *early // next in the list of those carried out
}

// earlyPool is what an engine keeps early packets in; it grows only when there are more of them than ever
// before.
type earlyPool struct {
	packets pool[early]
	slots   pool[earlySlots]
	used    int
}

// keepEarly keeps an early packet if it can be of use and there is room.
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

// replay carries out the kept packets whose turn has come and reports the progress to the requester: with
// an ACK, or with a NAK if the next packet is missing too while others behind it have been kept. next is
// the PSN after the packet that was missing; a READ takes several.
func (q *QP) replay(next ib.PSN) {
	s, e := &q.resp, q.eng
	q.dropEarly(next, s.psn)
	var done *early // released once what was gathered of them has been written
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
