package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// sequence holds the opcodes of a message by position; other services than RC add their bits.
type sequence struct{ first, middle, last, only ib.Opcode }

var sequences = [...]sequence{
	ring.OpSend:     {ib.RCSendFirst, ib.RCSendMiddle, ib.RCSendLast, ib.RCSendOnly},
	ring.OpSendImm:  {ib.RCSendFirst, ib.RCSendMiddle, ib.RCSendLastImmediate, ib.RCSendOnlyImmediate},
	ring.OpSendInv:  {ib.RCSendFirst, ib.RCSendMiddle, ib.RCSendLastInvalidate, ib.RCSendOnlyInvalidate},
	ring.OpWrite:    {ib.RCWriteFirst, ib.RCWriteMiddle, ib.RCWriteLast, ib.RCWriteOnly},
	ring.OpWriteImm: {ib.RCWriteFirst, ib.RCWriteMiddle, ib.RCWriteLastImmediate, ib.RCWriteOnlyImmediate},
}

func (s *sequence) at(first, last bool) ib.Opcode {
	switch {
	case first && last:
		return s.only
	case first:
		return s.first
	case last:
		return s.last
	}
	return s.middle
}

// sendData emits packets of a send or write of several, as many as the window, the turn and the credits allow.
func (q *QP) sendData(r *request, out []frame.Out, t *allowance) (n int) {
	s := q.req
	room := q.room(q.share(r, t.bytes))
	limit := min(len(out), room, int(r.packets-s.idx))
	probe := q.mustProbe(r)
	if probe {
		if s.una != s.snd || !r.begun && q.awaitCredit() {
			return 0
		}
		if s.idx == 0 {
			limit = min(limit, 1)
		}
	}
	seq := &sequences[r.wr.Op]
	every, limited := t.every, t.limited && q.eng.now.Sub(s.askedAt) >= q.win.rtt/2
	mtu := uint64(q.mtu)
	solicited, alone := r.wr.Flags&ring.Solicited != 0, r.piece == 1
	for n < limit && t.bytes > 0 {
		if r.packets-s.idx >= 3 && t.bytes > 2*q.mtu { // else there are less than two in the middle
			if k := q.sendMiddles(r, out[n:limit], t.bytes, every, seq.middle); k > 0 {
				n += k
				t.bytes -= k * q.mtu
				continue
			}
		}
		off := uint64(s.idx) * mtu
		size := min(mtu, r.length-off)
		last := s.idx+1 == r.packets
		payload, ok := q.payload(r, off, size)
		if !ok {
			break
		}
		s.sinceAck++
		// If others use the window too, or the rate is limited, the next turn may be long in coming,
		// and at most half of the window should wait for it unacknowledged; with a limited rate what leaves in half of a round trip.
		turnEnds := (n+1 == limit || t.bytes <= int(size)) && (limited || t.shared && q.halfUnasked())
		due := last || s.sinceAck >= every || n+1 == room || turnEnds
		ackReq := every > 0 && (probe || s.probing || due && !s.selective.goesOn())
		op := seq.at(s.idx == 0 || alone, last || alone)
		o := &out[n]
		q.start(o, op, ackReq, solicited && last, payload, s.snd)
		q.extend(o, r, op, off)
		q.made(ackReq)
		n++
		t.bytes -= int(size)
	}
	if n == 0 {
		return 0
	}
	r.begun = true
	q.sent(r)
	if q.win != nil {
		windowed(out[:n])
	}
	return n
}

