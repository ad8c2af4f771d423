package catalogue

const (
	groupEthernet    Group = "Ethernet"
	groupFlowControl Group = "Flow control"
	groupVMQ         Group = "VMQ"
)

var (
	ethernetSources = from(winof, "4.6.6 Ethernet Registry Keys", winof2, "3.4.5 Ethernet Registry Keys")
	ethernetMLX4    = from(winof, "4.6.6 Ethernet Registry Keys")
	flowMLX4        = from(winof, "4.6.6.1 Flow Control Options")
	vmqSources      = from(winof, "4.6.6.2 VMQ Options", winof2, "3.4.5.2 VMQ Options")
	vmqMLX4         = from(winof, "4.6.6.2 VMQ Options")
)

const wakeChosen = "The name, which is NDIS's standardized keyword; the manuals only say that Wake-on-LAN is enabled by default. That WinOF has it too."

var wakeSources = from(ethernetA, "Wake-on-LAN (WoL)", ethernetB, "Wake-on-LAN (WoL)")

func ethernetKeys() []Key {
	return []Key{
		{
			Name: "*PriorityVLANTag", Base: AdapterClass, Group: groupEthernet, Generations: Both, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Effect: AtOnce, Defaults: always(3), UI: true, Title: "Priority & VLAN Tag",
			Choices: []Choice{
				{0, "priority & VLAN disabled", "frames are sent without a tag"},
				{1, "priority enabled", "tags carry priorities"},
				{2, "VLAN enabled", "tags carry VLANs"},
				{3, "priority & VLAN enabled", "tags carry both"},
			},
			Description: "Which parts of IEEE 802.1Q tags the adapter sends and understands. Not to be set on a virtual function.",
			Chosen:      "The values other than 3, which are NDIS's.",
			Sources:     ethernetSources,
		},
		{
			Name: "PromiscuousVlan", Base: AdapterClass, Group: groupEthernet, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(0), Choices: disableEnable,
			Description: "Passes packets of every VLAN to the system, without filtering them.",
			Sources:     ethernetSources,
		},
		{
			Name: "UseRSSForRawIP", Base: AdapterClass, Group: groupEthernet, Generations: MLX4, Scope: physical, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable,
			Description: "Spreads IP packets that are neither TCP nor UDP by RSS. Otherwise DefaultRecvRingProcessor handles them all, which suits forwarding. Physical functions only. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Sources:     append(tuningSources, ethernetMLX4...),
		},
		{
			Name: "UseRSSForUDP", Base: AdapterClass, Group: groupEthernet, Generations: MLX4, Scope: physical, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable,
			Description: "Spreads UDP packets by RSS. Otherwise DefaultRecvRingProcessor handles them all, which suits forwarding. Physical functions only. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Sources:     append(tuningSources, ethernetMLX4...),
		},
		{
			Name: "SingleStream", Base: AdapterClass, Group: groupEthernet, Generations: MLX4, Scope: onBoth, Type: NumericString,
			Status: Inherent, Defaults: always(0), Choices: disableEnable, UI: true, Title: "Single Stream",
			Description: "Passes packets to send on to another processor, so that a single stream can go faster. Here it is always so: whoever sends is done when its packet is in the queue of its TAP or socket, and the driver's thread takes it from there, on a processor of TxForwardingProcessor. The key is kept and switches nothing.",
			Sources:     ethernetMLX4,
		},
		{
			Name: "*WakeOnMagicPacket", Base: AdapterClass, Group: groupEthernet, Generations: Both, Scope: physicalEthernet, Type: NumericString,
			Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Wake on Magic Packet",
			Description: "Lets magic packets wake a host that sleeps.",
			Chosen:      wakeChosen,
			Sources:     wakeSources,
		},
		{
			Name: "*WakeOnPattern", Base: AdapterClass, Group: groupEthernet, Generations: Both, Scope: physicalEthernet, Type: NumericString,
			Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Wake on Pattern Match",
			Description: "Lets frames wake a host that sleeps, if they match one of the patterns with which it was put to sleep.",
			Chosen:      wakeChosen,
			Sources:     wakeSources,
		},
		{
			Name: "IgnoreFCS", Base: AdapterClass, Group: groupEthernet, Generations: MLX4, Scope: onEthernet, Type: NumericString,
			Effect: AtOnce, Status: Built, Defaults: always(0), Choices: disableEnable,
			Description: "Accepts frames with a wrong FCS, and passes the FCS on with every frame, which a TAP and a virtual machine do not take. Frames are then unprotected. Over virtual switches those arrive with a wrong FCS that an impairment has corrupted. Other wires hand up no FCS: what is below has checked it.",
			Sources:     append(from(winof, "4.1.14 Ignore Frame Check Sequence (FCS) Errors"), ethernetMLX4...),
		},
	}
}

