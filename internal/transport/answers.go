package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/wire/ib"
)

// endsAnswer reports whether op is that of the first or last packet of the answer to a read, or of the only one.
func endsAnswer(op ib.Opcode) bool {
	return op == ib.RCReadResponseOnly || op == ib.RCReadResponseFirst || op == ib.RCReadResponseLast
}

// answers handles the packets at the front of in that are the first and last ones, or the only ones, of answers to reads of one queue
// pair, each plainly the one that comes next (of the first it is known that it endsAnswer), and returns it and their number. Short reads
// are answered by nothing else. As in follow, what receive checks for each packet is checked once for all of them, and what they
// acknowledge counts once, behind the last. The first packet that is not plainly the next one takes the usual way.
func (e *Engine) answers(now clock.Time, in []frame.In) (q *QP, n int) {
	if q = e.continued(&in[0]); q == nil || !q.awaitsAnswers() {
		return nil, 0
	}
	r, psn := q.awaited()
	head, bytes := headOf(&in[0]), 0
	for n < len(in) && r != nil && r.kind == kindRead && r.begun && q.copying < maxCopies && !e.gather.full {
		p := &in[n]
		op := opcodeOf(p)
		if !endsAnswer(op) || headOf(p) != head || binary.BigEndian.Uint32(p.Data[sameHead:]) != uint32(psn) || !psn.Before(q.req.max) ||
			p.Src != q.route.Dst || q.strange(p.SrcPort) {
			break
		}
		data, aeth := answerOf(p)
		off := uint64(psn.Diff(r.first)) * uint64(q.mtu)
		want := min(uint64(q.mtu), r.length-off)
		final := off+want == r.length
		if aeth == nil || uint64(len(data)) != want || final && !op.Ends() {
			break
		}
		if q.place(&r.wr.mem, off, data, final, r) != nil {
			break // as will receive, which fails r then
		}
		if aeth.Syndrome().IsACK() {
			q.grant(aeth.Syndrome(), aeth.MSN())
		}
		bytes += p.Len()
		psn = psn.Next()
		if n++; final {
			r = r.next
		}
	}
	if n == 0 {
		return nil, 0
	}
	last := ib.BTH(in[n-1].Data[:ib.BTHLen])
	e.received, e.receivedOp, e.receivedHead = q, last.Opcode(), [sameHead]byte(last)
	e.counters.InboundPackets += uint64(n)
	e.counters.InboundBytes += uint64(bytes)
	q.progress(now, psn)
	if q.wantsTurn() {
		q.activate()
	}
	return q, n
}

// headOf returns what the BTHs of all packets of answers share: its beginning, except for the opcode.
func headOf(p *frame.In) uint64 { return binary.BigEndian.Uint64(p.Data) &^ (0xff << 56) }

// answerOf returns payload and AETH of a packet without pad; nil: it has no AETH.
func answerOf(p *frame.In) (data []byte, aeth ib.AETH) {
	const headers = ib.BTHLen + ib.AETHLen
	switch {
	case len(p.Data) < headers || p.Payload != nil && len(p.Data) != headers:
		return nil, nil
	case p.Payload != nil:
		data = p.Payload
	default:
		data = p.Data[headers:]
	}
	return data, ib.AETH(p.Data[ib.BTHLen:headers])
}

// awaitsAnswers reports whether q is in a state in which answers to its reads tell no more than that they have arrived: it does not
// repair anything.
func (q *QP) awaitsAnswers() bool {
	if q.typ != command.RC || q.carrier != path.ByPackets || q.state != command.RTS && q.state != command.SQD {
		return false
	}
	s := q.req
	return s.reads > 0 && !s.probing && !s.selective.on && s.selective.run == 0 && s.snd == s.max
}
