package transport

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/wire/ib"
)

// packetNotes says who is told of packets. An engine that tells nobody has none, and compares that alone.
type packetNotes struct {
	recorder *trace.Recorder // of all packets; nil: nobody
	watches  []Watch
	mark     uint32 // of the packet sent last
}

// Watch is somebody who is told of each packet of one queue pair.
type Watch struct {
	QPN uint32
	// Tell is called within Receive, behind the packet, and within Transmit. The note is valid until it returns.
	Tell func(*PacketNote)
}

// SetTrace has the engine record what becomes of its queue pairs, and packets if the recorder wants that; nil: nothing.
func (e *Engine) SetTrace(r *trace.Recorder) {
	e.trace = r
	if !r.Wants(trace.Transport, trace.Verbose) {
		r = nil
	}
	var watches []Watch
	if e.packets != nil {
		watches = e.packets.watches
	}
	e.tell(r, watches)
}

// WatchPackets replaces those who are told of the packets of a queue pair. Beside a Watch nothing is slower than with packets recorded.
func (e *Engine) WatchPackets(watches []Watch) {
	var r *trace.Recorder
	if e.packets != nil {
		r = e.packets.recorder
	}
	e.tell(r, slices.Clone(watches))
}

func (e *Engine) tell(r *trace.Recorder, watches []Watch) {
	if r == nil && len(watches) == 0 {
		e.packets = nil
		return
	}
	p := &packetNotes{recorder: r, watches: watches}
	if e.packets != nil {
		p.mark = e.packets.mark
	}
	e.packets = p
}

// wants reports whether anybody is told of the packets of a queue pair.
func (p *packetNotes) wants(qpn uint32) bool {
	return p != nil && (p.recorder != nil || slices.ContainsFunc(p.watches, func(w Watch) bool { return w.QPN == qpn }))
}

// note tells of a packet.
func (p *packetNotes) note(qpn uint32, n *PacketNote) {
	if point, what := trace.PacketArrived, uint32(n.Verdict); p.recorder != nil {
		if n.Sent {
			point, what = trace.PacketSent, uint32(n.Reason)
		}
		p.recorder.Note(point, qpn, uint32(n.PSN), uint32(n.Opcode), what)
	}
	for i := range p.watches {
		if w := &p.watches[i]; w.QPN == qpn {
			w.Tell(n)
		}
	}
}

// become changes the state of q.
func (q *QP) become(to command.QPState) {
	if from := q.state; from != to {
		q.eng.trace.Note(trace.QPState, q.num, uint32(from), uint32(to))
	}
	q.state = to
}

// receiveTraced is Receive with a record of each packet. What the engine made of it is what it counted, and how far it got.
func (e *Engine) receiveTraced(now clock.Time, in []frame.In) {
	for i := range in {
		number, op, psn, ok := names(in[i].Data)
		if !ok || !e.packets.wants(number) {
			e.receiveAll(now, in[i:i+1])
			continue
		}
		before, at := e.counters, e.position(number)
		e.receiveAll(now, in[i:i+1])
		n := PacketNote{Dest: number, PSN: psn, Opcode: op, Verdict: verdictOf(&before, &e.counters, at, e.position(number))}
		if q := e.table.Get(number); q != nil {
			n.Progress = q.reach()
		}
		e.packets.note(number, &n)
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
	if q.eng.packets.wants(q.num) {
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

// noteOut records a packet that q has made, and marks it; before is where q was.
func (q *QP) noteOut(o *frame.Out, before position) {
	dest, op, psn, ok := names(o.Head[frame.HeadRoom:o.HeadEnd])
	p := q.eng.packets
	if !ok || !p.wants(q.num) {
		return
	}
	rest := o.Head[frame.HeadRoom+ib.BTHLen : o.HeadEnd]
	p.mark = max(p.mark+1, 1)
	o.SetMark(p.mark)
	p.note(q.num, &PacketNote{Mark: p.mark, Dest: dest, PSN: psn, Opcode: op, Sent: true, Reason: reasonOf(op, psn, rest, before),
		Progress: q.reach()})
}