func flowControlKeys() []Key {
	return []Key{
		{
			Name: "*FlowControl", Base: AdapterClass, Group: groupFlowControl, Generations: MLX5, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Defaults: always(0), UI: true, Title: "Flow Control",
			Choices: []Choice{
				{0, "disabled", "no pause frames"},
				{1, "Tx enabled", "pauses when the peer asks"},
				{2, "Rx enabled", "asks the peer to pause when a receive queue fills up"},
				{3, "Rx & Tx enabled", "both"},
			},
			Description: "Global pause (IEEE 802.3x): with Rx the adapter asks its peer to pause when a receive queue reaches its limit, with Tx it pauses when asked.",
			Sources:     from(winof2, "3.4.5.1 Flow Control Options"),
		},
		{
			Name: "RxPause", Base: AdapterClass, Group: groupFlowControl, Generations: MLX4, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, Excludes: "PerPriRxPause", UI: true, Title: "Rx Pause",
			Description: "Asks the peer to pause (IEEE 802.3x) when a receive queue reaches its limit. Not together with PerPriRxPause.",
			Chosen:      "Default and values: the table names the key, but describes the one for each priority.",
			Sources:     flowMLX4,
		},
		{
			Name: "TxPause", Base: AdapterClass, Group: groupFlowControl, Generations: MLX4, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, Excludes: "PerPriTxPause", UI: true, Title: "Tx Pause",
			Description: "Pauses when the peer asks (IEEE 802.3x). Not together with PerPriTxPause.",
			Chosen:      "Default and values: the table names the key, but describes the one for each priority.",
			Sources:     flowMLX4,
		},
		{
			Name: "PerPriRxPause", Base: AdapterClass, Group: groupFlowControl, Generations: MLX4, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Defaults: always(0), Min: 0, Max: 255, Hex: true, Excludes: "RxPause",
			Description: "Priorities (one bit each) for which the adapter asks its peer to pause when their receive queue fills up. Not together with RxPause.",
			Chosen:      "That the value is a mask of priorities.",
			Sources:     flowMLX4,
		},
		{
			Name: "PerPriTxPause", Base: AdapterClass, Group: groupFlowControl, Generations: MLX4, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Defaults: always(0), Min: 0, Max: 255, Hex: true, Excludes: "TxPause",
			Description: "Priorities (one bit each) that the adapter pauses when its peer asks. Not together with TxPause.",
			Chosen:      "That the value is a mask of priorities.",
			Sources:     flowMLX4,
		},
	}
}

func vmqKeys() []Key {
	return []Key{
		{
			Name: "*VMQ", Base: AdapterClass, Group: groupVMQ, Generations: Both, Scope: physical, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Virtual Machine Queues",
			Description: "Gives virtual ports, the adapters of a virtual switch, receive queues of their own, by destination address. Those without one share the default queue.",
			Chosen:      "That InfiniBand ports, over which there are no virtual switches, have no use for this and the other keys of the group.",
			Sources:     from(winof2, "3.4.5.2 VMQ Options", winof, "6.6 Virtualization Related Troubleshooting"),
		},
		{
			Name: "*RssOrVmqPreference", Base: AdapterClass, Group: groupVMQ, Generations: Both, Scope: physical, Type: NumericString,
			Effect: AtOnce, Status: Built, Defaults: always(0),
			Choices: []Choice{
				{0, "RSS", "reports what RSS can do"},
				{1, "VMQ", "reports what VMQ can do"},
			},
			Description: "Which of the two the adapter offers if it could do either. A virtual switch without SR-IOV sets it to 1 when it is made, and takes it back when it is removed.",
			Sources:     vmqSources,
		},
		{
			Name: "*VMQLookaheadSplit", Base: AdapterClass, Group: groupVMQ, Generations: MLX4, Scope: physical, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, UI: true, Title: "VMQ Lookahead Split",
			Description: "Divides receive buffers into a part that the switch reads and one that only the virtual machine sees: headers of frames by a virtual port's own queue have buffers of their own.",
			Sources:     vmqMLX4,
		},
		{
			Name: "*VMQVlanFiltering", Base: AdapterClass, Group: groupVMQ, Generations: Both, Scope: physical, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, UI: true, Title: "VMQ VLAN Filtering",
			Description: "Sorts packets into queues by VLAN as well as by address: each VLAN of a queue takes a filter, and virtual ports with one address in several VLANs may each have a queue. Without it only the first of them has.",
			Sources:     vmqSources,
		},
		{
			Name: "*RssOnHostVPorts", Base: AdapterClass, Group: groupVMQ, Generations: Both, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Virtual Switch RSS",
			Description: "VMMQ: spreads the packets of each virtual port of the host, an adapter of a virtual switch, over several queues.",
			Sources: from(winof, "4.5.4.2 Enabling/Disabling VMMQ", winof, "4.6.4 Off-load Registry Keys", virtualization,
				"Enabling/Disabling VMMQ"),
		},
		{
			Name: "MaxNumVmqs", Base: AdapterClass, Group: groupVMQ, Generations: MLX4, Scope: physical, Type: NumericString,
			Status: Built, Defaults: always(127), Min: 1, Max: 127, Unit: "queues",
			Description: "Most virtual machine queues at the same time. Each has a receive ring with buffers, so fewer take less memory.",
			Sources:     vmqMLX4,
		},
		{
			Name: "MaxNumMacAddrFilters", Base: AdapterClass, Group: groupVMQ, Generations: MLX4, Scope: physical, Type: NumericString,
			Status: Built, Defaults: always(127), Min: 1, Max: 127, Unit: "addresses",
			Description: "Number of MAC addresses that the port can filter: so many different ones virtual ports with queues have at most.",
			Sources:     vmqMLX4,
		},
		{
			Name: "MaxNumVlanFilters", Base: AdapterClass, Group: groupVMQ, Generations: MLX4, Scope: physical, Type: NumericString,
			Status: Built, Defaults: always(125), Min: 1, Max: 127, Unit: "VLANs",
			Description: "Number of VLANs that each port can filter: so many different ones virtual ports with queues have at most.",
			Sources:     vmqMLX4,
		},
	}
}
