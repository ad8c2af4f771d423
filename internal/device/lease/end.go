package lease

import (
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

// End is one of the two connected queue pairs of a lease.
type End struct {
	Program                     *Program
	Engine                      *transport.Engine
	QP                          *transport.QP
	Send                        *ring.Send
	Recv                        *ring.Recv    // nil: its receives come from an SRQ
	RecvAt                      direct.RingAt // of Recv
	SendCQ, RecvCQ              Queue
	Handle, Number, Adapter, PD uint32
	Context                     uint64
	SignalAll                   bool
}

// sends reports whether the end may send. One that only receives may stay in RTR for good, as perftest's
// bandwidth servers do: its direction is not delegated.
func (e *End) sends() bool { return Sends(e.QP) }

// premature reports whether requests wait for the end to leave RTR, which the engine must handle.
func (e *End) premature() bool {
	n, err := e.Send.Pending()
	return !e.sends() && (n > 0 || err != nil)
}

// Queue is a completion queue of an end.
type Queue interface {
	// Direct reports whether programs may complete to it themselves.
	Direct() bool
	// At returns its ring, and Produced how many completions that has had.
	At() direct.RingAt
	Produced() uint32
	// Timestamps reports whether its completions say when they were made.
	Timestamps() bool
	// Channel reports whether its events go to a channel: then the driver raises them.
	Channel() bool
	// Raise raises an event for the channel.
	Raise()
	// Void cancels the claims of a dead program, and returns how many there were.
	Void(owner uint32) int
}

// Owner is the adapters that the ends belong to, as far as a lease depends on them.
type Owner interface {
	// Allow reports whether the policies of both allow to delegate the pair.
	Allow() bool
	// Apart reports whether the connection must use packets.
	Apart() bool
	// Fail ends a queue pair whose program corrupted its rings.
	Fail(end int)
	// Ended is told that the lease has ended.
	Ended()
}
