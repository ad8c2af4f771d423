package ipoib

// Counters are what an interface counts.
type Counters struct {
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
	SentMulticast                  uint64 // packets, to all nodes too
	ReceivedMulticast              uint64
	DroppedDown                    uint64 // packets to send while disconnected
	DroppedLong                    uint64 // longer than the MTU
	DroppedInvalid                 uint64 // to send: no IP packet
	DroppedNoRoute                 uint64 // neighbours and groups that could not be resolved
	DroppedFull                    uint64 // too many waited for a resolution
	ReceivedInvalid                uint64 // no datagram of IPoIB
	UnknownProtocol                uint64 // received, of a type that is none of IPoIB's here
	GroupsRefused                  uint64 // multicast groups that there was no room for
	Requests, Repeated, Unanswered uint64 // of the subnet administration
	Carried
}

// Carried is what is counted around an engine, by whoever carries its packets between the system and the port.
type Carried struct {
	SendQueueFull  uint64 // datagrams that the queue pair had no room for
	Queued         uint64 // datagrams whose sending is not finished, now
	Recoveries     uint64 // times that the queue pair was in error, and was started again
	SystemRefused  uint64 // packets that the system did not take
	ChecksumErrors uint64 // packets received whose checksum is wrong
	LargeSends     uint64 // packets of the system that were cut
	Segments       uint64 // into these
	ChecksumsMade  uint64 // packets of the system that lacked only a checksum
	Joined         uint64 // packets for the system that were joined
	Coalesced      uint64 // of these segments
}
