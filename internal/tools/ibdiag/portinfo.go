package ibdiag

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/wire/mad"
)

// PortInfoFields returns the lines of a PortInfo. Without keys it hides the M_Key.
func PortInfoFields(keys bool) []Field[mad.PortInfo] {
	type P = mad.PortInfo
	return []Field[P]{
		{"Mkey", func(p *P) string {
			if !keys {
				return NotDisplayed
			}
			return Hex64(p.MKey)
		}},
		{"GidPrefix", func(p *P) string { return Hex64(p.GIDPrefix) }},
		{"Lid", func(p *P) string { return dec(p.LID) }},
		{"SMLid", func(p *P) string { return dec(p.MasterSMLID) }},
		{"CapMask", func(p *P) string { return mask(p.CapabilityMask, capabilities) }},
		{"DiagCode", func(p *P) string { return fmt.Sprintf("0x%04x", p.DiagCode) }},
		{"MkeyLeasePeriod", func(p *P) string { return dec(p.MKeyLeasePeriod) }},
		{"LocalPort", func(p *P) string { return dec(p.LocalPortNum) }},
		{"LinkWidthEnabled", func(p *P) string { return widths(p.LinkWidthEnabled) }},
		{"LinkWidthSupported", func(p *P) string { return widthsSupported(p.LinkWidthSupported) }},
		{"LinkWidthActive", func(p *P) string { return widthText(p.LinkWidthActive) }},
		{"LinkSpeedSupported", func(p *P) string { return speeds(p.LinkSpeedSupported) }},
		{"LinkState", func(p *P) string { return portState(p.PortState) }},
		{"PhysLinkState", func(p *P) string { return physicalState(p.PortPhysicalState) }},
		{"LinkDownDefState", func(p *P) string { return downState(p.LinkDownDefaultState) }},
		{"ProtectBits", func(p *P) string { return dec(p.MKeyProtectBits) }},
		{"LMC", func(p *P) string { return dec(p.LMC) }},
		{"LinkSpeedActive", func(p *P) string { return speedText(p.LinkSpeedActive) }},
		{"LinkSpeedEnabled", func(p *P) string { return speeds(p.LinkSpeedEnabled) }},
		{"NeighborMTU", func(p *P) string { return MTU(p.NeighborMTU) }},
		{"SMSL", func(p *P) string { return dec(p.MasterSMSL) }},
		{"VLCap", func(p *P) string { return lanes(p.VLCap, "?(0)") }},
		{"InitType", func(p *P) string { return fmt.Sprintf("0x%02x", p.InitType) }},
		{"VLHighLimit", func(p *P) string { return dec(p.VLHighLimit) }},
		{"VLArbHighCap", func(p *P) string { return dec(p.VLArbitrationHighCap) }},
		{"VLArbLowCap", func(p *P) string { return dec(p.VLArbitrationLowCap) }},
		{"InitReply", func(p *P) string { return fmt.Sprintf("0x%02x", p.InitTypeReply) }},
		{"MtuCap", func(p *P) string { return MTU(p.MTUCap) }},
		{"VLStallCount", func(p *P) string { return dec(p.VLStallCount) }},
		{"HoqLife", func(p *P) string { return dec(p.HOQLife) }},
		{"OperVLs", func(p *P) string { return lanes(p.OperationalVLs, "No change") }},
		{"PartEnforceInb", func(p *P) string { return bit(p.PartitionEnforcementInbound) }},
		{"PartEnforceOutb", func(p *P) string { return bit(p.PartitionEnforcementOutbound) }},
		{"FilterRawInb", func(p *P) string { return bit(p.FilterRawInbound) }},
		{"FilterRawOutb", func(p *P) string { return bit(p.FilterRawOutbound) }},
		{"MkeyViolations", func(p *P) string { return dec(p.MKeyViolations) }},
		{"PkeyViolations", func(p *P) string { return dec(p.PKeyViolations) }},
		{"QkeyViolations", func(p *P) string { return dec(p.QKeyViolations) }},
		{"GuidCap", func(p *P) string { return dec(p.GUIDCap) }},
		{"ClientReregister", func(p *P) string { return bit(p.ClientReregister) }},
		{"McastPkeyTrapSuppressionEnabled", func(p *P) string { return dec(p.MulticastPKeyTrapSuppressionEnabled) }},
		{"SubnetTimeout", func(p *P) string { return dec(p.SubnetTimeOut) }},
		{"RespTimeVal", func(p *P) string { return dec(p.RespTimeValue) }},
		{"LocalPhysErr", func(p *P) string { return dec(p.LocalPhyErrors) }},
		{"OverrunErr", func(p *P) string { return dec(p.OverrunErrors) }},
		{"MaxCreditHint", func(p *P) string { return dec(p.MaxCreditHint) }},
		{"RoundTrip", func(p *P) string { return dec(p.LinkRoundTripLatency) }},
		{"CapabilityMask2", func(p *P) string { return mask(uint32(p.CapabilityMask2), capabilities2) }},
		{"LinkSpeedExtActive", func(p *P) string { return speedExtText(p.LinkSpeedExtActive) }},
		{"LinkSpeedExtSupported", func(p *P) string { return speedsExt(p.LinkSpeedExtSupported) }},
		{"LinkSpeedExtEnabled", func(p *P) string { return speedsExtEnabled(p.LinkSpeedExtEnabled) }},
	}
}