// sendOnly emits r, a send or write of one packet, as sendData does, which it spares all that depends on the place of a packet in its
// message. It returns how many packets that were.
func (q *QP) sendOnly(r *request, o *frame.Out, t *allowance) int {
	s := q.req
	room := q.room(1)
	if room < 1 {
		return 0
	}
	probe := q.mustProbe(r)
	if probe && (s.una != s.snd || !r.begun && q.awaitCredit()) {
		return 0
	}
	payload, ok := q.payload(r, 0, r.length)
	if !ok {
		return 0
	}
	s.sinceAck++
	ackReq := false
	if t.every > 0 {
		due := q.asks(r) || s.sinceAck >= t.every || room == 1 ||
			t.limited && q.eng.now.Sub(s.askedAt) >= q.win.rtt/2 || t.shared && q.halfUnasked()
		ackReq = probe || s.probing || due && !s.selective.goesOn()
	}
	op := sequences[r.wr.Op].only
	q.start(o, op, ackReq, r.wr.Flags&ring.Solicited != 0, payload, s.snd)
	q.extend(o, r, op, 0)
	o.Windowed = q.win != nil
	q.made(ackReq)
	t.bytes -= int(r.length)
	r.begun = true
	q.sent(r)
	return 1
}

// halfUnasked reports whether half of a window that others use too may be taken by packets since the last that requests an
// acknowledgement.
func (q *QP) halfUnasked() bool { return 2*q.win.users*int(q.req.sinceAck) >= q.win.size }

// made advances by a packet of a send or write, which may be one that is sent again, and notes whether it requests an acknowledgement.
func (q *QP) made(ackReq bool) {
	s := q.req
	if ackReq {
		s.sinceAck, s.asked, s.askedAt = 0, s.snd.Next(), q.eng.now
	}
	if s.snd.Before(s.max) {
		q.eng.countAgain(q)
	} else if ackReq {
		s.selective.points.add(s.snd)
		if !s.timing {
			s.timing, s.timedPSN, s.timedAt = true, s.snd, q.eng.now
		}
	}
	s.snd = s.snd.Next()
	s.idx++
}

// windowed marks packets as counted in a window, the sender's or the requester's.
func windowed(out []frame.Out) {
	for i := range out {
		out[i].Windowed = true
	}
}

// sendMiddles emits middle packets of r that request no acknowledgement, are not retransmissions, and
// whose payload lies in one piece of mapped memory: they differ in PSN and payload only. It leaves the
// last one of the turn to sendData.
func (q *QP) sendMiddles(r *request, out []frame.Out, bytes int, every uint8, op ib.Opcode) int {
	s := q.req
	if s.idx == 0 || r.piece == 1 {
		return 0
	}
	n := min(len(out)-1, int(r.packets-s.idx)-1, (bytes-1)/q.mtu)
	if every > 0 {
		n = min(n, int(every-s.sinceAck)-1)
	}
	if n < 2 || s.sinceAck >= every && every > 0 || s.probing || s.snd.Before(s.max) || r.wr.Inline != nil || q.mustProbe(r) {
		return 0
	}
	n = q.middles(out[:n], op, r.wr.mem.piece(uint64(s.idx)*uint64(q.mtu), uint64(n)*uint64(q.mtu)), s.snd)
	s.snd = s.snd.Add(uint32(n))
	s.idx += uint32(n)
	s.sinceAck += uint8(n)
	return n
}

// middles writes packets with consecutive pieces of mem as payload and consecutive PSNs, and returns their
// number.
func (q *QP) middles(out []frame.Out, op ib.Opcode, mem []byte, psn ib.PSN) int {
	n := min(len(out), len(mem)/q.mtu)
	if n == 0 {
		return 0
	}
	q.start(&out[0], op, false, false, mem[:q.mtu:q.mtu], psn)
	head := ib.BTH(out[0].Head[frame.HeadRoom : frame.HeadRoom+ib.BTHLen])
	for i := 1; i < n; i++ {
		o := &out[i]
		o.Reset(q.route)
		o.Payload = mem[i*q.mtu : (i+1)*q.mtu : (i+1)*q.mtu]
		o.HeadEnd = out[0].HeadEnd
		if q.typ == command.XRCInitiator {
			ib.XRCETH(o.Head[frame.HeadRoom+ib.BTHLen:]).SetSRQ(q.req.srq)
		}
		bth := o.Head[frame.HeadRoom : frame.HeadRoom+ib.BTHLen]
		copy(bth[:sameHead], head)
		binary.BigEndian.PutUint32(bth[sameHead:], uint32(psn.Add(uint32(i))))
	}
	return n
}

