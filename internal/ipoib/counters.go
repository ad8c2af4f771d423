package ipoib

// Counters are the counters of an interface.
type Counters struct {
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
	SentMulticast                  uint64 // packets, including those to all nodes
	ReceivedMulticast              uint64
	DroppedDown                    uint64 // packets to be sent while disconnected
	DroppedLong                    uint64 // longer than the MTU
	DroppedInvalid                 uint64 // to be sent, but not IP packets
	DroppedNoRoute                 uint64 // neighbours and groups that could not be resolved
	DroppedFull                    uint64 // too many were waiting for a resolution
	ReceivedInvalid                uint64 // not an IPoIB datagram
	UnknownProtocol                uint64 // received, of a type that this package does not handle
	GroupsRefused                  uint64 // multicast groups for which there was no room
	Requests, Repeated, Unanswered uint64 // of the subnet administration
	Carried
}

// Carried is counted outside the engine, by whoever transfers its packets between the system and the port.
type Carried struct {
	SendQueueFull  uint64 // datagrams for which the queue pair had no room
	Queued         uint64 // datagrams currently being sent
	Recoveries     uint64 // times that the queue pair failed and was restarted
	SystemRefused  uint64 // packets that the system refused
	ChecksumErrors uint64 // packets received with a wrong checksum
	LargeSends     uint64 // large packets of the system that were segmented
	Segments       uint64 // the segments
	ChecksumsMade  uint64 // packets of the system that only lacked a checksum
	Joined         uint64 // packets for the system that were coalesced
	JoinedBytes    uint64 // in them
	JoinAborts     uint64 // times that coalescing ended for another reason than the length
	Coalesced      uint64 // from these segments
	Joining        uint64 // connections of which segments are being joined
}