// PortInfoLines returns all lines of a PortInfo; those of the speed XDR only if the port supports it.
func PortInfoLines(prefix string, p *mad.PortInfo, keys bool) string {
	text := Lines(prefix, p, PortInfoFields(keys))
	if p.LinkSpeedExt2Supported == 0 && p.LinkSpeedExt2Active == 0 {
		return text
	}
	return text + Lines(prefix, p, xdrFields)
}

// xdrFields are the lines of the fields for the speed XDR.
var xdrFields = []Field[mad.PortInfo]{
	{"LinkSpeedExtActive2", func(p *mad.PortInfo) string {
		if p.LinkSpeedExt2Active == 0 {
			return "No Extended Speed 2"
		}
		return speedsExt2(p.LinkSpeedExt2Active)
	}},
	{"LinkSpeedExtSupported2", func(p *mad.PortInfo) string { return speedsExt2(p.LinkSpeedExt2Supported) }},
	{"LinkSpeedExtEnabled2", func(p *mad.PortInfo) string { return speedsExt2(p.LinkSpeedExt2Enabled) }},
}

func undefined(v uint8) string { return fmt.Sprintf("undefined (%d)", v) }

// list returns the names of the bits in v, or the value if it has none, or one without a name.
func list(v uint8, names ...string) string {
	var have []string
	for i, n := range names {
		if v>>i&1 != 0 {
			have = append(have, n)
		}
	}
	if v == 0 || v>>len(names) != 0 {
		return strings.Join(append(have, undefined(v)), " or ")
	}
	return strings.Join(have, " or ")
}

func widths(v uint8) string { return list(v, "1X", "4X", "8X", "12X", "2X") }

// widthsSupported marks sets that IBA does not define: all of its sets include 1X (IBA 14.2.5.6).
func widthsSupported(v uint8) string {
	switch v {
	case 1, 3, 7, 11, 15, 17, 19, 23, 27, 31:
		return widths(v)
	}
	if v>>5 == 0 {
		return widths(v) + " (IBA extension)"
	}
	return widths(v)
}

// widthText returns the name of one width.
func widthText(v uint8) string {
	if n := mad.Lanes(v); n != 0 {
		return fmt.Sprintf("%dX", n)
	}
	return undefined(v)
}

// speedText returns the name of one speed of LinkSpeedActive.
func speedText(v uint8) string {
	switch v {
	case 0:
		return "Extended speed"
	case 1:
		return "2.5 Gbps"
	case 2:
		return "5.0 Gbps"
	case 4:
		return "10.0 Gbps"
	}
	return undefined(v)
}

func speeds(v uint8) string {
	text := list(v, "2.5 Gbps", "5.0 Gbps", "10.0 Gbps")
	if v&1 == 0 && v>>3 == 0 { // all sets of IBA include 2.5 Gbps
		return text + " (IBA extension)"
	}
	return text
}

