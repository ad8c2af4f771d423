package mad

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
)

// PortState is the logical state of a port (IBA 14.2.5.6).
type PortState uint8

// The port states. In a Set, PortStateNoChange leaves the state as it is.
const (
	PortStateNoChange PortState = 0
	PortDown          PortState = 1
	PortInit          PortState = 2
	PortArmed         PortState = 3
	PortActive        PortState = 4
)

// String returns the specification's name of the state.
func (s PortState) String() string { return nameOf(uint8(s), "port state", portStates[:]) }

var portStates = [...]string{"NoChange", "Down", "Initialize", "Armed", "Active"}

// PortPhysicalState is the state of a port's link training machine (IBA 14.2.5.6).
type PortPhysicalState uint8

// The physical states. In a Set, PhysicalNoChange leaves the state as it is.
const (
	PhysicalNoChange          PortPhysicalState = 0
	PhysicalSleep             PortPhysicalState = 1
	PhysicalPolling           PortPhysicalState = 2
	PhysicalDisabled          PortPhysicalState = 3
	PhysicalTraining          PortPhysicalState = 4
	PhysicalLinkUp            PortPhysicalState = 5
	PhysicalLinkErrorRecovery PortPhysicalState = 6
	PhysicalPhyTest           PortPhysicalState = 7
)

// String returns the specification's name of the state.
func (s PortPhysicalState) String() string {
	return nameOf(uint8(s), "physical state", physicalStates[:])
}

var physicalStates = [...]string{"NoChange", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery",
	"PhyTest"}

func nameOf(v uint8, what string, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s %d", what, v)
}

// Bits of PortInfo.CapabilityMask (IBA 14.2.5.6).
const (
	CapIsSM                                    = 1 << 1
	CapIsNoticeSupported                       = 1 << 2
	CapIsTrapSupported                         = 1 << 3
	CapIsOptionalIPDSupported                  = 1 << 4
	CapIsAutomaticMigrationSupported           = 1 << 5
	CapIsSLMappingSupported                    = 1 << 6
	CapIsMKeyNVRAM                             = 1 << 7
	CapIsPKeyNVRAM                             = 1 << 8
	CapIsLEDInfoSupported                      = 1 << 9
	CapIsSMDisabled                            = 1 << 10
	CapIsSystemImageGUIDSupported              = 1 << 11
	CapIsPKeySwitchExternalPortTrapSupported   = 1 << 12
	CapIsExtendedSpeedsSupported               = 1 << 14
	CapIsCapabilityMask2Supported              = 1 << 15
	CapIsCommunicationManagementSupported      = 1 << 16
	CapIsSNMPTunnelingSupported                = 1 << 17
	CapIsReinitSupported                       = 1 << 18
	CapIsDeviceManagementSupported             = 1 << 19
	CapIsVendorClassSupported                  = 1 << 20
	CapIsDRNoticeSupported                     = 1 << 21
	CapIsCapabilityMaskNoticeSupported         = 1 << 22
	CapIsBootManagementSupported               = 1 << 23
	CapIsLinkRoundTripLatencySupported         = 1 << 24
	CapIsClientReregistrationSupported         = 1 << 25
	CapIsOtherLocalChangesNoticeSupported      = 1 << 26
	CapIsLinkSpeedWidthPairsTableSupported     = 1 << 27
	CapIsVendorSpecificMadsTableSupported      = 1 << 28
	CapIsMulticastPKeyTrapSuppressionSupported = 1 << 29
	CapIsMulticastFDBTopSupported              = 1 << 30
	CapIsHierarchyInfoSupported                = 1 << 31
)

// Bits of PortInfo.CapabilityMask2 (IBA 14.2.5.6), valid if CapabilityMask has
// CapIsCapabilityMask2Supported.
const (
	Cap2IsSetNodeDescriptionSupported   = 1 << 0
	Cap2IsPortInfoExtendedSupported     = 1 << 1
	Cap2IsVirtualizationSupported       = 1 << 2
	Cap2IsSwitchPortStateTableSupported = 1 << 3
	Cap2IsLinkWidth2xSupported          = 1 << 4
	Cap2IsLinkSpeedHDRSupported         = 1 << 5
	Cap2IsMKeyProtectBitsExtSupported   = 1 << 6
	Cap2IsEnhancedTrap128Supported      = 1 << 7
	Cap2IsPartitionTopSupported         = 1 << 8
	Cap2IsLinkSpeedNDRSupported         = 1 << 10
	Cap2IsExtendedSpeeds2Supported      = 1 << 11
	Cap2IsLinkSpeedXDRSupported         = 1 << 12
)

