package transport

import "github.com/softvpi/softvpi/internal/command"

const allAttributes = command.MaskSQDNotify<<1 - 1

// masks are the attributes of a transition for RC, UC and UD.
type masks [3]command.QPMask

func forService(rc, uc, ud command.QPMask) masks { return masks{rc, uc, ud} }

// transition is a row of the table of IBA 11.2.5.2: the attributes that a state change requires and those
// that it also accepts.
type transition struct {
	from, to           command.QPState
	required, optional masks
}

// transitions omits those from any state to Reset and to Error, which are always legal and take no
// attributes. The specification leaves the end-to-end flow control bit to the connection manager; here it
// may come with RTR or RTS.
var transitions = [...]transition{
	{command.Reset, command.Init,
		forService(command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskQKey),
		masks{}},
	{command.Init, command.Init, masks{},
		forService(command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskQKey)},
	{command.Init, command.RTR,
		forService(command.MaskRoute|command.MaskMTU|command.MaskDestQPN|command.MaskRQPSN|command.MaskResponderResources|
			command.MaskMinRNRTimer,
			command.MaskRoute|command.MaskMTU|command.MaskDestQPN|command.MaskRQPSN, 0),
		forService(command.MaskPKey|command.MaskAccess|command.MaskFlowControl, command.MaskPKey|command.MaskAccess,
			command.MaskPKey|command.MaskQKey)},
	{command.RTR, command.RTS,
		forService(command.MaskTimeout|command.MaskRetry|command.MaskRNRRetry|command.MaskSQPSN|command.MaskInitiatorDepth,
			command.MaskSQPSN, command.MaskSQPSN),
		forService(command.MaskAccess|command.MaskMinRNRTimer|command.MaskFlowControl, command.MaskAccess, command.MaskQKey)},
	{command.RTS, command.RTS, masks{},
		forService(command.MaskAccess|command.MaskMinRNRTimer, command.MaskAccess, command.MaskQKey)},
	{command.RTS, command.SQD, masks{},
		forService(command.MaskSQDNotify, command.MaskSQDNotify, command.MaskSQDNotify)},
	{command.SQD, command.RTS, masks{},
		forService(command.MaskAccess|command.MaskMinRNRTimer, command.MaskAccess, command.MaskQKey)},
	{command.SQD, command.SQD, masks{},
		forService(command.MaskRoute|command.MaskTimeout|command.MaskRetry|command.MaskRNRRetry|command.MaskInitiatorDepth|
			command.MaskResponderResources|command.MaskAccess|command.MaskPKey|command.MaskMinRNRTimer,
			command.MaskRoute|command.MaskAccess|command.MaskPKey, command.MaskPKey|command.MaskQKey)},
	{command.SQE, command.RTS, masks{}, forService(0, command.MaskAccess, command.MaskQKey)},
}

// checkTransition refuses transitions that are not in the table. RC queue pairs never enter SQE, so they
// cannot leave it either.
func checkTransition(typ command.QPType, from, to command.QPState, m command.QPMask) error {
	m &^= command.MaskState
	if to == command.Reset || to == command.Err {
		if m != 0 {
			return &StateError{From: from, To: to, Extra: m}
		}
		return nil
	}
	for i := range transitions {
		t := &transitions[i]
		if t.from != from || t.to != to {
			continue
		}
		req, opt := t.required[typ-1], t.optional[typ-1]
		if missing := req &^ m; missing != 0 {
			return &StateError{From: from, To: to, Missing: missing}
		}
		if extra := m &^ (req | opt); extra != 0 {
			return &StateError{From: from, To: to, Extra: extra}
		}
		return nil
	}
	return &StateError{From: from, To: to}
}