// speedExtText returns the name of one speed of LinkSpeedExtActive.
func speedExtText(v uint8) string {
	switch v {
	case 0:
		return "No Extended Speed"
	case 1, 2, 4, 8:
		return speedsExt(v)
	}
	return undefined(v)
}

func speedsExt(v uint8) string {
	if v == 0 {
		return "0"
	}
	return list(v, "14.0625 Gbps", "25.78125 Gbps", "53.125 Gbps", "106.25 Gbps")
}

func speedsExtEnabled(v uint8) string {
	if v == 30 {
		return "Extended link speeds disabled"
	}
	return speedsExt(v)
}

func speedsExt2(v uint8) string {
	if v == 0 {
		return "0"
	}
	return list(v, "212.5 Gbps")
}

// portState returns the name of a logical state.
func portState(s mad.PortState) string {
	if s <= mad.PortActive {
		return s.String()
	}
	return fmt.Sprintf("?(%d)", uint8(s))
}

// physicalState returns the name of a physical state.
func physicalState(s mad.PortPhysicalState) string {
	if s <= mad.PhysicalPhyTest {
		return s.String()
	}
	return fmt.Sprintf("?(%d)", uint8(s))
}

func downState(s mad.PortPhysicalState) string {
	if s <= mad.PhysicalPolling {
		return s.String()
	}
	return fmt.Sprintf("?(%d)", uint8(s))
}

func lanes(v uint8, none string) string {
	switch v {
	case 0:
		return none
	case 1:
		return "VL0"
	case 2, 3, 4:
		return fmt.Sprintf("VL0-%d", 1<<(v-1)-1)
	case 5:
		return "VL0-14"
	}
	return fmt.Sprintf("?(%d)", v)
}

// mask returns a number with a line for each of its bits that has a name.
func mask(v uint32, names map[int]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "0x%x", v)
	for i := range 32 {
		if n := names[i]; v>>i&1 != 0 && n != "" {
			b.WriteString("\n\t\t\t\t" + n)
		}
	}
	return b.String()
}

// capabilities are the bits of CapabilityMask, with the spelling of infiniband-diags.
var capabilities = map[int]string{
	1: "IsSM", 2: "IsNoticeSupported", 3: "IsTrapSupported", 4: "IsOptionalIPDSupported", 5: "IsAutomaticMigrationSupported",
	6: "IsSLMappingSupported", 7: "IsMKeyNVRAM", 8: "IsPKeyNVRAM", 9: "IsLedInfoSupported", 10: "IsSMdisabled",
	11: "IsSystemImageGUIDsupported", 12: "IsPkeySwitchExternalPortTrapSupported", 14: "IsExtendedSpeedsSupported",
	15: "IsCapabilityMask2Supported", 16: "IsCommunicatonManagementSupported", 17: "IsSNMPTunnelingSupported",
	18: "IsReinitSupported", 19: "IsDeviceManagementSupported", 20: "IsVendorClassSupported", 21: "IsDRNoticeSupported",
	22: "IsCapabilityMaskNoticeSupported", 23: "IsBootManagementSupported", 24: "IsLinkRoundTripLatencySupported",
	25: "IsClientRegistrationSupported", 26: "IsOtherLocalChangesNoticeSupported", 27: "IsLinkSpeedWidthPairsTableSupported",
	28: "IsVendorSpecificMadsTableSupported", 29: "IsMcastPkeyTrapSuppressionSupported", 30: "IsMulticastFDBTopSupported",
	31: "IsHierarchyInfoSupported",
}

// capabilities2 are the bits of CapabilityMask2.
var capabilities2 = map[int]string{
	0: "IsSetNodeDescriptionSupported", 1: "IsPortInfoExtendedSupported", 2: "IsVirtualizationSupported",
	3: "IsSwitchPortStateTableSupported", 4: "IsLinkWidth2xSupported", 5: "IsLinkSpeedHDRSupported",
	6: "IsMKeyProtectBitsExtSupported", 7: "IsEnhancedTrap128Supported", 8: "IsPartitionTopSupported",
	9: "IsEnhancedQoSArbiterSupported", 10: "IsLinkSpeedNDRSupported",
}
