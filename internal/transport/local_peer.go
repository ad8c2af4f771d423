package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// open checks, for the responder, a message about to come over the local path, by the same rules as its
// first packet (IBA 9.7.4). false: it is refused, with a NAK pending.
func (q *QP) open(r *request) bool {
	s := q.resp
	if !q.reached {
		q.established()
	}
	wr := &r.wr
	if q.typ == command.XRCTarget && !q.choose(wr.RemoteQPN) {
		return false
	}
	switch {
	case r.kind == kindRead:
		return q.openRemote(r, memory.RemoteRead)
	case r.kind == kindAtomic:
		return q.openAtomic(r)
	case r.kind == kindPlaced:
		return q.openPlaced(r)
	case wr.Op == ring.OpWrite || wr.Op == ring.OpWriteImm:
		return q.openRemote(r, memory.RemoteWrite) && (wr.Op == ring.OpWrite || q.openReceive())
	}
	s.off = 0
	if !q.openReceive() {
		return false
	}
	if r.length <= s.recv.mem.length {
		return true
	}
	q.eng.counters.ResponderLengthErrors++
	if q.reliable() {
		q.endReceive(ring.LocalLength)
		q.refuse(ib.NAKInvalidRequest)
	}
	return false
}

func (q *QP) openReceive() bool {
	if q.typ == command.UC {
		return q.ensureReceive()
	}
	return q.resp.recv != nil || q.beginReceive()
}

func (q *QP) openRemote(r *request, need memory.Access) bool {
	if memory.Access(q.attr.Access)&need == 0 || need == memory.RemoteRead && q.resp.depth == 0 {
		return q.refuseLocal(ib.NAKInvalidRequest)
	}
	w := &q.resp.write
	*w = write{va: r.wr.RemoteAddr, rkey: r.wr.RKey, left: r.length, length: uint32(r.length)}
	if _, err := q.eng.mem.Remote(q.pd, q.num, w.rkey, w.va, w.left, need); err != nil {
		return q.refuseLocal(ib.NAKRemoteAccess)
	}
	return true
}

// refuseLocal refuses a message; a UC responder just drops it.
func (q *QP) refuseLocal(syndrome ib.Syndrome) bool {
	if q.typ == command.UC {
		q.eng.counters.BrokenUC++
		if syndrome == ib.NAKRemoteAccess {
			q.eng.counters.ResponderRemoteAccessErrors++
		}
		return false
	}
	return q.refuse(syndrome)
}

func (q *QP) openAtomic(r *request) bool {
	wr := &r.wr
	if memory.Access(q.attr.Access)&memory.RemoteAtomic == 0 || wr.RemoteAddr%8 != 0 || q.resp.depth == 0 {
		return q.refuse(ib.NAKInvalidRequest)
	}
	span, err := q.eng.mem.Remote(q.pd, q.num, wr.RKey, wr.RemoteAddr, 8, memory.RemoteAtomic)
	if err != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	if wr.Op == ring.OpFetchAdd {
		q.resp.original, err = span.Region.FetchAdd(span.Addr, wr.CompareAdd)
	} else {
		q.resp.original, err = span.Region.CompareSwap(span.Addr, wr.CompareAdd, wr.Swap)
	}
	if errors.Is(err, memory.ErrBlock) {
		q.blocked()
		return false
	}
	if err != nil {
		return q.refuse(refusal(err))
	}
	return true
}

// close completes, for the responder, a message whose bytes have all been moved.
func (q *QP) close(r *request) bool {
	s := q.resp
	wr := &r.wr
	solicited := wr.Flags&ring.Solicited != 0
	switch wr.Op {
	case ring.OpRead, ring.OpWrite:
		s.msn = (s.msn + messages(r)) & ib.PSNMask
	case ring.OpCompareSwap, ring.OpFetchAdd, ring.OpAtomicWrite, ring.OpFlush:
		s.msn = (s.msn + 1) & ib.PSNMask
	case ring.OpWriteImm:
		q.messageDone(&ring.CQE{Op: ring.CQRecvWrite, ByteLen: uint32(r.length), Imm: wr.Imm, Flags: ring.HasImm}, solicited)
	default:
		c := ring.CQE{Op: ring.CQRecv, ByteLen: uint32(r.length)}
		switch wr.Op {
		case ring.OpSendImm:
			c.Imm, c.Flags = wr.Imm, ring.HasImm
		case ring.OpSendInv:
			c.Imm, c.Flags = wr.Imm, ring.Invalidated
			if err := q.eng.mem.Invalidate(q.pd, q.num, wr.Imm); err != nil {
				q.endReceive(ring.LocalAccess)
				return q.refuse(ib.NAKRemoteAccess)
			}
		}
		q.messageDone(&c, solicited)
	}
	return true
}
