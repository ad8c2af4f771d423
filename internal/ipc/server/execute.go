package server

import (
	"context"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// CommandLog is a Session that records the commands of its program. Its methods may be called from several goroutines at
// a time.
type CommandLog interface {
	// Begin is called before a command is carried out, with its body, which is valid until End.
	Begin(op proto.Opcode, body []byte) Begun
	// End is called afterwards with the answer's body, or the error: device.ErrWaits if the command was not carried out
	// after all and will come again, proto.ErrFrame if it was none.
	End(b Begun, reply []byte, err error)
}

// Begun is a command that is being carried out.
type Begun struct {
	Op      proto.Opcode
	At      time.Time
	Body    []byte
	Adapter int    // as far as the log knows it already
	Number  uint32 // the log's, by which it knows the command again; 0: none
	Note    uint64 // the log's own
}

// Execute carries out a command with a handler of its own, and has it recorded if s is a CommandLog.
func Execute(ctx context.Context, s Session, op proto.Opcode, body []byte) ([]byte, error) {
	return recorded(s, op, body, func() ([]byte, error) { return perform(ctx, s, op, body) })
}

// Relayed is a Session that hands commands on as they are, to a driver that is elsewhere.
type Relayed interface {
	// Relay carries out a command with a handler of its own.
	Relay(ctx context.Context, op proto.Opcode, body []byte) ([]byte, error)
}

// perform carries out a command with a handler of its own.
func perform(ctx context.Context, s Session, op proto.Opcode, body []byte) ([]byte, error) {
	if r, ok := s.(Relayed); ok {
		return r.Relay(ctx, op, body)
	}
	return handlers[op](ctx, s, body)
}

// recorded does what carries out a command, and has it recorded.
func recorded(s Session, op proto.Opcode, body []byte, do func() ([]byte, error)) ([]byte, error) {
	log, ok := s.(CommandLog)
	if !ok {
		return do()
	}
	b := log.Begin(op, body)
	reply, err := do()
	log.End(b, reply, err)
	return reply, err
}

// Handled returns the operations that Execute carries out. Attached programs have further ones, about memory that they
// share with the driver and channels; see Shared.
func Handled() (list []proto.Opcode) {
	for op, f := range handlers {
		if f != nil {
			list = append(list, proto.Opcode(op))
		}
	}
	return list
}

// Shared are the operations whose answers come with descriptors, or end what came with them.
var Shared = []proto.Opcode{proto.OpAllocSegment, proto.OpFreeSegment, proto.OpMapSegment, proto.OpCreateChannel,
	proto.OpAllocDM, proto.OpExport, proto.OpImport}
