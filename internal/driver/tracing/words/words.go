// Package words gives the records of the driver's traces their words, for the driver and for tools that read its files.
package words

import (
	"cmp"
	"fmt"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

// Adapters are the names of the adapters of a driver, in their order. They give its records their words.
type Adapters []string

// Adapter implements trace.Names.
func (n Adapters) Adapter(i int16) string {
	if i >= 0 && int(i) < len(n) {
		return n[i]
	}
	return "?"
}

// Name implements trace.Names.
func (n Adapters) Name(r trace.Record) (string, map[string]any) {
	switch r.Component {
	case trace.Driver:
		if int(r.Code) < len(catalogue.Events()) {
			return catalogue.Events()[r.Code].Symbol, map[string]any{"sequence": r.A} // of the event log, which has the text
		}
	case trace.Commands:
		args := map[string]any{"pid": r.A}
		if r.B != 0 {
			args["error"] = command.Code(r.B).String()
		}
		return proto.Opcode(r.Code).String(), args
	case trace.Loop:
		return "turn", map[string]any{"arrived": r.A, "sent": r.B}
	case trace.Transport, trace.CM, trace.Link:
		return enginePoint(r)
	}
	return "?", nil
}

// stateNames are those of queue pairs, as softvpi status has them.
var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

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
		if int(v) < len(stateNames) {
			return stateNames[v]
		}
		return fmt.Sprint(v)
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
