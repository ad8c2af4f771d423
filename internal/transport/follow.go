package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/wire/ib"
)

// sameHead is how many bytes of the BTH all middle packets of a message share: everything but the word
// with the PSN and the acknowledgement request.
const sameHead = 8

// follow handles the packets at the front of in that continue the message which their queue pair is in the middle of (the first is one
// inMiddle), and returns it and their number. They differ in PSN and payload only, so what receive checks for each packet is checked once
// for all of them: where the payload goes, that the QP may accept it, and the headers by comparison. The first packet that is not plainly
// the next one takes the usual way.
func (e *Engine) follow(now clock.Time, in []frame.In) (q *QP, n int) {
	first := &in[0]
	bth := ib.BTH(first.Data[:ib.BTHLen])
	op := bth.Opcode()
	if q = e.continued(first); q == nil {
		return nil, 0
	}
	mem, psn := q.ahead(op)
	if len(mem) == 0 { // q may not even be connected
		return nil, 0
	}
	head, mtu := binary.NativeEndian.Uint64(bth), q.mtu
	for n < len(in) && len(mem) >= mtu {
		p := &in[n]
		data := p.Payload
		switch {
		case data == nil && len(p.Data) == ib.BTHLen+mtu:
			data = p.Data[ib.BTHLen:]
		case len(p.Data) != ib.BTHLen || len(data) != mtu:
			data = nil
		}
		if data == nil || binary.NativeEndian.Uint64(p.Data) != head ||
			binary.BigEndian.Uint32(p.Data[sameHead:]) != uint32(psn) || p.Src != q.route.Dst || q.strange(p.SrcPort) {
			break
		}
		if &mem[0] != &data[0] { // otherwise it is already in place (Next)
			prefetch.Copy(mem[:mtu], data)
		}
		mem, psn = mem[mtu:], psn.Next()
		n++
	}
	if n > 0 {
		e.received, e.receivedOp, e.receivedHead = q, op, [sameHead]byte(bth)
		q.followed(now, n, psn)
	}
	return q, n
}

// continued returns the queue pair of a packet whose headers receive would accept, provided that the queue pair is in a state to do so;
// nil: there is none, or receive takes note of something.
func (e *Engine) continued(p *frame.In) *QP {
	bth, q := ib.BTH(p.Data[:ib.BTHLen]), e.received
	if q == nil || bth.DestQP() != ib.QPN(q.num) {
		if q = e.table.Get(uint32(bth.DestQP())); q == nil {
			return nil
		}
	}
	if !q.reached || q.srcPort == 0 && p.SrcPort != 0 && !e.cfg.AnySourcePort || bth.PadCount() != 0 || bth.TVer() != 0 ||
		!ib.PKeyMatch(bth.PKey(), q.pkey) {
		return nil
	}
	return q
}

// ahead returns the destination of the full packets of opcode op that come next in the message in
// progress, except for its last packet, and the PSN of the first. The result is empty if a packet might
// have to wait for a copy or a response.
func (q *QP) ahead(op ib.Opcode) ([]byte, ib.PSN) {
	s := q.resp
	if q.typ != command.RC || q.carrier != path.ByPackets || q.copying >= maxCopies {
		return nil, 0
	}
	if op == ib.RCReadResponseMiddle {
		if q.state != command.RTS && q.state != command.SQD {
			return nil, 0
		}
		return q.answerAhead()
	}
	if q.state < command.RTR || q.state == command.Err || s.nak || s.nakSent || s.reorder.count > 0 || !s.effects.startedNone() {
		return nil, 0
	}
	switch {
	case op == ib.RCWriteMiddle && s.msg == msgWrite:
		span, err := q.writeSpan()
		n := q.fullPackets(s.write.left)
		if err != nil || n == 0 || span.Region.Dead() {
			return nil, 0
		}
		return span.Region.Slice(span.Addr, n), s.psn
	case op == ib.RCSendMiddle && s.msg == msgSend && s.off < s.recv.mem.length:
		return s.recv.mem.piece(s.off, s.recv.mem.length-s.off), s.psn
	}
	return nil, 0
}

// answerAhead is ahead for a read response.
func (q *QP) answerAhead() ([]byte, ib.PSN) {
	r, psn := q.awaited()
	if r == nil || r.kind != kindRead || psn != q.req.una {
		return nil, 0
	}
	off := uint64(psn.Diff(r.first)) * uint64(q.mtu)
	// No more than was requested.
	n := min(q.fullPackets(r.length-off), uint64(max(q.req.max.Diff(psn), 0))*uint64(q.mtu))
	if n == 0 {
		return nil, 0
	}
	return r.wr.mem.piece(off, n), psn
}

// followed advances past n full packets that were placed; next is the PSN after them.
func (q *QP) followed(now clock.Time, n int, next ib.PSN) {
	e, s := q.eng, q.resp
	bytes := uint64(n) * uint64(q.mtu)
	e.counters.InboundPackets += uint64(n)
	e.counters.InboundBytes += bytes + uint64(n)*ib.BTHLen
	switch e.receivedOp {
	case ib.RCWriteMiddle:
		s.psn = next
		s.write.va += bytes
		s.write.left -= bytes
	case ib.RCSendMiddle:
		s.psn = next
		s.off += bytes
	default:
		q.progress(now, next)
		if q.wantsTurn() {
			q.activate()
		}
	}
}

// fullPackets returns how many of the left bytes precede the last packet.
func (q *QP) fullPackets(left uint64) uint64 {
	if left == 0 {
		return 0
	}
	return (left - 1) / uint64(q.mtu) * uint64(q.mtu)
}
