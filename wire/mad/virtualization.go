package mad

import "github.com/softvpi/softvpi/wire/ib"

// Lengths of the attributes of virtual ports, and of GeneralInfo.
const (
	GeneralInfoLen        = 16
	VirtualizationInfoLen = 8
	VPortInfoLen          = 28
	VPortStatesLen        = 64
	VNodeInfoLen          = 12
)

// GeneralInfoCapabilities is the attribute modifier of GeneralInfo that asks for the capabilities, and CapVirtualization the one of them
// that says that a port has virtual ports.
const (
	GeneralInfoCapabilities = 4
	CapVirtualization       = 15
)

// VPortsInBlock is how many virtual ports a block of VPortState has.
const VPortsInBlock = 128

// OfVPort is the attribute modifier for a block of a table of a virtual port: the virtual port in the upper half, the block in the lower.
func OfVPort(index, block uint16) uint32 { return uint32(index)<<16 | uint32(block) }

// GeneralInfo is the capability mask of the vendor's GeneralInfo (0xff17): bit n is bit n%32 of the word n/32.
type GeneralInfo [4]uint32

// Has reports whether a capability is there.
func (g *GeneralInfo) Has(bit int) bool { return g[bit/32]>>(bit%32)&1 != 0 }

// Append appends the attribute's GeneralInfoLen bytes to b.
func (g *GeneralInfo) Append(b []byte) []byte {
	b, p := zeros(b, GeneralInfoLen)
	for i, w := range g {
		put32(p[4*i:], w)
	}
	return b
}

// ParseGeneralInfo reads the attribute from the start of b. The error is an *Error.
func ParseGeneralInfo(b []byte) (g GeneralInfo, err error) {
	if err := atLeast("GeneralInfo", b, GeneralInfoLen); err != nil {
		return g, err
	}
	for i := range g {
		g[i] = get32(b[4*i:])
	}
	return g, nil
}

// VirtualizationInfo is what a port says of its virtual ports, and whether it may have any (0xffb0). A subnet manager that knows virtual
// ports sets Enable.
type VirtualizationInfo struct {
	Cap uint16 // highest index of a virtual port
	Top uint16 // highest index of one that is there
	// Enable says that virtual ports have states of their own. Reregister asks the clients of all to register again. StateChange says that
	// the state of one has changed since it was cleared, by setting it.
	Enable, Reregister, StateChange bool
	Revision, CapabilityMask        uint8
}

// Append appends the attribute's VirtualizationInfoLen bytes to b.
func (v *VirtualizationInfo) Append(b []byte) []byte {
	b, p := zeros(b, VirtualizationInfoLen)
	put16(p, v.Cap)
	put16(p[2:], v.Top)
	p[4] = flag(v.Enable, 0x80) | flag(v.Reregister, 0x40) | flag(v.StateChange, 0x20)
	p[6], p[7] = v.Revision, v.CapabilityMask
	return b
}

// ParseVirtualizationInfo reads the attribute from the start of b. The error is an *Error.
func ParseVirtualizationInfo(b []byte) (VirtualizationInfo, error) {
	if err := atLeast("VirtualizationInfo", b, VirtualizationInfoLen); err != nil {
		return VirtualizationInfo{}, err
	}
	return VirtualizationInfo{Cap: get16(b), Top: get16(b[2:]), Enable: b[4]&0x80 != 0, Reregister: b[4]&0x40 != 0,
		StateChange: b[4]&0x20 != 0, Revision: b[6], CapabilityMask: b[7]}, nil
}

// VPortInfo is a virtual port (0xffb1); the attribute modifier is its index.
type VPortInfo struct {
	State       PortState // 0 changes nothing
	Reregister  bool
	LIDRequired bool // it is to have a LID of its own
	GUIDCap     uint8
	// CapabilityMask is not that of PortInfo.
	CapabilityMask                 uint16
	PKeyViolations, QKeyViolations uint16
	LID                            ib.LID
	LIDByVPort                     uint16 // index of the virtual port whose LID it shares, if it requires none
	GUID, Profile                  uint64
}

// Append appends the attribute's VPortInfoLen bytes to b.
func (v *VPortInfo) Append(b []byte) []byte {
	b, p := zeros(b, VPortInfoLen)
	p[0], p[1] = byte(v.State)<<4|flag(v.Reregister, 0x08)|flag(v.LIDRequired, 0x04), v.GUIDCap
	put16(p[2:], v.CapabilityMask)
	put16(p[4:], v.PKeyViolations)
	put16(p[6:], v.QKeyViolations)
	put16(p[8:], uint16(v.LID))
	put16(p[10:], v.LIDByVPort)
	put64(p[12:], v.GUID)
	put64(p[20:], v.Profile)
	return b
}

// ParseVPortInfo reads the attribute from the start of b. The error is an *Error.
func ParseVPortInfo(b []byte) (VPortInfo, error) {
	if err := atLeast("VPortInfo", b, VPortInfoLen); err != nil {
		return VPortInfo{}, err
	}
	return VPortInfo{State: PortState(b[0] >> 4), Reregister: b[0]&0x08 != 0, LIDRequired: b[0]&0x04 != 0, GUIDCap: b[1],
		CapabilityMask: get16(b[2:]), PKeyViolations: get16(b[4:]), QKeyViolations: get16(b[6:]), LID: ib.LID(get16(b[8:])),
		LIDByVPort: get16(b[10:]), GUID: get64(b[12:]), Profile: get64(b[20:])}, nil
}

// VPortStates are the states of a block of virtual ports (0xffb3), by their indices; the attribute modifier is the block.
type VPortStates [VPortsInBlock]PortState

// Append appends the attribute's VPortStatesLen bytes to b.
func (v *VPortStates) Append(b []byte) []byte {
	b, p := zeros(b, VPortStatesLen)
	for i := range p {
		p[i] = byte(v[2*i])<<4 | byte(v[2*i+1])&15
	}
	return b
}

// ParseVPortStates reads the attribute from the start of b. The error is an *Error.
func ParseVPortStates(b []byte) (v VPortStates, err error) {
	if err := atLeast("VPortState", b, VPortStatesLen); err != nil {
		return v, err
	}
	for i, s := range b[:VPortStatesLen] {
		v[2*i], v[2*i+1] = PortState(s>>4), PortState(s&15)
	}
	return v, nil
}

// VNodeInfo is the virtual adapter of a virtual port (0xffb2); the attribute modifier is the index of the virtual port.
type VNodeInfo struct {
	PartitionCap           uint16 // rows of its partition tables
	LocalPortNum, NumPorts uint8
	GUID                   uint64
}

// Append appends the attribute's VNodeInfoLen bytes to b.
func (v *VNodeInfo) Append(b []byte) []byte {
	b, p := zeros(b, VNodeInfoLen)
	put16(p, v.PartitionCap)
	p[2], p[3] = v.LocalPortNum, v.NumPorts
	put64(p[4:], v.GUID)
	return b
}

// ParseVNodeInfo reads the attribute from the start of b. The error is an *Error.
func ParseVNodeInfo(b []byte) (VNodeInfo, error) {
	if err := atLeast("VNodeInfo", b, VNodeInfoLen); err != nil {
		return VNodeInfo{}, err
	}
	return VNodeInfo{PartitionCap: get16(b), LocalPortNum: b[2], NumPorts: b[3], GUID: get64(b[4:])}, nil
}
