package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// sendUD emits datagrams, one packet per request (IBA 9.8.2).
func (q *QP) sendUD(now clock.Time, out []frame.Out) (n int, more bool) {
	s := q.req
	if q.state != command.RTS {
		return 0, false
	}
	limit, bytes := min(len(out), q.eng.cfg.MaxBurst), q.allowed(now)
	for n < limit && bytes > 0 {
		r := q.current()
		if r == nil || n == 0 && q.throttled(now) {
			break
		}
		if p := r.wr.Route.Priority; p != q.priority { // it and those behind it wait for the turn of that priority
			q.setPriority(p)
			more = true
			break
		}
		pace := r.wr.Route.Pace
		if pace != nil && q.waitsUntil(now, pace.NextSend(now, q.longest())) {
			break
		}
		payload, ok := q.payload(r, 0, r.length)
		if !ok {
			break
		}
		q.datagram(&out[n], r, payload)
		r.begun = true
		s.snd = s.snd.Next()
		s.idx = 1
		q.sent(r)
		size := wireBytes(out[n : n+1])
		if bytes -= size; pace != nil {
			pace.Sent(now, size)
		}
		n++
	}
	if n > 0 {
		q.departed()
		if b := q.bucketOf(); b != nil {
			b.Sent(now, wireBytes(out[:n]))
		}
	}
	return n, more || n > 0 && (n == limit || bytes <= 0)
}

// datagram writes the packet of a request.
func (q *QP) datagram(o *frame.Out, r *request, payload []byte) {
	wr := &r.wr
	dest, qkey, op := ib.QPN(wr.RemoteQPN)&ib.QPNMask, wr.QKey, ib.UDSendOnly
	if wr.Route.Dst.IsMulticast() {
		dest = ib.QPMulticast
		q.listen().cast = wr.Route.Src.Unmap()
	}
	// A Q_Key with its top bit set means the QP's own (IBA 10.2.5).
	if qkey&ib.QKeyPrivileged != 0 {
		qkey = q.attr.QKey
	}
	if wr.Op == ring.OpSendImm {
		op = ib.UDSendOnlyImmediate
	}
	pad := -len(payload) & 3
	o.Reset(wr.Route)
	o.Pad, o.Payload = uint8(pad), payload
	head := o.Head[frame.HeadRoom:]
	ib.BTH(head).Encode(op, wr.Flags&ring.Solicited != 0, false, pad, q.pkey, dest, q.req.snd)
	ib.DETH(head[ib.BTHLen:]).Encode(qkey, ib.QPN(q.num))
	o.HeadEnd = frame.HeadRoom + ib.BTHLen + ib.DETHLen
	if op.HasImm() {
		ib.ImmDt(o.Head[o.HeadEnd:]).SetValue(wr.Imm)
		o.HeadEnd += ib.ImmDtLen
	}
}

// receiveUD handles a datagram.
func (e *Engine) receiveUD(in *frame.In, bth ib.BTH, op ib.Opcode, rest []byte, pad int) {
	dest := bth.DestQP()
	switch dest {
	case ib.QPGSI:
		if !e.anyPKey(bth.PKey()) && !ib.PKeyMatch(bth.PKey(), e.cfg.Management) {
			e.violated(in, link.PKeyViolation)
			return
		}
		e.receiveMAD(in, bth.PKey(), rest, pad)
	case ib.QPMulticast:
		qps := e.groups[in.Dst.Unmap()]
		if len(qps) == 0 {
			e.counters.BadMulticast++
			return
		}
		e.counters.MulticastPackets++
		for _, q := range qps {
			if q.blockSelf && q.own(in, rest) {
				continue
			}
			q.receiveDatagram(in, bth, op, rest, pad)
		}
	default:
		q := e.table.Get(uint32(dest))
		switch {
		case q == nil:
			e.counters.UnknownQP++
		case q.typ != command.UD:
			e.counters.WrongService++
		default:
			q.receiveDatagram(in, bth, op, rest, pad)
		}
	}
}

// own reports whether q itself sent a datagram to a group.
func (q *QP) own(in *frame.In, rest []byte) bool {
	return ib.DETH(rest).SrcQP() == ib.QPN(q.num) && q.echoOf() != nil && in.Src.Unmap() == q.extra.echo.cast
}

func (e *Engine) anyPKey(k ib.PKey) bool {
	for _, have := range e.cfg.PKeys {
		if ib.PKeyMatch(k, have) {
			return true
		}
	}
	return false
}

