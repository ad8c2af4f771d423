package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// The extended reliable connection service (IBA annex A14) is the reliable connection with one half at each end: the
// initiator has only a requester, and the target only a responder. Each request names, in its XRCETH, the shared receive
// queue of the target's domain that it is for: messages take its receives and complete in its CQ, and the keys of writes,
// reads and atomics are checked against its protection domain.

// SharedQueue is an XRC shared receive queue. It must not change while it is one of an engine.
type SharedQueue struct {
	// Number is 1 to 0xffffff, unique on the engine.
	Number uint32
	// Domain is the XRC domain that it belongs to.
	Domain uint32
	PD     memory.PD
	CQ     CQRef
	Queue  RecvQueue
}

// AddSharedQueue makes s known to the target QPs of its domain. The error is a *command.Error: the number is taken, or none.
func (e *Engine) AddSharedQueue(s *SharedQueue) error {
	if s.Number == 0 || s.Number > 0xffffff {
		return fieldError("Number", s.Number, "1 to 0xffffff")
	}
	if e.shared[s.Number] != nil {
		return command.Errorf(command.InUse, "SRQ number %#x", s.Number)
	}
	e.shared[s.Number] = s
	return nil
}

// RemoveSharedQueue takes s away: nothing more completes in its CQ, except what Completions returns by then, and requests
// that name it are refused as invalid. A target in the middle of a message for it ends.
func (e *Engine) RemoveSharedQueue(s *SharedQueue) {
	if e.shared[s.Number] != s {
		return
	}
	delete(e.shared, s.Number)
	for _, q := range e.table.All() {
		if q.typ == command.XRCTarget && q.resp.shared == s {
			q.lose()
		}
	}
}

// lose takes the shared receive queue that q uses away.
func (q *QP) lose() {
	r := q.resp
	if f := r.effects; f != nil {
		for i := f.queue.head; i < len(f.queue.items); i++ {
			f.queue.items[i].completes = false
		}
	}
	busy := r.msg != msgNone || r.recv != nil || r.inbox.opened
	if r.recv != nil {
		q.eng.receives.put(r.recv)
		r.recv = nil
	}
	r.shared, q.rq = nil, noReceives{}
	if busy && q.state != command.Err {
		q.refuse(ib.NAKInvalidRequest)
	}
}

// nothingPosted is the send queue of a target and the receive queue of an initiator.
type nothingPosted struct{}

func (nothingPosted) Release(int)           {}
func (nothingPosted) Pending() (int, error) { return 0, nil }

type noSends struct{ nothingPosted }

func (noSends) Next(*SendWR) (bool, error) { return false, nil }

type noReceives struct{ nothingPosted }

func (noReceives) Next(*ring.RecvWR) (bool, error) { return false, nil }

// reliable reports whether q acknowledges, or is acknowledged.
func (q *QP) reliable() bool {
	return q.typ != command.UC && q.typ != command.UD && q.typ != command.RawPacket
}

// serviceOf returns the bits that the opcodes of a type's packets add to those of RC.
func serviceOf(t command.QPType) ib.Opcode {
	switch t {
	case command.UC:
		return ucBits
	case command.XRCInitiator, command.XRCTarget:
		return xrcBits
	}
	return 0
}

const xrcBits = ib.Opcode(ib.ServiceXRC) << 5

// takes reports whether q takes packets of a service in this direction.
func (q *QP) takes(op ib.Opcode) bool {
	switch q.typ {
	case command.RC:
		return op.Service() == ib.ServiceRC
	case command.UC:
		return op.Service() == ib.ServiceUC
	case command.XRCInitiator:
		return op.Service() == ib.ServiceXRC && op.IsResponse()
	case command.XRCTarget:
		return op.Service() == ib.ServiceXRC && op.IsRequest()
	}
	return false
}

// choose makes the shared receive queue that a request of an XRC target names the one whose receives, CQ and protection
// domain the QP uses. It returns false if the request is refused: there is no such queue in the domain, or it is not
// the one that the message in progress is for.
func (q *QP) choose(number uint32) bool {
	r := q.resp
	s := r.shared
	if s != nil && s.Number == number {
		return true
	}
	s = q.eng.shared[number]
	if s == nil || s.Domain != q.domain || r.msg != msgNone || r.recv != nil {
		return q.refuse(ib.NAKInvalidRequest)
	}
	r.shared = s
	q.pd, q.rq, q.recvCQ = s.PD, s.Queue, s.CQ
	return true
}

// protection returns the protection domain that a request which was already carried out is checked against.
func (q *QP) protection() (pd memory.PD, ok bool) {
	if q.typ != command.XRCTarget {
		return q.pd, true
	}
	s := q.eng.shared[q.resp.named]
	if s == nil || s.Domain != q.domain {
		return pd, false
	}
	return s.PD, true
}
