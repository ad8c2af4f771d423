package cm

import (
	"errors"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// How soon a peer may send again what found no receive (codes of IBA 9.7.5.2.8). One with a limit of retries
// gets Linux's 655.36 ms, of which programs there count on having some: a program that was held up for a few
// milliseconds must not lose its connection. It hears of a receive that is posted meanwhile, if it counts
// credits. One without a limit may ask every 0.64 ms.
const (
	rnrTimerLimited   = 0
	rnrTimerUnlimited = 12
)

// unlimitedRetries is the count of RNR retries that has no limit (IBA 9.7.5.2.8).
const unlimitedRetries = 7

// ModifyQP returns the attributes for a QP on its way to a state; ok is false for a state that is not on
// the way. Those that only its adapter knows are missing: Access, PKeyIndex, and SrcIndex and Path of the
// Route.
func (t *Attributes) ModifyQP(typ command.QPType, to command.QPState) (m command.ModifyQP, ok bool) {
	m = command.ModifyQP{Mask: command.MaskState, State: to}
	switch to {
	case command.Init:
		m.Mask |= command.MaskPKey
		if typ == command.UD {
			m.Mask |= command.MaskQKey
			m.QKey = ib.QKeyRDMAUDP
		} else {
			m.Mask |= command.MaskAccess
		}
		return m, true
	case command.RTR:
		if typ != command.UD {
			t.toRTR(&m, typ)
		}
		return m, true
	case command.RTS:
		m.Mask |= command.MaskSQPSN
		m.SQPSN = uint32(t.SQPSN)
		switch typ {
		case command.XRCInitiator:
			m.Mask |= command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry | command.MaskInitiatorDepth
		case command.XRCTarget:
			m.Mask |= command.MaskTimeout
		case command.RC:
			m.Mask |= command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry | command.MaskInitiatorDepth | command.MaskFlowControl
			m.FlowControl = bit(t.FlowControl)
		}
		m.Timeout, m.Retry, m.RNRRetry, m.InitiatorDepth = t.AckTimeout, t.RetryCount, t.RNRRetry, t.InitiatorDepth
		return m, true
	}
	return m, false
}

func (t *Attributes) toRTR(m *command.ModifyQP, typ command.QPType) {
	m.Mask |= command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN
	m.Route = command.AddressVector{
		Addr: command.AddrFrom(t.RemoteGID), TrafficClass: t.TrafficClass,
		HopLimit: t.HopLimit, SL: t.SL & 7, FlowLabel: t.FlowLabel, SrcPort: t.SrcPort,
	}
	if t.RemoteLID != 0 {
		m.Mask |= command.MaskPKey // the path's P_Key, which was not known before
		m.Route.LID, m.Route.SL = uint16(t.RemoteLID), t.SL
	}
	m.MTU, m.DestQPN, m.RQPSN = uint32(t.MTU.Bytes()), t.RemoteQPN, uint32(t.RQPSN)
	if typ == command.RC || typ == command.XRCTarget {
		m.Mask |= command.MaskResponderResources | command.MaskMinRNRTimer
		m.ResponderResources, m.MinRNRTimer = t.ResponderResources, t.minRNRTimer()
	}
}

func (t *Attributes) minRNRTimer() uint8 {
	if t.PeerRNRRetry == unlimitedRetries {
		return rnrTimerUnlimited
	}
	return rnrTimerLimited
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// Command converts the event to that of a program. What only the adapter knows is missing: Object, Context,
// Adapter and Path.
func (e *Event) Command() command.Event {
	t := &e.Conn
	out := command.Event{
		Type: e.Type.Command(), Status: e.status(), Remote: command.EndpointFrom(e.Remote), Local: command.EndpointFrom(e.Local),
		Param: command.ConnParam{
			ResponderResources: t.ResponderResources, InitiatorDepth: t.InitiatorDepth, RetryCount: t.RetryCount,
			RNRRetry: t.RNRRetry, QPN: t.RemoteQPN, QKey: t.QKey, FlowControl: bit(e.PeerFlowControl), SRQ: bit(t.RemoteSRQ),
		},
	}
	if t.RemoteLID != 0 {
		out.LID, out.SL = uint16(t.RemoteLID), t.SL
	}
	out.Param.PrivateLen = uint8(copy(out.Param.Private[:], e.Private))
	return out
}

// status returns a REJ code for rejections (a SIDR status is mapped to the equivalent REJ code), and a
// command.Code for a missing answer; 0 for the end of a connection that the peer knows of.
func (e *Event) status() uint32 {
	switch e.Type {
	case EventUnreachable:
		switch e.Failure {
		case FailureRefused:
			return uint32(command.Refused)
		case FailureHost:
			return uint32(command.HostUnreachable)
		case FailureNetwork:
			return uint32(command.NetworkUnreachable)
		}
		return uint32(command.TimedOut)
	case EventDisconnected:
		if e.Failure == FailureTimeout {
			return uint32(command.TimedOut)
		}
		return 0
	case EventRejected:
		if e.Space != command.UDP {
			break
		}
		switch e.Status {
		case mad.SIDRUnsupportedService:
			return uint32(mad.RejectInvalidServiceID)
		case mad.SIDRNoQP:
			return uint32(mad.RejectNoQP)
		}
		return uint32(mad.RejectConsumer)
	}
	return uint32(e.Reason)
}

// CommandError converts an error of an engine's method to one of commands; nil stays nil.
func CommandError(err error) error {
	if err == nil {
		return nil
	}
	var ce *command.Error
	if errors.As(err, &ce) {
		return err
	}
	var field *FieldError
	code := command.Internal
	switch {
	case errors.As(err, &field):
		code = command.Invalid
	case errors.Is(err, ErrState):
		code = command.State
	case errors.Is(err, ErrNoID):
		code = command.State // the connection has ended
	case errors.Is(err, ErrPortInUse):
		code = command.InUse
	case errors.Is(err, ErrNoPorts), errors.Is(err, ErrTooManyIDs):
		code = command.Exhausted
	}
	return &command.Error{Code: code, Detail: err.Error()}
}
