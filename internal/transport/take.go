package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/tagmatch"
	"github.com/softvpi/softvpi/wire/ib"
)

// Take is Receive for as many packets, in order, as find a receive if they need one. It returns how many it took, and the number of
// the queue pair for whose receive the next one waits, of XRC that of the shared receive queue; nothing has happened for that then.
// Packets that arrive ahead of others do not wait.
func (e *Engine) Take(now clock.Time, in []frame.In) (n int, number uint32) {
	for i := range in {
		if !consumes(&in[i]) {
			continue
		}
		if n < i { // which may be what this one follows, and may take its receive
			e.Receive(now, in[n:i])
			n = i
		}
		if queue, number := e.receiverOf(&in[i]); queue != nil && starves(queue) {
			return n, number
		}
	}
	if n < len(in) {
		e.Receive(now, in[n:])
	}
	return len(in), 0
}

// consumes reports whether a packet is one of those that take a receive.
func consumes(in *frame.In) bool {
	if len(in.Data) < ib.BTHLen {
		return false
	}
	switch op := ib.BTH(in.Data[:ib.BTHLen]).Opcode(); {
	case op.Service() == ib.ServiceUD, op.IsSend():
		return op.Starts()
	default:
		return op.IsWrite() && op.HasImm()
	}
}

// receiverOf returns the receive queue from which a packet that consumes takes a receive, and its number; nil: from none.
func (e *Engine) receiverOf(in *frame.In) (queue RecvQueue, number uint32) {
	d := in.Data
	bth := ib.BTH(d[:ib.BTHLen])
	op := bth.Opcode()
	q := e.table.Get(uint32(bth.DestQP()))
	if q == nil || q.state < command.RTR || q.state == command.Err || !ib.PKeyMatch(bth.PKey(), q.pkey) {
		return nil, 0 // it takes no receive, and holds up nobody
	}
	if op.Service() == ib.ServiceUD {
		if q.typ != command.UD || len(d) < ib.BTHLen+ib.DETHLen || ib.DETH(d[ib.BTHLen:]).QKey() != q.attr.QKey {
			return nil, 0
		}
		return q.rq, q.num
	}
	headers, _ := ib.HeaderLength(op)
	if !q.takes(op) || q.carrier != path.ByPackets || in.Src != q.route.Dst || q.responder().recv != nil || len(d) < ib.BTHLen+headers ||
		q.reliable() && bth.PSN() != q.resp.psn {
		return nil, 0
	}
	switch {
	case q.typ == command.XRCTarget:
		if s := e.shared[ib.XRCETH(d[ib.BTHLen:]).SRQ()]; s != nil && s.Domain == q.domain {
			return s.Queue, s.Number
		}
		return nil, 0
	case q.tagsOf() != nil && op.IsSend():
		data := in.Payload
		if data == nil {
			data = d[ib.BTHLen+headers:]
			data = data[:max(len(data)-bth.PadCount(), 0)]
		}
		if q.extra.tags.matches(op, data) {
			return nil, 0
		}
	}
	return q.rq, q.num
}

// matches reports whether a message that begins with data goes to a tagged buffer.
func (t *tagging) matches(op ib.Opcode, data []byte) bool {
	kind, h, _ := tagmatch.Parse(data, op.IsOnly())
	return (kind == tagmatch.Eager || kind == tagmatch.Rendezvous && t.moves.hasRoom()) && t.list.Matches(h.Tag())
}

// starves reports whether no receive is posted to a queue. One that is corrupt shows that when one is taken.
func starves(r RecvQueue) bool {
	n, err := r.Pending()
	return n == 0 && err == nil
}
