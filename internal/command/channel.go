package command

import "context"

// ChannelKind is what a channel brings.
type ChannelKind uint32

// The kinds of channels.
const (
	Completions  ChannelKind = iota + 1 // of the CQs that were made with it, one for each event
	Connections                         // of the CM ids that were given it
	Asynchronous                        // of an adapter and of the program's objects on it
)

// CreateChannel asks for a channel: events that are not taken with Events but come to
// an end of their own, so that a program may wait for some of them alone.
type CreateChannel struct {
	Kind    ChannelKind
	Adapter uint32 // Asynchronous: whose
}

// RegisterMemoryAt asks for a region whose first byte has another address in work
// requests and packets than in the program.
type RegisterMemoryAt struct {
	RegisterMemory
	IOVA uint64
}

// CMSetChannel has the events of a CM id, and of the requests that it takes, come to a
// channel from now on.
type CMSetChannel struct{ ID, Channel Handle }

// CMResolveAddr chooses the adapter and the source address for a destination, and
// binds an idle id there. EventAddressResolved or EventAddressError follows.
type CMResolveAddr struct {
	ID      Handle
	_       uint32
	Local   Endpoint // no address: any
	Remote  Endpoint
	Timeout uint32 // milliseconds
	_       uint32
}

// CMResolveRoute asks for the way to the destination that was resolved.
// EventRouteResolved or EventRouteError follows.
type CMResolveRoute struct {
	ID      Handle
	Timeout uint32 // milliseconds
}

// CMJoin joins a multicast group, with a QP that then receives what is sent to it, or
// without. EventMulticastJoined (Remote: the group; Param: QPN and QKey to send with)
// or EventMulticastError follows.
type CMJoin struct {
	ID    Handle
	QP    Handle // 0: none
	Group Addr
	Flags uint32 // JoinSendOnly
	_     uint32
}

// JoinSendOnly: the QP sends to the group and receives nothing of it.
const JoinSendOnly uint32 = 1

// CMLeave ends what CMJoin began.
type CMLeave struct {
	ID    Handle
	QP    Handle
	Group Addr
}

// CMOptionKind is an option of a CM id.
type CMOptionKind uint32

// The options.
const (
	OptionTOS        CMOptionKind = iota + 1 // traffic class of the connection, 0 to 255
	OptionReuse                              // 1: ids that all have it hold one port, until one of them listens
	OptionIPv6Only                           // 1: :: does not mean IPv4 addresses
	OptionAckTimeout                         // local ACK timeout code, 0 to 31
)

// CMOption sets an option of a CM id that is not connected yet.
type CMOption struct {
	ID     Handle
	Option CMOptionKind
	Value  uint32
	_      uint32
}

// CMNotify tells the CM of an event of the QP of an id: EventCommunicationEstablished.
type CMNotify struct {
	ID    Handle
	Event EventType
}

// Extended is what the interface of librdmacm and libibverbs asks for beyond Commands.
// Errors are *Error.
type Extended interface {
	// CreateChannel makes a channel. Events of the kind Completions go to raise, which
	// must not block or call back, and says whether there was room; those that found none,
	// and all of the other kinds, are taken with ChannelEvents. Destroy ends it.
	CreateChannel(ctx context.Context, c CreateChannel, raise func(cq Handle) bool) (Handle, error)
	// ChannelEvents returns at least one event of a channel, at most len(out), waiting for
	// ctx. For a CQ's event Object is the CQ and the rest is 0. Canceled: the channel was destroyed.
	ChannelEvents(ctx context.Context, channel Handle, out []Event) (int, error)

	RegisterMemoryAt(ctx context.Context, r RegisterMemoryAt) (Memory, error)
	CMSetChannel(ctx context.Context, c CMSetChannel) error
	CMResolveAddr(ctx context.Context, c CMResolveAddr) error
	CMResolveRoute(ctx context.Context, c CMResolveRoute) error
	CMJoin(ctx context.Context, c CMJoin) error
	CMLeave(ctx context.Context, c CMLeave) error
	CMOption(ctx context.Context, c CMOption) error
	CMNotify(ctx context.Context, c CMNotify) error
}
