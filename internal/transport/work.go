package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/tagmatch"
)

// CQRef identifies a completion queue to the engine's driver; the engine only passes it on.
type CQRef uint32

// SendWR is a send request as taken from a SendQueue. It is not to be copied.
type SendWR struct {
	// Route is the destination of a datagram (UD), from its address handle. nil means that the handle is
	// invalid, and the request fails with a local QP operation error.
	Route *frame.Route
	// As is the completion of a request that the engine makes itself (see rendezvous); nil: its own.
	As *Completion
	ring.Work
	mem buffers
}

// Elements returns the room for the request's elements, of which NumSGE says the number.
func (wr *SendWR) Elements() []ring.SGE { return wr.mem.hold(min(int(wr.NumSGE), MaxSGE)) }

// SendQueue is where the engine takes a QP's send requests from. SendRing implements it on a ring.
type SendQueue interface {
	// Next takes the next posted request into wr; false if there is none. It fills in all of Work, Elements, Route, and As. An error
	// means that the ring is corrupt: the QP goes to the Error state.
	Next(wr *SendWR) (bool, error)
	// Release gives back the n oldest requests taken. They have completed, and their inline data is not
	// read any more.
	Release(n int)
	// Pending returns how many requests wait to be taken.
	Pending() (int, error)
}

// RecvQueue is where the engine takes receive requests from: a QP's own ring or an SRQ shared by QPs
// (which watches its limit itself). *ring.Recv implements it.
type RecvQueue interface {
	Next(wr *ring.RecvWR) (bool, error)
	Pending() (int, error)
}

// SendRing is a SendQueue on a ring.
type SendRing struct {
	*ring.Send
	// Resolve returns the route of an address handle, nil if there is none. Only UD queue pairs need it.
	Resolve func(ah uint32) *frame.Route
}

// Next implements SendQueue.
func (s *SendRing) Next(wr *SendWR) (bool, error) {
	ok, err := s.Send.Next(&wr.Work)
	if !ok {
		return false, err
	}
	s.Send.Elements(&wr.Work, wr.Elements())
	wr.Route, wr.As = nil, nil
	if s.Resolve != nil {
		wr.Route = s.Resolve(wr.AH)
	}
	return true, nil
}

// QPConfig configures a QP.
type QPConfig struct {
	// Number is the QP number, from AllocateNumber. 0 allocates one.
	Number uint32
	Type   command.QPType
	// PD is the protection domain; a target has those of its SRQs.
	PD memory.PD
	// Domain is the XRC domain of a target.
	Domain uint32
	// SendCQ and RecvCQ are copied into the completions.
	SendCQ, RecvCQ CQRef
	// Send is nil for a target, Recv for XRC.
	Send SendQueue
	Recv RecvQueue
	// SRQ says that Recv is shared: no end-to-end credits, receives are not flushed, and a last-WQE event
	// is raised when the QP ends.
	SRQ bool
	// Tags is the matching list of an SRQ that has one; RC only.
	Tags *tagmatch.List
	// SignalAll makes every send request generate a completion.
	SignalAll bool
	// Program takes the completions; nil: one that sleeps.
	Program *Program
	// BlockSelf keeps from a UD QP what it sends to groups that it is attached to itself, and from a raw packet QP the frames to groups
	// that it sends itself (QP.Sent).
	BlockSelf bool
	// Frames says what a raw packet QP does with what it receives: flags of command.FrameQPFlags.
	Frames uint32
	// Context is copied into the completions and events.
	Context uint64
	// MaxInline limits inline data in bytes; 0 means ring.MaxInline.
	MaxInline int
}

// Completion is a completion for the CQ that it names. Timestamp is the engine's time when it completed
// the request.
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
