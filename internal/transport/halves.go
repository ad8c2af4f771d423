package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

// idle is the halves of all RC queue pairs of an engine that have not used theirs: one that only sends needs no responder, and one that
// only receives no requester. They stay as they are: whoever is about to change a half asks for it with requester or responder.
type idle struct {
	req  requester
	resp responder
}

// halve gives q its halves, which have been used for nothing.
func (q *QP) halve() {
	if q.typ == command.RC {
		q.req, q.resp = &q.eng.idle.req, &q.eng.idle.resp
		return
	}
	q.req, q.resp = new(requester), new(responder)
}

// requester returns the half of q that sends, for use.
func (q *QP) requester() *requester {
	if q.req == &q.eng.idle.req {
		a := &q.attr
		q.req = &requester{retries: a.Retry, rnrRetries: a.RNRRetry}
		q.req.start(ib.PSN(a.SQPSN))
		if q.state != command.RTR {
			q.req.credit.limited = a.FlowControl != 0
		}
	}
	return q.req
}

// responder returns the half of q that receives, for use.
func (q *QP) responder() *responder {
	if q.resp == &q.eng.idle.resp {
		q.resp = &responder{psn: ib.PSN(q.attr.RQPSN), depth: q.attr.ResponderResources}
	}
	return q.resp
}

// setHalves sets the attributes of the halves that are in use.
func (q *QP) setHalves(m *command.ModifyQP) {
	has := func(mask command.QPMask) bool { return m.Mask&mask != 0 }
	if s := q.req; s != &q.eng.idle.req {
		if has(command.MaskRetry) {
			s.retries = m.Retry
		}
		if has(command.MaskRNRRetry) {
			s.rnrRetries = m.RNRRetry
		}
		if has(command.MaskSQPSN) {
			s.start(ib.PSN(m.SQPSN))
		}
	}
	if s := q.resp; s != &q.eng.idle.resp {
		if has(command.MaskRQPSN) {
			s.psn = ib.PSN(m.RQPSN)
		}
		if has(command.MaskResponderResources) {
			s.resize(int(m.ResponderResources))
		}
	}
}

// grantNothing begins to count the receives of the peer, of which it has announced none.
func (q *QP) grantNothing() {
	if q.req != &q.eng.idle.req {
		q.req.credit = credit{limited: q.attr.FlowControl != 0}
	}
}

// sends reports whether q has sent requests, or is to.
func (q *QP) sends() bool {
	if q.req != &q.eng.idle.req {
		return true
	}
	if n, err := q.sq.Pending(); n == 0 && err == nil {
		return false
	}
	q.requester()
	return true
}

// halves gives q both.
func (q *QP) halves() {
	q.requester()
	q.responder()
}

// used gives q the half that a packet of its peer is for.
func (q *QP) used(op ib.Opcode) {
	if op.IsResponse() {
		q.requester()
	} else {
		q.responder()
	}
}
