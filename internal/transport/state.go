package transport

import "github.com/softvpi/softvpi/internal/command"

const allAttributes = command.MaskSQDNotify<<1 - 1

// masks are the attributes of a transition for RC, UC, UD, for the initiator and the target of XRC, and for raw packets, which
// have none.
type masks [6]command.QPMask

func forService(rc, uc, ud, initiator, target command.QPMask) masks {
	return masks{rc, uc, ud, initiator, target, 0}
}

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
		forService(command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskQKey,
			command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskAccess),
		masks{}},
	{command.Init, command.Init, masks{},
		forService(command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskQKey,
			command.MaskPKey|command.MaskAccess, command.MaskPKey|command.MaskAccess)},
	{command.Init, command.RTR,
		forService(connects|ofResponder, connects, 0, connects, connects|ofResponder),
		forService(command.MaskPKey|command.MaskAccess|command.MaskFlowControl, command.MaskPKey|command.MaskAccess,
			command.MaskPKey|command.MaskQKey, command.MaskPKey|command.MaskAccess|ofResponder, command.MaskPKey|command.MaskAccess)},
	{command.RTR, command.RTS,
		forService(command.MaskTimeout|command.MaskSQPSN|ofRequester,
			command.MaskSQPSN, command.MaskSQPSN,
			command.MaskTimeout|command.MaskSQPSN|ofRequester,
			command.MaskTimeout|command.MaskSQPSN),
		forService(command.MaskAccess|command.MaskMinRNRTimer|command.MaskFlowControl, command.MaskAccess, command.MaskQKey,
			command.MaskAccess|command.MaskMinRNRTimer, command.MaskAccess|command.MaskMinRNRTimer|ofRequester)},
	{command.RTS, command.RTS, masks{}, whileReady},
	{command.RTS, command.SQD, masks{},
		forService(command.MaskSQDNotify, command.MaskSQDNotify, command.MaskSQDNotify, command.MaskSQDNotify, command.MaskSQDNotify)},
	{command.SQD, command.RTS, masks{}, whileReady},
	{command.SQD, command.SQD, masks{},
		forService(command.MaskRoute|command.MaskTimeout|command.MaskRetry|command.MaskRNRRetry|command.MaskInitiatorDepth|
			command.MaskResponderResources|command.MaskAccess|command.MaskPKey|command.MaskMinRNRTimer,
			command.MaskRoute|command.MaskAccess|command.MaskPKey, command.MaskPKey|command.MaskQKey,
			command.MaskRoute|command.MaskTimeout|command.MaskRetry|command.MaskRNRRetry|command.MaskInitiatorDepth|
				command.MaskAccess|command.MaskPKey,
			command.MaskRoute|command.MaskTimeout|command.MaskResponderResources|command.MaskAccess|command.MaskPKey|
				command.MaskMinRNRTimer)},
	{command.SQE, command.RTS, masks{}, forService(0, command.MaskAccess, command.MaskQKey, 0, 0)},
}

// connects are the attributes that name the other end of a connection.
const connects = command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN

// ofResponder and ofRequester are those of one half of a reliable connection. XRC's other half takes them and has no use for
// them: programs such as perftest set the attributes of RC for both.
const (
	ofResponder = command.MaskResponderResources | command.MaskMinRNRTimer
	ofRequester = command.MaskRetry | command.MaskRNRRetry | command.MaskInitiatorDepth
)

// whileReady are those that may change while requests are carried out.
var whileReady = forService(command.MaskAccess|command.MaskMinRNRTimer, command.MaskAccess, command.MaskQKey,
	command.MaskAccess, command.MaskAccess|command.MaskMinRNRTimer)

// checkTransition refuses transitions that are not in the table. RC and XRC queue pairs never enter SQE, so they
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
