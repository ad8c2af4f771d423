package catalogue

import "fmt"

const (
	groupQoS   Group = "QoS"
	groupDSCP  Group = "DSCP"
	groupDCBX  Group = "DCBX"
	groupStall Group = "Receive stall"
	groupHoQ   Group = "Head of queue lifetime"
)

var (
	dscpSources     = from(ethernetB, "Differentiated Services Code Point (DSCP)", winof, "4.1.11.7 Registry Settings")
	dscpMLX5        = from(ethernetB, "Differentiated Services Code Point (DSCP)")
	stallKeySources = from(ethernetB, "Receive Path Activity Monitoring")
	hoqSources      = from(ethernetB, "Head of Queue Lifetime Limit")
)

func qosKeys() []Key {
	return []Key{
		{
			Name: "DefaultUntaggedPriority", Base: AdapterClass, Group: groupQoS, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(0), Min: 0, Max: 7, Effect: AtOnce,
			Description: "Priority that untagged frames are assumed to have, for congestion control among others. An invalid value is replaced by the default, not by the previous value.",
			Sources:     from(ethernetB, "RCM with Untagged Traffic"),
		},
	}
}

func dscpKeys() []Key {
	return append([]Key{
		{
			Name: "TxUntagPriorityTag", Base: AdapterClass, Group: groupDSCP, Generations: Both, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(0), Choices: disableEnable,
			Description: "Sends frames that have a priority but no VLAN without an 802.1Q tag. They still count for their priority. Needed for flow control by DSCP.",
			Sources:     dscpSources,
		},
		{
			Name: "RxUntaggedMapToLossless", Aliases: []string{"RxUntaggedMapToLossles"}, Base: AdapterClass, Group: groupDSCP,
			Generations: Both, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(0), Choices: disableEnable, Effect: AtOnce,
			Description: "Receives frames that name no priority, by tag or trusted DSCP, into the lossless buffer: while the port asks for pauses, they wait with those of its lowest lossless priority, and make it ask. Needed for flow control by DSCP. An invalid value is replaced by the default, not by the previous value.",
			Sources:     dscpSources,
		},
	}, append(priorityToDscp(), []Key{
		{
			Name: "DscpBasedEtsEnabled", Base: AdapterClass, Group: groupDSCP, Generations: Both, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(0), Choices: disableEnable,
			Description: "Shares the bandwidth between traffic classes (ETS) by the DSCP of packets: those that have no other priority have that of their DSCP divided by 8.",
			Sources:     dscpSources,
		},
		{
			Name: "DscpBasedpfcEnabled", Base: AdapterClass, Group: groupDSCP, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(0), Choices: disableEnable,
			Description: "Marks RoCE packets with the DSCP of their priority.",
			Chosen:      "The default.",
			Sources:     dscpMLX5,
		},
		{
			Name: "DscpForGlobalFlowControl", Base: AdapterClass, Group: groupDSCP, Generations: Both, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(26), Min: 0, Max: 63,
			Description: "DSCP of RoCE packets while global pause was chosen (*FlowControl, TxPause, RxPause) and no priority is paused on its own; of adapters of the mlx5 generation only if DscpBasedpfcEnabled is 1.",
			Chosen:      "The limits, which are those of a DSCP.",
			Sources:     dscpSources,
		},
		{
			Name: "RxTrustedState", Base: AdapterClass, Group: groupDSCP, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(1),
			Choices: []Choice{
				{1, "host priority (PCP)", "by the priority in the 802.1Q tag"},
				{2, "DSCP", "by the DSCP divided by 8"},
			},
			Description: "What determines the priority of received packets. With DSCP the table for transmitted packets should agree; a warning event reports it otherwise.",
			Sources:     from(ethernetB, "Receive Trust State"),
		},
	}...)...)
}

