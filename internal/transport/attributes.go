package transport

import "github.com/softvpi/softvpi/internal/command"

// attributes are those of a queue pair as they were last set (command.ModifyQP).
type attributes struct {
	Access             uint32
	PKeyIndex          uint32
	QKey               uint32
	Route              command.AddressVector
	MTU                uint32
	Timeout            uint8
	Retry              uint8
	RNRRetry           uint8
	MinRNRTimer        uint8
	RQPSN, SQPSN       uint32
	InitiatorDepth     uint8
	ResponderResources uint8
	FlowControl        uint8
	SQDNotify          uint8
	DestQPN            uint32
}

// of returns them all, of a queue pair in a state.
func (a *attributes) of(state command.QPState) command.ModifyQP {
	return command.ModifyQP{Mask: allAttributes, State: state, Access: a.Access, PKeyIndex: a.PKeyIndex, QKey: a.QKey, Route: a.Route,
		MTU: a.MTU, Timeout: a.Timeout, Retry: a.Retry, RNRRetry: a.RNRRetry, MinRNRTimer: a.MinRNRTimer, RQPSN: a.RQPSN,
		SQPSN: a.SQPSN, InitiatorDepth: a.InitiatorDepth, ResponderResources: a.ResponderResources, FlowControl: a.FlowControl,
		SQDNotify: a.SQDNotify, DestQPN: a.DestQPN}
}
