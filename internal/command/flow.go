package command

// FlowType is what a flow of a raw packet QP takes, as ibv_create_flow numbers it.
type FlowType uint32

// The types of flows.
const (
	// FlowNormal takes frames that its rule matches.
	FlowNormal FlowType = iota
	// FlowAllDefault takes frames that nothing else takes, FlowMulticastDefault those of them that are to groups.
	FlowAllDefault
	FlowMulticastDefault
	// FlowSniffer is given a copy of every frame that the port receives or sends, and takes none.
	FlowSniffer
)

// FlowLayers are the protocols that a rule asks for.
type FlowLayers uint8

// The layers. TCP and UDP exclude each other, as do IPv4 and IPv6.
const (
	FlowEthernet FlowLayers = 1 << iota
	FlowIPv4
	FlowIPv6
	FlowTCP
	FlowUDP
)

// FlowKey are the fields of a frame that rules look at. Numbers are in the processor's order.
type FlowKey struct {
	Dst, Src         [6]byte // MACs
	EtherType        uint16  // behind tags
	VLAN             uint16  // control information of the first tag; 0: there is none
	SrcAddr, DstAddr [16]byte
	FlowLabel        uint32 // IPv6
	SrcPort, DstPort uint16 // TCP or UDP
	Protocol         uint8  // IPv4 protocol, or IPv6 next header
	Class            uint8  // IPv4 type of service, or IPv6 traffic class
	Hops             uint8  // IPv4 time to live, or IPv6 hop limit
	IPFlags          uint8  // the three flags of IPv4
}

// CreateFlow steers frames of a port to a raw packet QP. A rule is for the bits of its Value that are set in its Mask, in frames
// that have its layers. IPv4 addresses are the first four bytes of SrcAddr and DstAddr.
type CreateFlow struct {
	QP          Handle // of a raw packet QP, or of what CreateRSS makes
	Type        FlowType
	Priority    uint16 // smaller ones come first; those of one priority all take a frame that they match
	Layers      FlowLayers
	_           uint8
	_           uint32
	Value, Mask FlowKey // zero unless Type is FlowNormal, as Layers and Priority are
}

// MostRSSEntries is how many entries a table of CreateRSS has at most, and RSSKeyLen the length of its key.
const (
	MostRSSEntries = 128
	RSSKeyLen      = 40
)

// MostHeaders is how many bytes of headers a large send has at most.
const MostHeaders = 128

// RSSFields are the fields of a frame that a hash is made over, as ibv_rx_hash_fields numbers them.
type RSSFields uint32

// The fields. Those of TCP and UDP, and those of IPv4 and IPv6, exclude each other.
const (
	RSSSrcIPv4 RSSFields = 1 << iota
	RSSDstIPv4
	RSSSrcIPv6
	RSSDstIPv6
	RSSSrcTCP
	RSSDstTCP
	RSSSrcUDP
	RSSDstUDP
	// RSSPresent makes the hash over those of the fields that a frame has, as a card's host has it: then those of IPv4 and IPv6, and
	// of TCP and UDP, may be given together, and only a frame that has none is for the first entry.
	RSSPresent
)

// CreateRSS spreads the frames of flows over raw packet QPs of one adapter: the hash of a frame chooses an entry. A frame without the
// fields is for the first.
type CreateRSS struct {
	Entries uint32 // of Table, a power of two up to MostRSSEntries
	Fields  RSSFields
	Key     [RSSKeyLen]byte        // of the Toeplitz hash
	Table   [MostRSSEntries]Handle // raw packet QPs
}

// SetRSS changes the table of what CreateRSS has made, for frames that are received from now on.
type SetRSS struct {
	RSS     Handle
	Entries uint32 // of Table, a power of two up to MostRSSEntries
	Table   [MostRSSEntries]Handle
}

// FlowCounters count the frames of a flow.
type FlowCounters struct {
	Frames, Bytes uint64 // that its QP has got
	Lost          uint64 // that found no receive, or one that was too short
}

// FramePort describes a port of whole Ethernet frames.
type FramePort struct {
	MAC      [6]byte
	Offloads FrameOffloads // older drivers have none
	Longest  uint32        // longest frame in bytes without FCS, at the MTU that the wire has now
}

// FrameOffloads are what raw packet QPs of a port do for their programs.
type FrameOffloads uint16

// The offloads.
const (
	// FrameChecksums: sends with the flag Checksums leave with the checksums of IPv4, TCP and UDP, and completions of receives say if
	// those were found to be right.
	FrameChecksums FrameOffloads = 1 << iota
	// FrameLargeSends: large packets of TCP are cut (ring.OpLargeSend).
	FrameLargeSends
	// FrameRSS: CreateRSS spreads frames.
	FrameRSS
	// FrameFlags: QPs have the flags of FrameQPFlags, SetFrameFlags, and QPBlockSelfMulticast.
	FrameFlags
)