// takeFor takes the receive for a datagram of n bytes; nil: there is none, which counts as lost. If it has no room for them, or
// its memory is not the program's, the receive ends with that error, and fits is false. The sender must not be able to end
// the QP, so only the receive fails.
func (q *QP) takeFor(n int, lost *uint64) (w *receive, fits bool) {
	if q.copying >= maxCopies {
		*lost++
		return nil, false
	}
	w, bad, err := q.takeReceive()
	switch {
	case err != nil:
		q.fatal(command.EventQPFatal)
		return nil, false
	case w == nil:
		*lost++
		return nil, false
	}
	q.resp.recv = w
	c := &q.eng.counters
	switch {
	case bad:
		c.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
	case uint64(n) > w.mem.length:
		c.ResponderLengthErrors++
		q.endReceive(ring.LocalLength)
	default:
		return w, true
	}
	return w, false
}

// receiveDatagram delivers a datagram to q, after the GRH area. An invalid datagram is just dropped.
func (q *QP) receiveDatagram(in *frame.In, bth ib.BTH, op ib.Opcode, rest []byte, pad int) {
	c := &q.eng.counters
	deth := ib.DETH(rest)
	data := rest[ib.DETHLen : len(rest)-pad]
	var imm uint32
	if op.HasImm() {
		imm, data = ib.ImmDt(data).Value(), data[ib.ImmDtLen:]
	}
	switch {
	case q.state < command.RTR || q.state == command.Err:
		c.WrongState++
		return
	case !ib.PKeyMatch(bth.PKey(), q.pkey):
		q.eng.violated(in, link.PKeyViolation)
		return
	case deth.QKey() != q.attr.QKey:
		q.eng.violated(in, link.QKeyViolation)
		return
	case len(data) > MaxMTU:
		c.Malformed++
		return
	}
	n := GRHArea + len(data)
	w, fits := q.takeFor(n, &c.DiscardedUD)
	if !fits {
		return
	}
	area := &q.eng.grh
	fillGRH(area, in, len(rest)+ib.BTHLen)
	err := q.placeIn(&w.mem, 0, area[:], len(data) == 0)
	if err == nil {
		err = q.placeIn(&w.mem, GRHArea, data, true)
	}
	if err != nil {
		c.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
		q.settleEffect(0, 0, false, false)
		return
	}
	e := ring.CQE{Op: ring.CQRecv, ByteLen: uint32(n), SrcQP: uint32(deth.SrcQP()), Flags: ring.HasGRH, Imm: imm, SL: packetType(in)}
	if in.SLID != 0 {
		e.SL, e.SLID, e.PathBits = in.SL, uint16(in.SLID), in.PathBits
		if in.GRH == nil {
			e.Flags = 0
		}
	}
	if op.HasImm() {
		e.Flags |= ring.HasImm
	}
	if bth.Solicited() {
		e.Flags |= ring.IsSolicited
	}
	q.finishReceive(&e)
	q.settleEffect(0, 0, false, false)
}

// packetType is what the adapters that this one imitates report as the SL of a datagram's completion: RoCE
// has no SL, and programs (UCX) learn from it which header is in the GRH area. Bit 3: UDP follows; the
// bits below it: 0 is a GRH, 1 IPv6, 2 IPv4.
func packetType(in *frame.In) uint8 {
	if in.GRH != nil { // RoCE v1
		return 0
	}
	if in.Src.Unmap().Is4() && in.Dst.Unmap().Is4() {
		return 8 | 2
	}
	return 8 | 1
}

// fillGRH writes the area before a datagram: on InfiniBand the GRH, or zeros if it has none; otherwise the
// IPv6 header, or the IPv4 header in the last 20 bytes, like Linux. n is the packet's length from the BTH
// to the end of the pad.
func fillGRH(area *[GRHArea]byte, in *frame.In, n int) {
	if in.GRH != nil {
		*area = *in.GRH
		return
	}
	clear(area[:])
	if in.SLID != 0 {
		return
	}
	n += eth.UDPLen + ib.ICRCLen
	src, dst := in.Src.Unmap(), in.Dst.Unmap()
	if src.Is4() && dst.Is4() {
		eth.IPv4(area[GRHArea-eth.IPv4Len:]).Encode(in.TrafficClass, eth.IPv4Len+n, in.ID, in.HopLimit, eth.ProtocolUDP, src.As4(),
			dst.As4())
		return
	}
	eth.IPv6(area[:]).Encode(in.TrafficClass, in.FlowLabel, n, eth.ProtocolUDP, in.HopLimit, src.As16(), dst.As16())
}
