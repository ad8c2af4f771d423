package command

// EventType says what happened.
type EventType uint32

// The events. Those up to EventPortDown are asynchronous verbs events (IBA 11.6.3).
const (
	EventCommunicationEstablished EventType = iota + 1
	EventSQDrained
	EventLastWQE
	EventQPFatal
	EventQPRequestError // local invalid request
	EventQPAccessError
	EventCQError
	EventSRQLimit
	EventSRQError
	EventPathMigrated
	EventGIDChange
	EventPortActive
	EventPortDown
	EventDeviceFatal // the adapter was disabled or is gone
	EventLIDChange   // this and the following ones occur on InfiniBand ports only
	EventPKeyChange
	EventSMChange
	EventClientReregister
)

// The CM events.
const (
	EventConnectRequest  EventType = iota + 64
	EventConnectResponse           // REP or SIDR_REP; call CMEstablish next for the TCP space
	EventEstablished
	EventRejected
	EventUnreachable // no answer in time, or an ICMP error; Status says which
	EventConnectError
	EventDisconnected
	EventTimewaitExit
	EventAddrChange
	EventDeviceRemoval
	EventMulticastJoined
	EventMulticastError
	EventAddressResolved // Remote is the chosen local endpoint
	EventAddressError    // Status is a Code
	EventRouteResolved   // on InfiniBand the private data is the PathRecord (IBA 15.2.5.16)
	EventRouteError      // Status is a Code
)

// Event is an event for a client.
type Event struct {
	Type    EventType
	Object  Handle // the QP, CQ, SRQ or CM id; for EventConnectRequest the listening id
	Context uint64 // Context of that object, as set at its creation
	NewID   Handle // EventConnectRequest: the id of the new connection
	Adapter uint32
	Status  uint32 // CM reject code, or a Code
	// LID, SL and Path are, as in AddressVector, the path to the peer of a datagram id, or to a multicast
	// group, on InfiniBand; otherwise 0.
	LID    uint16
	SL     uint8
	Path   uint8
	Remote Endpoint
	Local  Endpoint  // of the connection, in events of the CM
	Param  ConnParam // what the peer asked for, with its private data
}
