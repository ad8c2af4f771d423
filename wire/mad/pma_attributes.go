package mad

import "strconv"

// PMAttributes lists the attributes whose fields this package knows.
var PMAttributes = []*PMAttribute{
	PortSamplesControl, PortSamplesResult, PortCounters, PortCountersExtended, PortRcvErrorDetails,
	PortXmitDiscardDetails, PortOpRcvCounters, PortFlowCtlCounters, PortVLOpPackets, PortVLOpData,
	PortVLXmitFlowCtlUpdateErrors, PortVLXmitWaitCounters, PortExtendedSpeedsCounters, SwPortVLCongestion,
	PortRcvConCtrl, PortSLRcvFECN, PortSLRcvBECN, PortXmitConCtrl, PortVLXmitTimeCong, PortXmitDataSL, PortRcvDataSL,
}

// PortCounters are the counters that every port has (IBA 16.1.3.5).
var PortCounters = &PMAttribute{AttrPortCounters, "PortCounters", []PMAField{
	{"PortSelect", 8, 8, false},
	{"CounterSelect", 16, 16, true},
	{"SymbolErrorCounter", 32, 16, false},
	{"LinkErrorRecoveryCounter", 48, 8, false},
	{"LinkDownedCounter", 56, 8, false},
	{"PortRcvErrors", 64, 16, false},
	{"PortRcvRemotePhysicalErrors", 80, 16, false},
	{"PortRcvSwitchRelayErrors", 96, 16, false},
	{"PortXmitDiscards", 112, 16, false},
	{"PortXmitConstraintErrors", 128, 8, false},
	{"PortRcvConstraintErrors", 136, 8, false},
	{"CounterSelect2", 144, 8, true},
	{"LocalLinkIntegrityErrors", 152, 4, false},
	{"ExcessiveBufferOverrunErrors", 156, 4, false},
	{"QP1Dropped", 160, 16, false},
	{"VL15Dropped", 176, 16, false},
	{"PortXmitData", 192, 32, false},
	{"PortRcvData", 224, 32, false},
	{"PortXmitPkts", 256, 32, false},
	{"PortRcvPkts", 288, 32, false},
	{"PortXmitWait", 320, 32, false},
}}

// PortCountersExtended are the counters of 64 bits (IBA 16.1.4.11). Those from CounterSelect2 on exist if
// CapabilityMask2 has Cap2PMAdditionalExtended, the unicast and multicast ones if CapabilityMask has
// CapPMExtendedWidth.
var PortCountersExtended = &PMAttribute{AttrPortCountersExtended, "PortCountersExtended", []PMAField{
	{"PortSelect", 8, 8, false},
	{"CounterSelect", 16, 16, true},
	{"PortXmitData", 64, 64, false},
	{"PortRcvData", 128, 64, false},
	{"PortXmitPkts", 192, 64, false},
	{"PortRcvPkts", 256, 64, false},
	{"PortUnicastXmitPkts", 320, 64, false},
	{"PortUnicastRcvPkts", 384, 64, false},
	{"PortMulticastXmitPkts", 448, 64, false},
	{"PortMulticastRcvPkts", 512, 64, false},
	{"CounterSelect2", 32, 32, true},
	{"SymbolErrorCounter", 576, 64, false},
	{"LinkErrorRecoveryCounter", 640, 64, false},
	{"LinkDownedCounter", 704, 64, false},
	{"PortRcvErrors", 768, 64, false},
	{"PortRcvRemotePhysicalErrors", 832, 64, false},
	{"PortRcvSwitchRelayErrors", 896, 64, false},
	{"PortXmitDiscards", 960, 64, false},
	{"PortXmitConstraintErrors", 1024, 64, false},
	{"PortRcvConstraintErrors", 1088, 64, false},
	{"LocalLinkIntegrityErrors", 1152, 64, false},
	{"ExcessiveBufferOverrunErrors", 1216, 64, false},
	{"VL15Dropped", 1280, 64, false},
	{"PortXmitWait", 1344, 64, false},
	{"QP1Dropped", 1408, 64, false},
}}

// PortRcvErrorDetails says why received packets were bad (IBA 16.1.4.1).
var PortRcvErrorDetails = &PMAttribute{AttrPortRcvErrorDetails, "PortRcvErrorDetails",
	named(16, "PortLocalPhysicalErrors", "PortMalformedPktErrors", "PortBufferOverrunErrors", "PortDLIDMappingErrors",
		"PortVLMappingErrors", "PortLoopingErrors")}

// PortXmitDiscardDetails says why packets were not sent (IBA 16.1.4.2).
var PortXmitDiscardDetails = &PMAttribute{AttrPortXmitDiscardDetails, "PortXmitDiscardDetails",
	named(16, "PortInactiveDiscards", "PortNeighborMTUDiscards", "PortSwLifetimeLimitDiscards", "PortSwHOQLifetimeLimitDiscards")}

// PortOpRcvCounters count packets with the opcode that OpCode, the attribute's first byte, selects (IBA
// 16.1.4.3).
var PortOpRcvCounters = &PMAttribute{AttrPortOpRcvCounters, "PortOpRcvCounters", named(32, "PortOpRcvPkts", "PortOpRcvData")}

// PortFlowCtlCounters count flow control packets (IBA 16.1.4.4).
var PortFlowCtlCounters = &PMAttribute{AttrPortFlowCtlCounters, "PortFlowCtlCounters", named(32, "PortXmitFlowPkts", "PortRcvFlowPkts")}