// PortInfoLen is the length of a PortInfo attribute.
const PortInfoLen = 64

// PortInfo holds what a subnet manager reads and sets at a port (IBA 14.2.5.6).
type PortInfo struct {
	MKey                                                      uint64
	GIDPrefix                                                 uint64
	LID                                                       ib.LID
	MasterSMLID                                               ib.LID
	CapabilityMask                                            uint32
	DiagCode                                                  uint16
	MKeyLeasePeriod                                           uint16 // seconds; 0: the M_Key is protected forever
	LocalPortNum                                              uint8  // the port that received the request
	LinkWidthEnabled                                          uint8  // bits, see Width
	LinkWidthSupported                                        uint8
	LinkWidthActive                                           uint8
	LinkSpeedSupported                                        uint8 // 4 bits: see SpeedSDR, SpeedDDR, SpeedQDR
	PortState                                                 PortState
	PortPhysicalState                                         PortPhysicalState
	LinkDownDefaultState                                      PortPhysicalState // PhysicalSleep or PhysicalPolling
	MKeyProtectBits                                           uint8             // 2 bits
	LMC                                                       uint8             // 3 bits
	LinkSpeedActive                                           uint8             // 4 bits
	LinkSpeedEnabled                                          uint8             // 4 bits; 15: all that are supported
	NeighborMTU                                               ib.MTU            // 4 bits
	MasterSMSL                                                uint8             // 4 bits
	VLCap                                                     uint8             // 4 bits: 1 VL0, 2 VL0-1, 3 VL0-3, 4 VL0-7, 5 VL0-14
	InitType                                                  uint8             // 4 bits
	VLHighLimit                                               uint8
	VLArbitrationHighCap                                      uint8
	VLArbitrationLowCap                                       uint8
	InitTypeReply                                             uint8  // 4 bits
	MTUCap                                                    ib.MTU // 4 bits
	VLStallCount                                              uint8  // 3 bits
	HOQLife                                                   uint8  // 5 bits: 4.096 us times two to the power of it; above 19 unlimited
	OperationalVLs                                            uint8  // 4 bits, as VLCap
	PartitionEnforcementInbound, PartitionEnforcementOutbound bool
	FilterRawInbound, FilterRawOutbound                       bool
	MKeyViolations                                            uint16
	PKeyViolations                                            uint16
	QKeyViolations                                            uint16
	GUIDCap                                                   uint8 // GUIDs of the port
	ClientReregister                                          bool
	MulticastPKeyTrapSuppressionEnabled                       uint8 // 2 bits
	SubnetTimeOut                                             uint8 // 5 bits
	RespTimeValue                                             uint8 // 5 bits
	LocalPhyErrors                                            uint8 // 4 bits
	OverrunErrors                                             uint8 // 4 bits
	MaxCreditHint                                             uint16
	LinkSpeedExt2Active                                       uint8  // 3 bits: see SpeedXDR
	LinkSpeedExt2Supported                                    uint8  // 2 bits
	LinkSpeedExt2Enabled                                      uint8  // 3 bits
	LinkRoundTripLatency                                      uint32 // 24 bits
	CapabilityMask2                                           uint16
	LinkSpeedExtActive                                        uint8 // 4 bits: see SpeedFDR to SpeedNDR
	LinkSpeedExtSupported                                     uint8 // 4 bits
	LinkSpeedExtEnabled                                       uint8 // 5 bits; 31: all that are supported
}