// sent advances after packets of r were made.
func (q *QP) sent(r *request) {
	s := q.req
	if s.snd.After(s.max) {
		s.max = s.snd
	}
	if s.idx == r.packets && s.cur == r {
		s.cur, s.idx = r.next, 0
	}
}

// start writes the BTH of a packet, and for an XRC initiator the XRCETH, and attaches its payload. op is the opcode of RC.
func (q *QP) start(o *frame.Out, op ib.Opcode, ackReq, solicited bool, payload []byte, psn ib.PSN) {
	o.Reset(q.route)
	pad := -len(payload) & 3
	o.Pad = uint8(pad)
	o.Payload = payload
	bth := ib.BTH(o.Head[frame.HeadRoom : frame.HeadRoom+ib.BTHLen])
	bth.Encode(op|q.service, solicited, ackReq, pad, q.pkey, ib.QPN(q.attr.DestQPN), psn)
	o.HeadEnd = frame.HeadRoom + ib.BTHLen
	if q.typ == command.XRCInitiator {
		ib.XRCETH(o.Head[frame.HeadRoom+ib.BTHLen:]).SetSRQ(q.req.srq)
		o.HeadEnd += ib.XRCETHLen
	}
}

// extend writes the headers of a send or write that follow the BTH. off is where the packet's payload is in it.
func (q *QP) extend(o *frame.Out, r *request, op ib.Opcode, off uint64) {
	if op.HasRETH() {
		n := r.length - off
		if r.piece > 0 {
			n = min(n, uint64(r.piece)*uint64(q.mtu))
		}
		ib.RETH(o.Head[o.HeadEnd:]).Encode(r.wr.RemoteAddr+off, r.wr.RKey, uint32(n))
		o.HeadEnd += ib.RETHLen
	}
	switch {
	case op.HasImm():
		ib.ImmDt(o.Head[o.HeadEnd:]).SetValue(r.wr.Imm)
		o.HeadEnd += ib.ImmDtLen
	case op.HasIETH():
		ib.IETH(o.Head[o.HeadEnd:]).SetRKey(r.wr.Imm)
		o.HeadEnd += ib.IETHLen
	}
}

// payload returns n bytes of the message from off: a view of registered memory or of the ring, or a copy
// in scratch. It returns false if the packet cannot be made now; if the memory is gone it has failed the
// request.
func (q *QP) payload(r *request, off, n uint64) ([]byte, bool) {
	if n == 0 {
		return nil, true
	}
	if r.wr.Inline != nil && r.wr.Op != ring.OpLargeSend {
		return r.wr.Inline[off : off+n], true
	}
	b, err := q.fetched(&q.req.fetch, &r.wr.mem, off, n)
	if err != nil {
		q.eng.counters.RequesterProtectionErrors++
		q.failLater(r, ring.LocalProtection)
		return nil, false
	}
	return b, b != nil
}

// failLater fails a request in progress once the requests before it are complete.
func (q *QP) failLater(r *request, status ring.Status) {
	r.status = status
	q.req.stopped = true
	q.req.cur = nil
	q.retire()
}

// armAck starts the ACK timer unless it is running (IBA 9.7.6.1.3).
func (q *QP) armAck(now clock.Time) {
	s := q.req
	if q.deadlines[retryTimer] != clock.Never || q.attr.Timeout == 0 {
		return
	}
	if s.expires <= now {
		s.expires = now.Add(q.ackTimeout())
	}
	s.checked = s.probes > 0
	after := q.probeAfter()
	switch {
	case s.nakSeen && s.selective.run > 0:
		after = (gapFloor + 2*q.win.rtt) << s.probes
	case !s.checked:
		after = checkFloor + 4*q.win.rtt
	}
	q.eng.timers.arm(q, clock.Min(s.expires, now.Add(after)))
}
