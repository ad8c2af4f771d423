package link

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Port is an InfiniBand port as its fabric and the subnet manager have set it, at one moment. Whoever gets one may
// keep it; nobody changes the slices.
type Port struct {
	State    mad.PortState
	Physical mad.PortPhysicalState
	LID      ib.LID // base LID; 0 before the subnet manager has come
	LMC      uint8  // the port has 1<<LMC LIDs from LID on
	SMLID    ib.LID // of the master subnet manager; 0: none yet
	SMSL     uint8
	Prefix   uint64 // the subnet's, of every GID
	NodeGUID uint64
	GUIDs    []uint64  // GUIDInfo: the first is the port's own, zeros are empty rows
	PKeys    []ib.PKey // the table as the subnet manager wrote it, empty rows as 0
	SLtoVL   [16]uint8 // virtual lane of each service level on the way out; 15: such packets are dropped
	MTU      ib.MTU    // active (NeighborMTU)
	MaxMTU   ib.MTU    // that the port is made for (MTUCap)
	Width    mad.Width // active
	Speed    mad.Speed // active
	// Capabilities is the CapabilityMask, SubnetTimeout the code of PortInfo.
	Capabilities  uint32
	SubnetTimeout uint8
	// Fabric tells fabrics apart: it is comparable, and ports of one fabric have equal ones.
	Fabric any
	// Reregister counts how often the subnet manager asked the port's clients to register again.
	Reregister uint64
}

// ViolationKind is what was wrong with a packet.
type ViolationKind uint8

// The violations, by the traps that tell the subnet manager of them (IBA 14.2.5.1).
const (
	PKeyViolation ViolationKind = iota + 1 // trap 257
	QKeyViolation                          // trap 258
)

// Violation is a packet that a port has refused.
type Violation struct {
	Kind             ViolationKind
	Key              uint32 // the one that was wrong
	SLID, DLID       ib.LID
	SL               uint8
	SourceQP, DestQP ib.QPN // SourceQP is 0 where the packet does not tell it
	SGID, DGID       ib.GID // zero without a GRH
}

// InfiniBand is a Link of a port of an InfiniBand fabric: Capabilities say Raw and InfiniBand, and frames
// run from the LRH to the ICRC. (The VCRC belongs to each hop, and so to whatever carries the frames on.)
// What is sent to a LID of the port itself arrives at it again.
type InfiniBand interface {
	Link
	// Changes counts what has changed in Port; it may be asked for at every turn. Notify,
	// or a descriptor, tells of changes too.
	Changes() uint64
	// Port returns the port as it is now.
	Port() Port
	// Violation tells the port's node of a refused packet, which counts it and tells the subnet manager.
	Violation(v Violation)
}