// Append appends the attribute's PortInfoLen bytes to b.
func (i *PortInfo) Append(b []byte) []byte {
	b, p := zeros(b, PortInfoLen)
	put64(p[0:], i.MKey)
	put64(p[8:], i.GIDPrefix)
	put16(p[16:], uint16(i.LID))
	put16(p[18:], uint16(i.MasterSMLID))
	put32(p[20:], i.CapabilityMask)
	put16(p[24:], i.DiagCode)
	put16(p[26:], i.MKeyLeasePeriod)
	p[28], p[29], p[30], p[31] = i.LocalPortNum, i.LinkWidthEnabled, i.LinkWidthSupported, i.LinkWidthActive
	p[32] = i.LinkSpeedSupported<<4 | uint8(i.PortState)&15
	p[33] = uint8(i.PortPhysicalState)<<4 | uint8(i.LinkDownDefaultState)&15
	p[34] = i.MKeyProtectBits<<6 | i.LMC&7
	p[35] = i.LinkSpeedActive<<4 | i.LinkSpeedEnabled&15
	p[36] = uint8(i.NeighborMTU)<<4 | i.MasterSMSL&15
	p[37] = i.VLCap<<4 | i.InitType&15
	p[38], p[39], p[40] = i.VLHighLimit, i.VLArbitrationHighCap, i.VLArbitrationLowCap
	p[41] = i.InitTypeReply<<4 | uint8(i.MTUCap)&15
	p[42] = i.VLStallCount<<5 | i.HOQLife&31
	p[43] = i.OperationalVLs<<4 | flag(i.PartitionEnforcementInbound, 8) | flag(i.PartitionEnforcementOutbound, 4) |
		flag(i.FilterRawInbound, 2) | flag(i.FilterRawOutbound, 1)
	put16(p[44:], i.MKeyViolations)
	put16(p[46:], i.PKeyViolations)
	put16(p[48:], i.QKeyViolations)
	p[50] = i.GUIDCap
	p[51] = flag(i.ClientReregister, 0x80) | i.MulticastPKeyTrapSuppressionEnabled&3<<5 | i.SubnetTimeOut&31
	p[52] = i.RespTimeValue & 31
	p[53] = i.LocalPhyErrors<<4 | i.OverrunErrors&15
	put16(p[54:], i.MaxCreditHint)
	p[56] = i.LinkSpeedExt2Active<<5 | i.LinkSpeedExt2Supported&3<<3 | i.LinkSpeedExt2Enabled&7
	put24(p[57:], i.LinkRoundTripLatency)
	put16(p[60:], i.CapabilityMask2)
	p[62] = i.LinkSpeedExtActive<<4 | i.LinkSpeedExtSupported&15
	p[63] = i.LinkSpeedExtEnabled & 31
	return b
}

// ParsePortInfo reads the attribute from the start of b. The error is an *Error.
func ParsePortInfo(b []byte) (PortInfo, error) {
	if err := atLeast("PortInfo", b, PortInfoLen); err != nil {
		return PortInfo{}, err
	}
	return PortInfo{
		MKey: get64(b), GIDPrefix: get64(b[8:]), LID: ib.LID(get16(b[16:])), MasterSMLID: ib.LID(get16(b[18:])),
		CapabilityMask: get32(b[20:]), DiagCode: get16(b[24:]), MKeyLeasePeriod: get16(b[26:]),
		LocalPortNum: b[28], LinkWidthEnabled: b[29], LinkWidthSupported: b[30], LinkWidthActive: b[31],
		LinkSpeedSupported: b[32] >> 4, PortState: PortState(b[32] & 15),
		PortPhysicalState: PortPhysicalState(b[33] >> 4), LinkDownDefaultState: PortPhysicalState(b[33] & 15),
		MKeyProtectBits: b[34] >> 6, LMC: b[34] & 7,
		LinkSpeedActive: b[35] >> 4, LinkSpeedEnabled: b[35] & 15,
		NeighborMTU: ib.MTU(b[36] >> 4), MasterSMSL: b[36] & 15,
		VLCap: b[37] >> 4, InitType: b[37] & 15,
		VLHighLimit: b[38], VLArbitrationHighCap: b[39], VLArbitrationLowCap: b[40],
		InitTypeReply: b[41] >> 4, MTUCap: ib.MTU(b[41] & 15),
		VLStallCount: b[42] >> 5, HOQLife: b[42] & 31,
		OperationalVLs:              b[43] >> 4,
		PartitionEnforcementInbound: b[43]&8 != 0, PartitionEnforcementOutbound: b[43]&4 != 0,
		FilterRawInbound: b[43]&2 != 0, FilterRawOutbound: b[43]&1 != 0,
		MKeyViolations: get16(b[44:]), PKeyViolations: get16(b[46:]), QKeyViolations: get16(b[48:]),
		GUIDCap: b[50], ClientReregister: b[51]&0x80 != 0, MulticastPKeyTrapSuppressionEnabled: b[51] >> 5 & 3, SubnetTimeOut: b[51] & 31,
		RespTimeValue: b[52] & 31, LocalPhyErrors: b[53] >> 4, OverrunErrors: b[53] & 15, MaxCreditHint: get16(b[54:]),
		LinkSpeedExt2Active: b[56] >> 5, LinkSpeedExt2Supported: b[56] >> 3 & 3, LinkSpeedExt2Enabled: b[56] & 7,
		LinkRoundTripLatency: get24(b[57:]), CapabilityMask2: get16(b[60:]),
		LinkSpeedExtActive: b[62] >> 4, LinkSpeedExtSupported: b[62] & 15, LinkSpeedExtEnabled: b[63] & 31,
	}, nil
}
