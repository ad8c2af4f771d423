package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/wire/ib"
)

// Receive handles packets that encap accepted, in the order of arrival. Packets sent in return, above all
// ACKs, come out of the next Transmit: one ACK for everything that a QP received.
func (e *Engine) Receive(now clock.Time, in []frame.In) {
	if e.packets != nil {
		e.receiveTraced(now, in)
		return
	}
	e.receiveAll(now, in)
}

func (e *Engine) receiveAll(now clock.Time, in []frame.In) {
	e.now = now
	e.arrived += len(in)
	for len(in) > 0 {
		var q *QP
		n := 0
		switch op := opcodeOf(&in[0]); {
		case inMiddle(op):
			q, n = e.follow(now, in)
		case endsAnswer(op):
			q, n = e.answers(now, in)
		}
		if n == 0 {
			q, n = e.receive(now, &in[0]), 1
		}
		if e.gather.full {
			e.writeGathered()
		}
		if q != nil && e.congestion.Notify != 0 {
			e.answerMarks(now, q, in[:n])
		}
		in = in[n:]
	}
	e.writeGathered()
}

// receive finds the QP of a packet and makes the checks that precede the PSN check (IBA 9.6.1). It returns
// the QP if that may have accepted a payload.
func (e *Engine) receive(now clock.Time, in *frame.In) (taker *QP) {
	d := in.Data
	c := &e.counters
	c.InboundPackets++
	c.InboundBytes += uint64(in.Len())
	if len(d) < ib.BTHLen {
		c.Malformed++
		return nil
	}
	bth := ib.BTH(d[:ib.BTHLen])
	op := bth.Opcode()
	headers, known := ib.HeaderLength(op)
	pad := bth.PadCount()
	rest := d[ib.BTHLen:]
	if !known || bth.TVer() != 0 || len(rest) < headers+pad || (len(rest) != headers && !op.HasPayload() && op != ib.CNP) {
		c.Malformed++
		return nil
	}
	data := in.Payload
	switch {
	case data == nil:
		data = rest[headers : len(rest)-pad]
	case len(rest) != headers+pad || !op.HasPayload():
		c.Malformed++
		return nil
	}
	if op.Service() == ib.ServiceUD {
		e.receiveUD(in, bth, op, rest, pad)
		return nil
	}
	q := e.table.Get(uint32(bth.DestQP()))
	if q == nil {
		c.UnknownQP++
		return nil
	}
	switch {
	case op == ib.CNP:
		e.notified(now, q, in)
		return nil
	case !q.takes(op):
		c.WrongService++
		return nil
	case q.state < command.RTR || q.state == command.Err || q.carrier != path.ByPackets:
		c.WrongState++
		return nil
	case !ib.PKeyMatch(bth.PKey(), q.pkey):
		e.violated(in, link.PKeyViolation)
		return nil
	case in.Src != q.route.Dst:
		c.WrongSource++
		return nil
	case q.strange(in.SrcPort):
		c.WrongSourcePort++
		return nil
	}
	if !q.reached {
		q.established()
	}
	if op.Service() == ib.ServiceXRC { // handled as RC from here on
		if op.HasXRCETH() {
			q.resp.named = ib.XRCETH(rest).SRQ()
			rest = rest[ib.XRCETHLen:]
		}
		op = op.Of(ib.ServiceRC)
	}
	if op.HasPayload() {
		e.received, e.receivedOp, taker = q, op, q
		e.receivedHead = [sameHead]byte(d)
	}
	q.used(op)
	expected, acknowledged := q.resp.psn, q.req.una
	switch {
	case op.IsResponse():
		q.response(now, op, bth.PSN(), rest, data)
	case q.reliable():
		q.incoming(op, bth, rest, data)
	default:
		q.incomingUC(op, bth, rest, data)
	}
	exact := q.resp.psn != expected && bth.PSN() == expected
	if q.srcPort == 0 && (exact || q.req.una != acknowledged) && !e.cfg.AnySourcePort {
		q.srcPort = in.SrcPort
	}
	return taker
}

// strange reports whether a packet from a UDP source port is not from the peer. The peer's port becomes
// known with its first packet that has the expected PSN and is carried out, or that acknowledges something:
// the connection manager does not tell it, and the link of the peer may have had to take another one than
// the rule says. Adapters and Linux use one port for all packets of a queue pair, requests and responses:
// the port stands for the connection (IBA annex A17.9.2), so that switches keep its packets in order.
func (q *QP) strange(srcPort uint16) bool { return q.srcPort != 0 && srcPort != q.srcPort }

// established records the first packet. If the CM's message was lost, this is how a QP in RTR learns that
// its connection is established (IBA 11.6.3.1).
func (q *QP) established() {
	q.reached = true
	if q.state == command.RTR {
		q.raise(command.EventCommunicationEstablished)
	}
}
