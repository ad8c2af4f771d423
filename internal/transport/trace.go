package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/wire/ib"
)

// SetTrace has the engine record what becomes of its queue pairs, and packets if the recorder wants that; nil: nothing.
func (e *Engine) SetTrace(r *trace.Recorder) {
	e.trace, e.packets, e.traced = r, nil, 0
	if r.Wants(trace.Transport, trace.Verbose) {
		e.packets = r
	}
}

// TracePackets has the engine record the packets of one queue pair with somebody else than SetTrace's recorder; nil ends that.
func (e *Engine) TracePackets(qpn uint32, r *trace.Recorder) {
	own := e.trace
	if e.SetTrace(own); r != nil {
		e.packets, e.traced = r, qpn
	}
}

// become changes the state of q.
func (q *QP) become(to command.QPState) {
	if from := q.state; from != to {
		q.eng.trace.Note(trace.QPState, q.num, uint32(from), uint32(to))
	}
	q.state = to
}

// records reports whether packets of a queue pair are recorded.
func (e *Engine) records(qpn uint32) bool {
	return e.packets != nil && (e.traced == 0 || e.traced == qpn)
}

// receiveTraced is Receive with a record of each packet. What the engine made of it is what it counted, and how far it got.
func (e *Engine) receiveTraced(now clock.Time, in []frame.In) {
	for i := range in {
		number, op, psn, ok := names(in[i].Data)
		if !ok || !e.records(number) {
			e.receiveAll(now, in[i:i+1])
			continue
		}
		before, at := e.counters, e.position(number)
		e.receiveAll(now, in[i:i+1])
		v := verdictOf(&before, &e.counters, at, e.position(number))
		e.packets.Note(trace.PacketArrived, number, uint32(psn), uint32(op), uint32(v))
	}
}

// names returns what a packet's BTH says; false: it has none.
func names(data []byte) (qpn uint32, op ib.Opcode, psn ib.PSN, ok bool) {
	if len(data) < ib.BTHLen {
		return 0, 0, 0, false
	}
	bth := ib.BTH(data[:ib.BTHLen])
	return uint32(bth.DestQP()), bth.Opcode(), bth.PSN(), true
}

// position is how far a queue pair has come.
type position struct {
	una, max, expected ib.PSN
	kept               uint16
	nakSent            bool
	probing, nakSeen   bool
	timeouts           uint8
}

func (e *Engine) position(qpn uint32) position {
	if q := e.table.Get(qpn); q != nil {
		return q.position()
	}
	return position{}
}

func (q *QP) position() (p position) {
	if s := q.req; s != nil {
		p.una, p.max, p.probing, p.nakSeen, p.timeouts = s.una, s.max, s.probing, s.nakSeen, uint8(min(s.timeouts, 255))
	}
	if s := q.resp; s != nil {
		p.expected, p.kept, p.nakSent = s.psn, s.reorder.count, s.nakSent
	}
	return p
}

// transmitTraced is transmit with a record of each packet.
func (q *QP) transmitTraced(now clock.Time, out []frame.Out) (n int, more bool) {
	before := q.position()
	n, more = q.transmitTurn(now, out)
	if q.eng.records(q.num) {
		for i := range out[:n] {
			q.noteOut(&out[i], before)
		}
	}
	return n, more
}

// noteSent records the first n packets of out, which q has made outside of its turn, if packets are recorded. It returns n.
func (e *Engine) noteSent(q *QP, out []frame.Out, n int) int {
	if e.packets == nil {
		return n
	}
	for i := range out[:n] {
		q.noteOut(&out[i], q.position())
	}
	return n
}

// noteOut records a packet that q has made; before is where q was.
func (q *QP) noteOut(o *frame.Out, before position) {
	_, op, psn, ok := names(o.Head[frame.HeadRoom:o.HeadEnd])
	if ok && q.eng.records(q.num) {
		rest := o.Head[frame.HeadRoom+ib.BTHLen : o.HeadEnd]
		q.eng.packets.Note(trace.PacketSent, q.num, uint32(psn), uint32(op), uint32(reasonOf(op, psn, rest, before)))
	}
}
