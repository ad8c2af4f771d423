package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/wire/ib"
)

// Take is Receive for as many packets, in order, as find a receive if they need one. It returns how many it took, and the number of
// the queue pair for whose receive the next one waits; nothing has happened for that then. Packets of XRC and of queue pairs that
// match tags, and those that arrive ahead of others, do not wait.
func (e *Engine) Take(now clock.Time, in []frame.In) (n int, qpn uint32) {
	for i := range in {
		q := e.receiver(&in[i])
		if q == nil {
			continue
		}
		if n < i { // which may take the receives of this one
			e.Receive(now, in[n:i])
			n = i
		}
		if q.starves() {
			return n, q.num
		}
	}
	if n < len(in) {
		e.Receive(now, in[n:])
	}
	return len(in), 0
}

// receiver returns the queue pair that needs a receive for a packet; nil: none does.
func (e *Engine) receiver(in *frame.In) *QP {
	d := in.Data
	if len(d) < ib.BTHLen {
		return nil
	}
	bth := ib.BTH(d[:ib.BTHLen])
	op := bth.Opcode()
	service := op.Service()
	plain := op.Of(ib.ServiceRC)
	if service == ib.ServiceUD {
		plain = ib.RCSendOnly
	}
	if service == ib.ServiceXRC || !(plain.IsSend() && plain.Starts()) && !(plain.IsWrite() && plain.HasImm()) {
		return nil
	}
	q := e.table.Get(uint32(bth.DestQP()))
	switch {
	case q == nil, q.state < command.RTR, q.state == command.Err, q.tags != nil, q.resp.recv != nil && q.typ != command.UD,
		!ib.PKeyMatch(bth.PKey(), q.pkey): // it takes no receive, and holds up nobody
		return nil
	case service == ib.ServiceUD:
		if q.typ != command.UD || len(d) < ib.BTHLen+ib.DETHLen || ib.DETH(d[ib.BTHLen:]).QKey() != q.attr.QKey {
			return nil
		}
		return q
	case q.typ == command.UD, q.carrier != path.ByPackets, in.Src != q.route.Dst, service == ib.ServiceRC && bth.PSN() != q.resp.psn:
		return nil
	}
	return q
}

// starves reports whether a queue pair has no receive posted. One whose queue is corrupt finds that out by taking one.
func (q *QP) starves() bool {
	n, err := q.rq.Pending()
	return n == 0 && err == nil
}
