package verbs

import (
	"github.com/softvpi/softvpi/internal/command"
)

// Sizes of private data (IBA 12.6, annex A11): how many bytes a program may send with each message.
const (
	MaxConnectPrivate = 56  // a connection request, less the IP CM header
	MaxAcceptPrivate  = 196 // a reply
	MaxRejectPrivate  = 148 // a reject
	MaxResolvePrivate = 180 // a UD service request, less the IP CM header
)

// ConnParam is what one side asks for when setting up a connection.
type ConnParam struct {
	// ResponderResources is how many of the peer's reads and atomics this side serves at a time;
	// InitiatorDepth is how many of its own it may have outstanding. Both are reduced to what the adapter
	// and the peer allow.
	ResponderResources int
	InitiatorDepth     int
	// RetryCount is how often an unanswered request is retransmitted, 1 to 7; 0 means the default of 7.
	RetryCount int
	// RNRRetry is how often the peer retries when no receive is posted here, 1 to 6; 0 and 7 mean without
	// limit.
	RNRRetry int
	// NoFlowControl declines end-to-end credits.
	NoFlowControl bool
	// QPN is the number of the local QP if Connect or Accept is not given one, because the program moves it itself (see
	// ID.Attributes) or it is another program's.
	QPN uint32
	// QKey is the Q_Key of a UD service.
	QKey uint32
	// Private is private data for the peer, at most MaxConnectPrivate, MaxAcceptPrivate or
	// MaxResolvePrivate bytes.
	Private []byte
}

// PeerParam is what the peer asked for or answered, seen from this side.
type PeerParam struct {
	ResponderResources int // reads and atomics that the peer wants to have outstanding here
	InitiatorDepth     int // reads and atomics of this side that the peer serves at a time
	FlowControl        bool
	SRQ                bool
	QPN                uint32
	QKey               uint32 // UD
	Private            []byte // padded with zeros to the size of the message's field
}

func private(p *command.ConnParam) []byte {
	n := min(int(p.PrivateLen), len(p.Private))
	if n == 0 {
		return nil
	}
	return append([]byte(nil), p.Private[:n]...)
}

func peerParam(p *command.ConnParam) PeerParam {
	return PeerParam{
		ResponderResources: int(p.ResponderResources), InitiatorDepth: int(p.InitiatorDepth),
		FlowControl: p.FlowControl != 0, SRQ: p.SRQ != 0, QPN: p.QPN, QKey: p.QKey, Private: private(p),
	}
}

// param checks p and converts it to the command's form.
func (p *ConnParam) param(op string, limit int, qp *QP) (command.ConnParam, error) {
	out := command.ConnParam{QPN: p.QPN, QKey: p.QKey}
	if len(p.Private) > limit {
		return out, newError(op, ErrInvalid, "Private has %d bytes, at most %d", len(p.Private), limit)
	}
	if p.RetryCount < 0 || p.RetryCount > 7 {
		return out, newError(op, ErrInvalid, "RetryCount is %d, want 0 to 7", p.RetryCount)
	}
	if p.RNRRetry < 0 || p.RNRRetry > 7 {
		return out, newError(op, ErrInvalid, "RNRRetry is %d, want 0 to 7", p.RNRRetry)
	}
	if p.ResponderResources < 0 || p.InitiatorDepth < 0 {
		return out, newError(op, ErrInvalid, "ResponderResources and InitiatorDepth are not below 0")
	}
	out.ResponderResources = uint8(min(p.ResponderResources, 255))
	out.InitiatorDepth = uint8(min(p.InitiatorDepth, 255))
	out.RetryCount, out.RNRRetry = uint8(p.RetryCount), uint8(p.RNRRetry)
	if out.RetryCount == 0 {
		out.RetryCount = 7
	}
	if out.RNRRetry == 0 {
		out.RNRRetry = 7
	}
	if !p.NoFlowControl {
		out.FlowControl = 1
	}
	if qp != nil {
		out.QPN = qp.number
		if qp.cfg.SRQ != nil {
			out.SRQ, out.FlowControl = 1, 0
		}
		out.ResponderResources = uint8(min(int(out.ResponderResources), qp.pd.dev.limit.MaxReadResponder))
		out.InitiatorDepth = uint8(min(int(out.InitiatorDepth), qp.pd.dev.limit.MaxReadInitiator))
	}
	out.PrivateLen = uint8(copy(out.Private[:], p.Private))
	return out, nil
}
