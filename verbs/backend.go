package verbs

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/direct"
)

// backend is what the adapters offer a program: the commands, and beside them
// the hooks of the data path. The embedded device's client and the attached
// client implement it.
type backend interface {
	command.Commands

	// Doorbell says that work was posted to a QP or SRQ.
	Doorbell(h command.Handle)
	// Poll drives the loop once where that is this process's business and it is
	// free, and offers the processor to others now and then. A program calls it
	// after each look in vain, idle in a row; the result says that it is worth
	// looking again at once.
	Poll(idle uint32) bool
	// Spins is how many looks in vain, each with a Poll, take some 50 us.
	Spins() int
	// WaitCQ waits until the event sequence of the CQ's ring is not seq, and
	// returns what it is then.
	WaitCQ(ctx context.Context, cq command.Handle, seq uint32) (uint32, error)
	// Arena returns the memory of ring arena id; nil where there is none.
	Arena(id uint32) []byte
	// Close ends the session: its objects are torn down.
	Close() error
}

var _ backend = (*device.Client)(nil)

// carrier is a backend whose answers and events come from another process, and are taken by
// whoever waits for one, for all.
type carrier interface {
	// Deliver has events go to take as they come, where it reports that it took them;
	// others go to Events. It must not wait for anything.
	Deliver(take func(*command.Event) bool)
	// Await waits until done is closed or has a token, which it takes. The error is that of ctx.
	Await(ctx context.Context, done <-chan struct{}) error
	// BeginConnect and BeginAccept do not wait for the answer to a command: then is told, and must
	// not wait for anything. An error means that nothing was begun.
	BeginConnect(ctx context.Context, q command.CMConnect, then func(command.Handle, error)) error
	BeginAccept(ctx context.Context, q command.CMAccept, then func(error)) error
}

// introducer is a backend that may let a QP carry its requests out in its peer's
// memory.
type introducer interface {
	// Direct returns where the initiator of a QP stands when there is one.
	Direct(qp command.Handle, number uint32) *direct.Slot
}

// sharer is a backend that hands out memory segments shared with the driver.
type sharer interface {
	// AllocSegment returns the number of a new shared segment of size bytes and
	// its mapping.
	AllocSegment(ctx context.Context, size uint64) (id uint32, mem []byte, err error)
	// FreeSegment gives a segment back.
	FreeSegment(id uint32) error
}
