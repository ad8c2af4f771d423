package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// CQRef names a completion queue to the driver of the engine; the engine only
// passes it on.
type CQRef uint32

// SendWR is a send request as the engine takes it from its queue.
type SendWR struct {
	// Route is where a datagram goes (UD): the address handle's. nil means that
	// the handle is not valid, and the request ends with a local QP operation error.
	Route *frame.Route
	ring.SendWR
}

// SendQueue is where the engine takes the send requests of a QP from. SendRing
// makes one of a ring.
type SendQueue interface {
	// Next takes the next posted request into wr; false when there is none. An
	// error means that the ring is corrupt: the QP ends in the Error state.
	Next(wr *SendWR) (bool, error)
	// Release gives back the n oldest requests taken. They have completed, and
	// inline data is not looked at again.
	Release(n int)
	// Pending returns how many requests wait to be taken.
	Pending() (int, error)
}

// RecvQueue is where the engine takes receive requests from: a QP's own ring or
// an SRQ that QPs share (which watches its limit itself). *ring.Recv is one.
type RecvQueue interface {
	Next(wr *ring.RecvWR) (bool, error)
	Pending() (int, error)
}

// SendRing is a SendQueue on a ring.
type SendRing struct {
	*ring.Send
	// Resolve finds the route of an address handle, nil if there is none. Only
	// UD queue pairs need it.
	Resolve func(ah uint32) *frame.Route
}

// Next implements SendQueue.
func (s *SendRing) Next(wr *SendWR) (bool, error) {
	ok, err := s.Send.Next(&wr.SendWR)
	wr.Route = nil
	if ok && s.Resolve != nil {
		wr.Route = s.Resolve(wr.AH)
	}
	return ok, err
}

// QPConfig is what a QP is made with.
type QPConfig struct {
	// Number is the QP number, from AllocateNumber. 0 allocates one.
	Number uint32
	Type   command.QPType
	PD     memory.PD
	// SendCQ and RecvCQ stand in the completions.
	SendCQ, RecvCQ CQRef
	Send           SendQueue
	Recv           RecvQueue
	// SRQ says that Recv is shared: no end-to-end credits, no flush of receives,
	// and a last-WQE event when the QP ends.
	SRQ bool
	// SignalAll makes every send request complete with a CQE.
	SignalAll bool
	// Context stands in the completions and events.
	Context uint64
	// MaxInline bounds inline data; 0 means ring.MaxInline.
	MaxInline int
}

// Completion is a completion for the CQ that it names. Timestamp is the time
// that the engine was told when it completed the request.
type Completion struct {
	CQ CQRef
	ring.CQE
}

// Event is an asynchronous event of a QP (IBA 11.6.3).
type Event struct {
	Type    command.EventType
	QP      *QP
	QPN     uint32
	Context uint64
}
