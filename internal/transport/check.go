package transport

import (
	"math"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// checkRequest checks what can be checked before anything is sent (IBA 10.8.2.2, 11.4.1.1) and returns the
// status with which the request fails, else Success.
func (q *QP) checkRequest(r *request) ring.Status {
	wr := &r.wr
	need := memory.Access(0)
	switch wr.Op {
	case ring.OpSend, ring.OpSendImm, ring.OpSendInv, ring.OpWrite, ring.OpWriteImm, ring.OpLargeSend:
		r.kind = kindData
	case ring.OpRead:
		r.kind, need = kindRead, memory.LocalWrite
	case ring.OpCompareSwap, ring.OpFetchAdd:
		r.kind, need = kindAtomic, memory.LocalWrite
	case ring.OpAtomicWrite, ring.OpFlush:
		r.kind = kindPlaced
	case ring.OpBind, ring.OpLocalInvalidate:
		r.kind = kindLocal
	}
	if !q.allows(wr.Op) || wr.NumSGE > MaxSGE {
		q.eng.counters.RequesterQPOperationErrors++
		return ring.LocalQPOperation
	}
	if r.answered() && q.attr.InitiatorDepth == 0 || q.typ == command.UD && wr.Route == nil {
		q.eng.counters.RequesterQPOperationErrors++
		return ring.LocalQPOperation
	}
	switch {
	case r.kind == kindLocal:
		return ring.Success
	case wr.Op == ring.OpFlush:
		return q.checkFlush(r)
	}
	if wr.Flags&ring.Inline != 0 && (r.kind == kindData || wr.Op == ring.OpAtomicWrite) {
		r.length = uint64(len(wr.Inline))
		if len(wr.Inline) > int(q.maxInline) {
			q.eng.counters.RequesterLengthErrors++
			return ring.LocalLength
		}
		return q.checkLength(r)
	}
	if wr.Op != ring.OpLargeSend { // whose headers these are
		wr.Inline = nil
	}
	if !r.wr.mem.check(q.eng.mem, q.pd, r.wr.mem.sges, need) {
		q.eng.counters.RequesterProtectionErrors++
		return ring.LocalProtection
	}
	r.length = r.wr.mem.length
	q.eng.messages++
	r.wr.mem.id = q.eng.messages
	if wr.Op == ring.OpLargeSend {
		return q.checkLarge(r)
	}
	return q.checkLength(r)
}

func (q *QP) checkLength(r *request) ring.Status {
	switch {
	case (r.kind == kindAtomic || r.kind == kindPlaced) && r.length != 8,
		r.length > MaxMessage,
		q.typ == command.UD && r.length > uint64(q.eng.cfg.MTU),
		q.typ == command.RawPacket && !q.eng.fits(r.length):
		q.eng.counters.RequesterLengthErrors++
		return ring.LocalLength
	}
	return ring.Success
}

// checkFlush checks a flush, which has no data of its own.
func (q *QP) checkFlush(r *request) ring.Status {
	wr := &r.wr
	wr.Inline, wr.NumSGE = nil, 0
	placement, selectivity := ring.FlushOf(wr.Access)
	switch {
	case placement == 0 || placement > uint32(ib.PlaceGlobal|ib.PlacePersistent) || selectivity > uint32(ib.FlushRegion):
		q.eng.counters.RequesterQPOperationErrors++
		return ring.LocalQPOperation
	case wr.CompareAdd > math.MaxUint32:
		q.eng.counters.RequesterLengthErrors++
		return ring.LocalLength
	}
	return ring.Success
}

// allows implements the table of operations by service (IBA 10.8.2.1, table "Work Request Operations").
func (q *QP) allows(op ring.WROp) bool {
	switch q.typ {
	case command.RC:
		return op.Valid() && op != ring.OpLargeSend
	case command.XRCInitiator:
		return op.Valid() && op < ring.OpBind
	case command.XRCTarget:
		return false
	case command.UC:
		switch op {
		case ring.OpSend, ring.OpSendImm, ring.OpWrite, ring.OpWriteImm, ring.OpBind, ring.OpLocalInvalidate:
			return true
		}
		return false
	case command.RawPacket:
		return op == ring.OpSend || op == ring.OpLargeSend
	}
	return op == ring.OpSend || op == ring.OpSendImm
}
