package verbs

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/direct"
)

// backend is what the adapters offer a program: the commands and the hooks of the data path. It is
// implemented by the client of embedded adapters and by the client of a driver process.
type backend interface {
	command.Commands
	// CMResolveAddr is that of command.Extended.
	CMResolveAddr(ctx context.Context, r command.CMResolveAddr) error
	// Clock is that of command.Extended.
	Clock(ctx context.Context) (command.Clock, error)
	// Those of command.Extended for extended reliable connections.
	CMOption(ctx context.Context, r command.CMOption) error
	OpenXRCD(ctx context.Context, r command.OpenXRCD) (command.Handle, error)
	CreateXRCSRQ(ctx context.Context, r command.CreateXRCSRQ) (command.Queue, error)
	OpenQP(ctx context.Context, r command.OpenQP) (command.QueuePair, error)
	// CreateFlow is that of command.Extended.
	CreateFlow(ctx context.Context, r command.CreateFlow) (command.Handle, error)
	// Firmware is that of command.Extended.
	Firmware(ctx context.Context, adapter uint32) (command.Firmware, error)
	// LimitQP is that of command.Extended.
	LimitQP(ctx context.Context, r command.LimitQP) error
	// CreateRSS is that of command.Extended.
	CreateRSS(ctx context.Context, r command.CreateRSS) (command.Handle, error)
	// SetRSS is that of command.Extended.
	SetRSS(ctx context.Context, r command.SetRSS) error
	// SetFrameFlags is that of command.Extended.
	SetFrameFlags(ctx context.Context, r command.SetFrameFlags) error
	// FlowCounters and FramePort are those of command.Extended.
	FlowCounters(ctx context.Context, flow command.Handle) (command.FlowCounters, error)
	FramePort(ctx context.Context, adapter uint32) (command.FramePort, error)

	// Doorbell tells the adapter that work was posted to a QP or SRQ.
	Doorbell(h command.Handle)
	// Poll runs the adapters' loop once if this process is responsible for it and nobody else is running
	// it, and yields the processor now and then, to goroutines too. A program calls it after each empty poll; idle
	// is the number of empty polls in a row. The result reports whether it is worth polling again at once.
	Poll(idle uint32) bool
	// Spins returns how many empty polls, each with a call of Poll, are worthwhile before a wait.
	Spins() int
	// WaitCQ waits until the event sequence of the CQ's ring differs from seq and returns the new value.
	WaitCQ(ctx context.Context, cq command.Handle, seq uint32) (uint32, error)
	// SleepCQ is WaitCQ for a program that does not want to poll any more: it sleeps at once.
	SleepCQ(ctx context.Context, cq command.Handle, seq uint32) (uint32, error)
	// RouseCQ makes those look who wait for the CQ, after the program has advanced its sequence.
	RouseCQ(cq command.Handle)
	// Arena returns the memory of ring arena id, nil if there is none.
	Arena(id uint32) []byte
	// Close ends the session and destroys its objects.
	Close() error
}

var _ backend = (*device.Client)(nil)

// carrier is a backend whose answers and events come from another process. Whichever goroutine is waiting
// reads them, on behalf of all.
type carrier interface {
	// Deliver has events passed to take as they arrive. Those that take does not accept (false) go to
	// Events. take must not block.
	Deliver(take func(*command.Event) bool)
	// Await waits until done is closed or holds a token, which it consumes. Its error is that of ctx.
	Await(ctx context.Context, done <-chan struct{}) error
	// BeginConnect and BeginAccept do not wait for the answer to a command; it is passed to then, which
	// must not block. If they return an error, nothing was begun.
	BeginConnect(ctx context.Context, q command.CMConnect, then func(command.Handle, error)) error
	BeginAccept(ctx context.Context, q command.CMAccept, then func(error)) error
}

// introducer is a backend that may let a QP carry out its requests in its peer's memory itself.
type introducer interface {
	// Direct returns where the QP finds its initiator once it has one.
	Direct(qp command.Handle, number uint32) *direct.Slot
}

// placer is a backend that may be too old for atomic writes and flushes.
type placer interface {
	// Places reports whether the adapter has them.
	Places() bool
}

// sharer is a backend that hands out memory segments shared with the driver.
type sharer interface {
	// AllocSegment allocates a shared segment of size bytes and returns its number and mapping.
	AllocSegment(ctx context.Context, size uint64) (id uint32, mem []byte, err error)
	// FreeSegment frees a segment.
	FreeSegment(id uint32) error
}