// priorityToDscp returns the eight entries of the table by which transmitted RoCE packets are marked.
func priorityToDscp() []Key {
	var a []Key
	for i := range 8 {
		a = append(a, Key{
			Name: fmt.Sprintf("PriorityToDscpMappingTable_%d", i), Aliases: []string{fmt.Sprintf("RroceDscpMarkPriorityFlowControl_%d", i)},
			Base: AdapterClass, Group: groupDSCP, Generations: Both, Scope: physicalEthernet, Type: DWORD,
			Status:   Built,
			Defaults: always(uint64(i)), Min: 0, Max: 63,
			Description: fmt.Sprintf("DSCP of the RoCE packets of priority %d, if DscpBasedpfcEnabled is 1; of adapters of the mlx4 generation, if any priority is paused on its own (PFC). What a program chooses stays.", i),
			Sources:     dscpSources,
		})
	}
	return a
}

func dcbxKeys() []Key {
	return []Key{
		{
			Name: "DcbxMode", Base: AdapterClass, Group: groupDCBX, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Defaults: always(0), Status: Built,
			Choices: []Choice{
				{0, "disabled", "no DCBX"},
				{2, "host", "the driver speaks DCBX with its peer, willing unless a script says otherwise"},
			},
			Description: "Negotiates flow control, traffic classes and application priorities with the peer over LLDP. The device's configuration (LLDP_NB_DCBX_P1, ...) has to allow it.",
			Chosen:      "The value 0.",
			Sources:     from(ethernetB, "Data Center Bridging Exchange (DCBX)"),
		},
	}
}

func stallKeys() []Key {
	return []Key{
		{
			Name: "DeviceRxStallTimeout", Base: AdapterClass, Group: groupStall, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status: Built, Defaults: always(8000), Min: 0, Max: 8000, Unit: "ms",
			Description: "Time that the receive path may stand still before all flow control (global pause and all priorities) is switched off until it moves again; 0 means forever. Counted as Critical Stall Watermark Reached.",
			Chosen:      "Default, limits and unit.",
			Sources:     stallKeySources,
		},
		{
			Name: "DeviceRxStallWatermark", Base: AdapterClass, Group: groupStall, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status: Built, Defaults: always(0), Min: 0, Max: 8000, Unit: "ms",
			Description: "Time that the receive path may stand still before it is counted as Minor Stall Watermark Reached, as an early warning; 0 means never.",
			Chosen:      "Default, limits and unit.",
			Sources:     stallKeySources,
		},
	}
}

func queueLifetimeKeys() []Key {
	return []Key{
		{
			Name: "TCHeadOfQueueLifeTimeLimitEnable", Base: AdapterClass, Group: groupHoQ, Generations: MLX5, Scope: physicalEthernet,
			Type:   DWORD,
			Status: Built, Defaults: always(0), Min: 0, Max: 0xFF, Hex: true,
			Description: "Traffic classes (one bit each) whose packets are dropped after waiting too long at the head of their queue.",
			Chosen:      "That the value is a mask of traffic classes, and its default.",
			Sources:     hoqSources,
		},
		{
			Name: "TCHeadOfQueueLifeTimeLimit", Base: AdapterClass, Group: groupHoQ, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status: Built, Defaults: always(19), Min: 0, Max: 20,
			Description: "How long a packet may be at the head of its queue: 4.096 microseconds times 2 to the power of the value; 20 means forever. Modelled on InfiniBand's HOQLife.",
			Chosen:      "Default and limits.",
			Sources:     hoqSources,
		},
		{
			Name: "TCStallCount", Base: AdapterClass, Group: groupHoQ, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status: Built, Defaults: always(7), Min: 0, Max: 7, Unit: "packets",
			Description: "Number of consecutive dropped packets after which the whole class counts as stalled, and its packets are dropped for eight lifetimes; 0 means never. Modelled on InfiniBand's VLStallCount.",
			Chosen:      "Default and limits.",
			Sources:     hoqSources,
		},
	}
}
