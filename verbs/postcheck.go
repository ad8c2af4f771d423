package verbs

import "github.com/softvpi/softvpi/internal/ring"

// takesReceives reports why receives cannot be posted.
func (qp *QP) takesReceives() error {
	switch {
	case qp.cfg.receives():
	case qp.cfg.SRQ == nil:
		return errNoReceives
	default:
		return errHasSRQ
	}
	if qp.life.over() {
		return errRecvRemoved
	}
	return nil
}

func (qp *QP) checkSend(wr *SendWR) error {
	if !ring.WROp(wr.Op).Valid() {
		return newError("post send", ErrInvalid, "Op is %d, not an operation", uint8(wr.Op))
	}
	if wr.Flags&^allFlags != 0 {
		return newError("post send", ErrInvalid, "Flags has unknown bits %#x", uint8(wr.Flags&^allFlags))
	}
	if wr.Inline != nil {
		if wr.Op > OpWriteImm && wr.Op != OpAtomicWrite {
			return newError("post send", ErrInvalid, "Inline does not go with %v", wr.Op)
		}
		if len(wr.Inline) > qp.cfg.Inline {
			return newError("post send", ErrInvalid, "Inline has %d bytes, at most %d", len(wr.Inline), qp.cfg.Inline)
		}
	} else if len(wr.SGE) > qp.cfg.SendSGE {
		return newError("post send", ErrInvalid, "SGE has %d entries, at most %d", len(wr.SGE), qp.cfg.SendSGE)
	}
	if wr.Op == OpLargeSend && qp.cfg.Type == RawPacket {
		if len(wr.Headers) > qp.cfg.Headers {
			return newError("post send", ErrInvalid, "Headers has %d bytes, at most %d", len(wr.Headers), qp.cfg.Headers)
		}
		if wr.Segment == 0 {
			return newError("post send", ErrInvalid, "Segment is 0, want 1 at least")
		}
	}
	if wr.Flags&Checksums != 0 && !qp.sums {
		if qp.cfg.Type != RawPacket {
			return newError("post send", ErrInvalid, "Checksums does not go with %v", qp.cfg.Type)
		}
		return newError("post send", ErrUnsupported, "the driver makes no checksums")
	}
	if !serves(qp.cfg.Type, wr.Op) {
		return newError("post send", ErrInvalid, "%v is not an operation of %v", wr.Op, qp.cfg.Type)
	}
	if qp.cfg.Type == XRCInitiator && (wr.RemoteSRQ == 0 || wr.RemoteSRQ > 0xffffff) {
		return newError("post send", ErrInvalid, "RemoteSRQ is %#x, want 1 to 0xffffff", wr.RemoteSRQ)
	}
	if qp.cfg.Type == UD && wr.AH == nil {
		return newError("post send", ErrInvalid, "AH is nil")
	}
	switch wr.Op {
	case OpBind:
		return checkBind(&wr.Bind)
	case OpAtomicWrite, OpFlush:
		return qp.checkPlaced(wr)
	}
	return nil
}

func checkBind(b *Bind) error {
	switch {
	case b.Window == nil:
		return newError("post send", ErrInvalid, "Bind.Window is nil")
	case b.MR == nil && b.Length != 0:
		return newError("post send", ErrInvalid, "Bind.MR is nil")
	case b.Access&^(RemoteRead|RemoteWrite|RemoteAtomic|ZeroBased) != 0:
		return newError("post send", ErrInvalid, "Bind.Access is %#x, want some of RemoteRead, RemoteWrite, RemoteAtomic, ZeroBased",
			uint32(b.Access))
	}
	return nil
}

// serves reports whether a transport service has the operation (IBA 9.1, table 38).
func serves(t QPType, op Opcode) bool {
	if op == OpLargeSend {
		return t == RawPacket
	}
	switch t {
	case RC:
		return true
	case XRCInitiator:
		return op < OpBind
	case UC:
		switch op {
		case OpRead, OpCompareSwap, OpFetchAdd, OpSendInvalidate, OpAtomicWrite, OpFlush:
			return false
		}
		return true
	case RawPacket:
		return op == OpSend
	default:
		return op == OpSend || op == OpSendImm
	}
}
