package link

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// GUIDRows is how many rows the GUIDInfo of a port of ours has: 16 for its physical function, and 2 for each of 32 virtual ones.
const GUIDRows = 80

// Port is the state of an InfiniBand port at one moment, as set by its fabric and the subnet manager. The
// receiver may keep it; the slices are never modified.
type Port struct {
	State    mad.PortState
	Physical mad.PortPhysicalState
	LID      ib.LID // base LID; 0 until the subnet manager has set it
	LMC      uint8  // the port has 1<<LMC LIDs from LID on
	SMLID    ib.LID // of the master subnet manager; 0: none yet
	SMSL     uint8
	Prefix   uint64 // the subnet prefix of every GID
	NodeGUID uint64
	GUIDs    []uint64  // GUIDInfo: the first is the port's own, zeros are empty rows
	PKeys    []ib.PKey // the table as the subnet manager wrote it, empty rows as 0
	SLtoVL   [16]uint8 // virtual lane of each outgoing service level; 15: such packets are dropped
	MTU      ib.MTU    // active (NeighborMTU)
	MaxMTU   ib.MTU    // supported maximum (MTUCap)
	Width    mad.Width // active
	Speed    mad.Speed // active
	// Capabilities is the CapabilityMask, SubnetTimeout the code of PortInfo.
	Capabilities  uint32
	SubnetTimeout uint8
	// Fabric identifies the fabric: it is comparable, and equal for ports of one fabric.
	Fabric any
	// Reregister counts how often the subnet manager asked the port's clients to register again.
	Reregister uint64
	// Virtual are its virtual ports, and Virtualized says that the subnet manager lets them have states of their own.
	Virtual     []VirtualPort
	Virtualized bool
}

// VirtualPort is a virtual port, with a LID of its own, as set by the subnet manager.
type VirtualPort struct {
	Index      uint16 // from 1 on: 0 is the port itself
	GUID       uint64
	State      mad.PortState
	LID        ib.LID    // 0: none yet
	PKeys      []ib.PKey // up to VirtualKeys rows, empty ones as 0
	Reregister uint64
}

// VirtualKeys is how many rows of the partition table of a virtual port are told.
const VirtualKeys = 16

// VirtualPorts is an InfiniBand link whose port can have virtual ports.
type VirtualPorts interface {
	// SetVirtual says which there are from now on, by Index and GUID.
	SetVirtual(want []VirtualPort)
}

// ViolationKind says what was wrong with a packet.
type ViolationKind uint8

// The violations, by the traps that report them to the subnet manager (IBA 14.2.5.1).
const (
	PKeyViolation ViolationKind = iota + 1 // trap 257
	QKeyViolation                          // trap 258
)

// Violation is a packet that a port has refused.
type Violation struct {
	Kind             ViolationKind
	Key              uint32 // the wrong one
	SLID, DLID       ib.LID
	SL               uint8
	SourceQP, DestQP ib.QPN // SourceQP is 0 if the packet does not contain it
	SGID, DGID       ib.GID // zero without a GRH
}

// InfiniBand is the Link of a port of an InfiniBand fabric: Capabilities say Raw and InfiniBand and return it as
// Fabric, and frames extend from the LRH to the ICRC. (The VCRC changes at each hop and is left to whatever transmits
// the frames.) What is sent to a LID of the port itself arrives at the port.
type InfiniBand interface {
	Link
	// Changes counts the changes of Port; it is cheap enough to be called in every turn. Notify, or a
	// descriptor, signals changes too.
	Changes() uint64
	// Port returns the current state of the port.
	Port() Port
	// Violation reports a refused packet to the port's node, which counts it and tells the subnet manager.
	Violation(v Violation)
}
