package command

// PortSpace is an RDMA IP CM port space.
type PortSpace uint32

// The port spaces (IBA annex A11, and for IB those of Linux).
const (
	TCP PortSpace = 0x0106 // reliable and unreliable connections
	UDP PortSpace = 0x0111 // datagrams
	IB  PortSpace = 0x013f // connections, extended reliable ones too
)

// PortSpaces says which there are, for errors.
const PortSpaces = "0x106 (TCP), 0x111 (UDP) or 0x13f (IB)"

// Valid reports whether it is one of the port spaces.
func (s PortSpace) Valid() bool { return s == TCP || s == UDP || s == IB }

// AnyAdapter in CMCreate lets the address determine the adapter.
const AnyAdapter = 0xffffffff

// CMCreate creates a CM id. Adapter is where it may be bound, or AnyAdapter.
type CMCreate struct {
	Adapter uint32
	Space   PortSpace
	Context uint64
}

// ConnParam is what one side of a connection asks for.
type ConnParam struct {
	ResponderResources uint8
	InitiatorDepth     uint8
	FlowControl        uint8
	RetryCount         uint8 // 0 to 7
	RNRRetry           uint8 // 0 to 7
	SRQ                uint8
	PrivateLen         uint8
	_                  uint8
	QPN                uint32 // used if no QP handle is given
	QKey               uint32 // UD
	Private            [224]byte
}

// CMConnect starts a connection (TCP space) or a UD look-up (UDP space). With a QP handle the driver moves
// the QP through its states itself: to Init now, to RTR and RTS when the answer arrives, to Err when the
// connection ends.
type CMConnect struct {
	ID      Handle
	QP      Handle
	Remote  Endpoint
	Param   ConnParam
	Timeout uint32 // milliseconds for the whole attempt; 0: 10 s
	// If ID is 0 an id is created for the attempt, as by CMCreate with these values. Its events may come
	// before the answer, and are identified by Context. It is destroyed on error.
	Space   PortSpace
	Adapter uint32
	_       uint32
	Context uint64
}

// CMAccept answers a connection request.
type CMAccept struct {
	ID    Handle
	QP    Handle
	Param ConnParam
}

// CMReject refuses a connection request or response.
type CMReject struct {
	ID         Handle
	Reason     uint32 // CM reject code; 0: 28, consumer
	PrivateLen uint32
	Private    [148]byte
}

// CMInfo is the state of a CM id.
type CMInfo struct {
	Local, Remote Endpoint
	Adapter       uint32
	State         uint32
	QPN           uint32
	RemoteQPN     uint32
	SrcPort       uint32 // UDP source port of the connection
	_             uint32
}

// CMResolveAddr chooses the adapter and the source address for a destination, and binds an idle id to
// them. EventAddressResolved or EventAddressError follows.
type CMResolveAddr struct {
	ID      Handle
	_       uint32
	Local   Endpoint // no address: any
	Remote  Endpoint
	Timeout uint32 // milliseconds
	_       uint32
}

// CMResolveRoute asks for the path to the resolved destination. EventRouteResolved or EventRouteError
// follows.
type CMResolveRoute struct {
	ID      Handle
	Timeout uint32 // milliseconds
}

// CMJoin joins a multicast group; a QP, if given, then receives what is sent to it. EventMulticastJoined
// (Remote: the group; Param: QPN and QKey to send with) or EventMulticastError follows.
type CMJoin struct {
	ID    Handle
	QP    Handle // 0: none
	Group Addr
	Flags uint32 // JoinSendOnly
	_     uint32
}

// JoinSendOnly: the QP sends to the group but receives nothing from it.
const JoinSendOnly uint32 = 1

// CMLeave undoes CMJoin.
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
	OptionReuse                              // 1: ids that all set it share one port, until one of them listens
	OptionIPv6Only                           // 1: :: does not include IPv4 addresses
	OptionAckTimeout                         // local ACK timeout code, 0 to 31
	OptionQPType                             // QPType of the local QP, in the IB port space: RC, UC, XRCInitiator or XRCTarget
)

// CMOption sets an option of a CM id that is not connected yet.
type CMOption struct {
	ID     Handle
	Option CMOptionKind
	Value  uint32
	_      uint32
}

// CMNotify tells the CM of an event of an id's QP: EventCommunicationEstablished.
type CMNotify struct {
	ID    Handle
	Event EventType
}
