package transport

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
)

// attributesFor returns a request to modify a QP with every attribute at a legal value.
func attributesFor(mask command.QPMask, to command.QPState) command.ModifyQP {
	return command.ModifyQP{
		Mask: mask | command.MaskState, State: to, MTU: 1024, DestQPN: 5, Timeout: 14, Retry: 7, RNRRetry: 7,
		MinRNRTimer: 12, InitiatorDepth: 1, ResponderResources: 1, QKey: 1,
	}
}

// bring creates a QP and takes it to a state by legal transitions.
func bring(t *testing.T, h *host, typ command.QPType, to command.QPState) *end {
	x := h.qp(typ, QPConfig{})
	path := map[command.QPState][]command.QPState{
		command.Init: {command.Init}, command.RTR: {command.Init, command.RTR}, command.RTS: {command.Init, command.RTR, command.RTS},
		command.SQD: {command.Init, command.RTR, command.RTS, command.SQD}, command.SQE: {command.Init, command.RTR, command.RTS},
		command.Err: {command.Err},
	}[to]
	for _, s := range path {
		var need command.QPMask
		for _, tr := range transitions {
			if tr.from == x.q.state && tr.to == s {
				need = tr.required[typ-1]
			}
		}
		x.modify(attributesFor(need, s), &frame.Route{Src: h.addr, Dst: h.addr})
	}
	if to == command.SQE {
		x.q.state = command.SQE // as a failed request of UC or UD does
	}
	return x
}

// TestTransitions tries every pair of states for every service and compares the result with the table of IBA
// 11.2.5.2. With all that a transition requires it is made; without any one of those attributes, or with one that it
// does not take, it is refused by a typed error and nothing changes.
func TestTransitions(t *testing.T) {
	legal := map[[2]command.QPState]bool{
		{command.Reset, command.Init}: true, {command.Init, command.Init}: true, {command.Init, command.RTR}: true,
		{command.RTR, command.RTS}: true, {command.RTS, command.RTS}: true, {command.RTS, command.SQD}: true,
		{command.SQD, command.SQD}: true, {command.SQD, command.RTS}: true, {command.SQE, command.RTS}: true,
	}
	h := newHost(t, nil, "10.0.0.1", Config{})
	for typ := command.RC; typ <= command.XRCTarget; typ++ {
		for from := command.Reset; from <= command.Err; from++ {
			if (typ == command.RC || typ.XRC()) && from == command.SQE {
				continue
			}
			for to := command.Reset; to <= command.Err; to++ {
				want := to == command.Reset || to == command.Err || legal[[2]command.QPState{from, to}]
				checkPair(t, h, typ, from, to, want)
			}
		}
	}
}

func checkPair(t *testing.T, h *host, typ command.QPType, from, to command.QPState, legal bool) {
	t.Helper()
	var required, optional command.QPMask
	for _, tr := range transitions {
		if tr.from == from && tr.to == to {
			required, optional = tr.required[typ-1], tr.optional[typ-1]
		}
	}
	route := &frame.Route{Src: h.addr, Dst: h.addr}
	try := func(mask command.QPMask) error {
		x := bring(t, h, typ, from)
		defer h.e.Destroy(0, x.q)
		err := h.e.Modify(0, x.q, attributesFor(mask, to), route)
		if err != nil && x.q.state != from {
			t.Errorf("type %d, %s to %s: state %s after an error", typ, stateName(from), stateName(to), stateName(x.q.state))
		}
		if err == nil && x.q.state != to {
			t.Errorf("type %d, %s to %s: no error, but the state is %s", typ, stateName(from), stateName(to), stateName(x.q.state))
		}
		return err
	}
	if err := try(required); (err == nil) != legal {
		t.Errorf("type %d, %s to %s: error %v; legal: %v", typ, stateName(from), stateName(to), err, legal)
	}
	if !legal {
		if err := try(required); !errors.Is(err, &command.Error{Code: command.State}) {
			t.Errorf("type %d, %s to %s: error %v is not of class State", typ, stateName(from), stateName(to), err)
		}
		return
	}
	if err := try(required | optional); err != nil {
		t.Errorf("type %d, %s to %s with all it takes: %v", typ, stateName(from), stateName(to), err)
	}
	for bit := command.MaskAccess; bit <= command.MaskSQDNotify; bit <<= 1 {
		var state *StateError
		switch err := try(required ^ bit); {
		case required&bit != 0 && (!errors.As(err, &state) || state.Missing != bit || state.Code() != command.Invalid):
			t.Errorf("type %d, %s to %s without %s: error %v, want one that names it as missing", typ, stateName(from), stateName(to),
				maskNames(bit), err)
		case required&bit == 0 && optional&bit == 0 && (!errors.As(err, &state) || state.Extra != bit):
			t.Errorf("type %d, %s to %s with %s: error %v, want one that names it as not allowed", typ, stateName(from), stateName(to),
				maskNames(bit), err)
		}
	}
}

// TestAttributeLimits: an attribute out of range is refused by an error that names it, and the state stays.
func TestAttributeLimits(t *testing.T) {
	h := newHost(t, nil, "10.0.0.1", Config{})
	for _, c := range []struct {
		name string
		set  func(*command.ModifyQP)
		from command.QPState
		to   command.QPState
	}{
		{"Access", func(m *command.ModifyQP) { m.Access = 0x80 }, command.Reset, command.Init},
		{"PKeyIndex", func(m *command.ModifyQP) { m.PKeyIndex = 1 }, command.Reset, command.Init},
		{"MTU", func(m *command.ModifyQP) { m.MTU = 1000 }, command.Init, command.RTR},
		{"DestQPN", func(m *command.ModifyQP) { m.DestQPN = 0x1000000 }, command.Init, command.RTR},
		{"RQPSN", func(m *command.ModifyQP) { m.RQPSN = 0x1000000 }, command.Init, command.RTR},
		{"ResponderResources", func(m *command.ModifyQP) { m.ResponderResources = MaxReadAtomic + 1 }, command.Init, command.RTR},
		{"MinRNRTimer", func(m *command.ModifyQP) { m.MinRNRTimer = 32 }, command.Init, command.RTR},
		{"Timeout", func(m *command.ModifyQP) { m.Timeout = 32 }, command.RTR, command.RTS},
		{"Retry", func(m *command.ModifyQP) { m.Retry = 8 }, command.RTR, command.RTS},
		{"RNRRetry", func(m *command.ModifyQP) { m.RNRRetry = 8 }, command.RTR, command.RTS},
		{"SQPSN", func(m *command.ModifyQP) { m.SQPSN = 0x1000000 }, command.RTR, command.RTS},
		{"InitiatorDepth", func(m *command.ModifyQP) { m.InitiatorDepth = MaxReadAtomic + 1 }, command.RTR, command.RTS},
	} {
		x := bring(t, h, command.RC, c.from)
		var need command.QPMask
		for _, tr := range transitions {
			if tr.from == c.from && tr.to == c.to {
				need = tr.required[0]
			}
		}
		m := attributesFor(need, c.to)
		c.set(&m)
		var e *command.Error
		err := h.e.Modify(0, x.q, m, &frame.Route{Src: h.addr, Dst: h.addr})
		if !errors.As(err, &e) || e.Code != command.Invalid || len(e.Detail) < len(c.name) || e.Detail[:len(c.name)] != c.name {
			t.Errorf("error %v, want one that names %s", err, c.name)
		}
		if x.q.state != c.from {
			t.Errorf("%s: a refused modification changed the state", c.name)
		}
	}
}
