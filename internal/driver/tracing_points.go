package driver

import (
	"cmp"
	"fmt"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

// enginePoint gives a record of an engine its words.
func enginePoint(r trace.Record) (string, map[string]any) {
	name, args, values := trace.Describe(r)
	if name == "" {
		return "?", nil
	}
	words := make(map[string]any, len(args))
	for i, a := range args {
		words[a.Name] = word(a.Kind, values[i])
	}
	return name, words
}

// word returns an argument as it is shown.
func word(k trace.Kind, v uint32) any {
	switch k {
	case trace.State:
		return pick(stateNames[:], v)
	case trace.Syndrome:
		return ib.Syndrome(v).String()
	case trace.Opcode:
		return ib.Opcode(v).String()
	case trace.Status:
		return ring.Status(v).String()
	case trace.Verdict:
		return transport.Verdict(v).String()
	case trace.Reason:
		return transport.Reason(v).String()
	case trace.ConnState:
		return cmp.Or(cm.StateName(v), fmt.Sprint(v))
	case trace.Priorities:
		return fmt.Sprintf("0x%02x", v)
	}
	return v
}