// The counters of each virtual lane (IBA 16.1.4.5 to 16.1.4.8).
var (
	PortVLOpPackets               = &PMAttribute{AttrPortVLOpPackets, "PortVLOpPackets", numbered("PortVLOpPackets", 16, 16)}
	PortVLOpData                  = &PMAttribute{AttrPortVLOpData, "PortVLOpData", numbered("PortVLOpData", 32, 16)}
	PortVLXmitFlowCtlUpdateErrors = &PMAttribute{AttrPortVLXmitFlowCtlUpdateErrors, "PortVLXmitFlowCtlUpdateErrors",
		numbered("PortVLXmitFlowCtlUpdateErrors", 2, 16)}
	PortVLXmitWaitCounters = &PMAttribute{AttrPortVLXmitWaitCounters, "PortVLXmitWaitCounters", numbered("PortVLXmitWait", 16, 16)}
)

// The counters of congestion control (IBA annex 10).
var (
	SwPortVLCongestion = &PMAttribute{AttrSwPortVLCongestion, "SwPortVLCongestion", numbered("SWPortVLCongestion", 16, 16)}
	PortRcvConCtrl     = &PMAttribute{AttrPortRcvConCtrl, "PortRcvConCtrl", named(32, "PortPktRcvFECN", "PortPktRcvBECN")}
	PortSLRcvFECN      = &PMAttribute{AttrPortSLRcvFECN, "PortSLRcvFECN", numbered("PortSLRcvFECN", 32, 16)}
	PortSLRcvBECN      = &PMAttribute{AttrPortSLRcvBECN, "PortSLRcvBECN", numbered("PortSLRcvBECN", 32, 16)}
	PortXmitConCtrl    = &PMAttribute{AttrPortXmitConCtrl, "PortXmitConCtrl", named(32, "PortXmitTimeCong")}
	PortVLXmitTimeCong = &PMAttribute{AttrPortVLXmitTimeCong, "PortVLXmitTimeCong", numbered("PortVLXmitTimeCong", 32, 15)}
)

// The data of each service level, in units of four bytes (IBA annex 13).
var (
	PortXmitDataSL = &PMAttribute{AttrPortXmitDataSL, "PortXmitDataSL", numbered("XmtDataSL", 32, 16)}
	PortRcvDataSL  = &PMAttribute{AttrPortRcvDataSL, "PortRcvDataSL", numbered("RcvDataSL", 32, 16)}
)

// PortExtendedSpeedsCounters are the per-lane counters of links with 64b/66b coding (IBA 16.1.4.13).
var PortExtendedSpeedsCounters = &PMAttribute{AttrPortExtendedSpeedsCounters, "PortExtendedSpeedsCounters", extendedSpeeds()}

// PortSamplesControl starts sampling and tells its progress (IBA 16.1.3.2).
var PortSamplesControl = &PMAttribute{AttrPortSamplesControl, "PortSamplesControl", samplesControl()}

// PortSamplesResult holds the counts of one sampling (IBA 16.1.3.4).
var PortSamplesResult = &PMAttribute{AttrPortSamplesResult, "PortSamplesResult", append(
	[]PMAField{{"Tag", 0, 16, true}, {"SampleStatus", 30, 2, true}}, row("Counter", 32, 32, 15)...)}

// named returns the fields of an attribute with counters of one width after PortSelect and CounterSelect.
func named(width int, names ...string) []PMAField {
	fields := []PMAField{{"PortSelect", 8, 8, false}, {"CounterSelect", 16, 16, true}}
	for i, n := range names {
		fields = append(fields, PMAField{n, 32 + i*width, width, false})
	}
	return fields
}

// numbered is named for counters whose names count up from 0.
func numbered(prefix string, width, count int) []PMAField {
	return append(named(width), row(prefix, 32, width, count)...)
}

// row returns count fields of one width, numbered from 0.
func row(prefix string, bit, width, count int) []PMAField {
	var fields []PMAField
	for i := range count {
		fields = append(fields, PMAField{prefix + strconv.Itoa(i), bit + i*width, width, false})
	}
	return fields
}

func extendedSpeeds() []PMAField {
	fields := []PMAField{
		{"PortSelect", 8, 8, false}, {"CounterSelect", 64, 64, true},
		{"SyncHeaderErrorCounter", 128, 16, false}, {"UnknownBlockCounter", 144, 16, false},
	}
	fields = append(fields, row("ErrorDetectionCounterLane", 160, 16, 12)...)
	fields = append(fields, row("FECCorrectableBlockCtrLane", 352, 32, 12)...)
	return append(fields, row("FECUncorrectableBlockCtrLane", 736, 32, 12)...)
}

func samplesControl() []PMAField {
	fields := []PMAField{
		{"OpCode", 0, 8, true}, {"PortSelect", 8, 8, false}, {"Tick", 16, 8, true}, {"CounterWidth", 29, 3, false},
		{"CounterMask0", 34, 3, true}, {"CounterMasks1to9", 37, 27, true}, {"CounterMasks10to14", 65, 15, true},
		{"SampleMechanisms", 80, 8, false}, {"SampleStatus", 94, 2, false},
		{"OptionMask", 96, 64, true}, {"VendorMask", 160, 64, true},
		{"SampleStart", 224, 32, false}, {"SampleInterval", 256, 32, false}, {"Tag", 288, 16, true},
	}
	for i := range 15 {
		fields = append(fields, PMAField{"CounterSelect" + strconv.Itoa(i), 304 + 16*i, 16, true})
	}
	return append(fields, PMAField{"SamplesOnlyOptionMask", 576, 64, true})
}
