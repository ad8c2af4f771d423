package catalogue

const groupOffload Group = "Off-load"

var offloadSources = from(winof, "4.6.4 Off-load Registry Keys", winof2, "3.4.3 Off-load Registry Keys")

var checksums = []Choice{
	{0, "disable", "the host computes and checks"},
	{1, "Tx enable", "the adapter computes when sending"},
	{2, "Rx enable", "the adapter checks when receiving"},
	{3, "Tx and Rx enable", "both"},
}

var offloadKeys = []Key{
	{
		Name: "*LsoV1IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 1 (IPv4)",
		Description: "Cuts large TCP sends over IPv4 into segments in the adapter, in NDIS's first form of the offload.",
		Sources:     offloadSources,
	},
	{
		Name: "*LsoV1IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 1 (IPv4)",
		Description: "Lets TCP over IPv4 hand large packets to IPoIB, which cuts them. Linux knows one form of the offload: it is there where this key or *LsoV2IPv4 is 1, and where the Tx checksum offloads are.",
		Sources:     offloadSources,
	},
	{
		Name: "*LsoV2IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv4)",
		Description: "Cuts large TCP sends over IPv4 into segments in the adapter, in NDIS's second form of the offload.",
		Sources:     offloadSources,
	},
	{
		Name: "*LsoV2IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv4)",
		Description: "Lets TCP over IPv4 hand large packets to IPoIB, which cuts them. Linux knows one form of the offload: it is there where this key or *LsoV1IPv4 is 1, and where the Tx checksum offloads are.",
		Sources:     offloadSources,
	},
	{
		Name: "*LsoV2IPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv6)",
		Description: "Cuts large TCP sends over IPv6 into segments in the adapter.",
		Sources:     offloadSources,
	},
	{
		Name: "*LsoV2IPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv6)",
		Description: "Lets TCP over IPv6 hand large packets to IPoIB, which cuts them; only where the Tx checksum offloads are there too.",
		Sources:     offloadSources,
	},
	{
		Name: "LSOSize", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(64000), Min: 614 + 1024, Max: 64000, Unit: "bytes",
		Description: "Most bytes that TCP may hand over as one large send. A value below the MTU plus 1024 switches the large-send offload off.",
		Chosen:      "The fixed lower limit, which is that of the smallest MTU.",
		Sources:     offloadSources,
	},
	{
		Name: "LSOSize", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(64000), Min: 1500 + 1024, Max: 64000, Unit: "bytes",
		Description: "Most bytes that TCP may hand to IPoIB as one large packet. A value below *JumboPacket plus 1024 switches the large-send offload off.",
		Chosen:      "The fixed lower limit, which is that of the smallest MTU.",
		Sources:     offloadSources,
	},
	{
		Name: "LSOMinSegment", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString,
		Defaults: always(2), Min: 2, Max: 32, Unit: "segments",
		Description: "Fewest segments that a send must make before TCP leaves the cutting to the adapter.",
		Sources:     offloadSources,
	},
	{
		Name: "LSOTcpOptions", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString,
		Defaults: always(1), Choices: disableEnable,
		Description: "Takes large sends whose TCP header has options.",
		Sources:     offloadSources,
	},
	{
		Name: "LSOIpOptions", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString,
		Defaults: always(1), Choices: disableEnable,
		Description: "Takes large sends whose IP header has options.",
		Sources:     offloadSources,
	},
	{
		Name: "*IPChecksumOffloadIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString,
		Defaults: always(3), Choices: checksums, UI: true, Title: "IPv4 Checksum Offload",
		Description: "Which side's IPv4 header checksums the adapter takes care of.",
		Sources:     offloadSources,
	},
	{
		Name: "*TCPUDPChecksumOffloadIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv4)",
		Description: "Which side's TCP and UDP checksums over IPv4 the adapter takes care of.",
		Sources:     offloadSources,
	},
	{
		Name: "*TCPUDPChecksumOffloadIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv4)",
		Description: "Which side's TCP and UDP checksums over IPv4 IPoIB takes care of. Linux has one switch for sending: Tx has to be enabled for IPv6 too. Received segments are joined where Rx is enabled.",
		Sources:     offloadSources,
	},
	{
		Name: "*TCPUDPChecksumOffloadIPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv6)",
		Description: "Which side's TCP and UDP checksums over IPv6 the adapter takes care of.",
		Sources:     offloadSources,
	},
	{
		Name: "*TCPUDPChecksumOffloadIPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv6)",
		Description: "Which side's TCP and UDP checksums over IPv6 IPoIB takes care of. Linux has one switch for sending: Tx has to be enabled for IPv4 too. Received segments are joined where Rx is enabled.",
		Sources:     offloadSources,
	},
	{
		Name: "ParentBusRegPath", Aliases: []string{"ParentBusPath"}, Base: AdapterClass, Group: groupOffload, Generations: MLX4, Scope: onBoth, Type: String,
		Defaults: automatic("the key of the adapter's own device"), Status: ReadOnly,
		Description: "Tells which registry key the device that this port belongs to has, among the system devices.",
		Sources:     from(winof, "4.6.4 Off-load Registry Keys", winof, "10 Release Notes Change Log History"),
	},
	{
		Name: "*RssOnHostVPorts", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: physicalEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Virtual Switch RSS",
		Description: "VMMQ: spreads the packets of each virtual port of the host over several queues.",
		Sources:     from(winof, "4.6.4 Off-load Registry Keys", winof, "4.5.4.2 Enabling/Disabling VMMQ", virtualization, "Enabling/Disabling VMMQ"),
	},
	{
		Name: "*RscIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Recv Segment Coalescing (IPv4)",
		Description: "Joins received TCP segments over IPv4 into larger packets before the host sees them.",
		Chosen:      "The name, which is NDIS's standardized keyword; the manual describes the setting alone.",
		Sources:     from(winof, "4.1.8 Receive Segment Coalescing (RSC)", ethernetB, "Receive Segment Coalescing (RSC)"),
	},
	{
		Name: "*RscIPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Recv Segment Coalescing (IPv6)",
		Description: "Joins received TCP segments over IPv6 into larger packets before the host sees them.",
		Chosen:      "The name, which is NDIS's standardized keyword; the manual describes the setting alone.",
		Sources:     from(winof, "4.1.8 Receive Segment Coalescing (RSC)", ethernetB, "Receive Segment Coalescing (RSC)"),
	},
	{
		Name: "*EncapsulatedPacketTaskOffload", Base: AdapterClass, Group: groupOffload,
		Generations: Both, Scope: physicalEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Encapsulated Task Offload",
		Description: "Applies the checksum and segmentation offloads to packets inside NVGRE tunnels.",
		Sources:     from(winof2, "3.3.2.3 Enabling/Disabling NVGRE Offloading", winof, "10 Release Notes Change Log History", virtualization, "Enabling/Disabling NVGRE Offloading"),
	},
	{
		Name: "*EncapsulatedPacketTaskOffloadVxlan", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: physicalEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Encapsulated Task Offload (VXLAN)",
		Description: "Applies the checksum and segmentation offloads to packets inside VXLAN tunnels.",
		Chosen:      "The default.",
		Sources:     from(ethernetB, "VXLAN", winof, "4.1.15 VXLAN"),
	},
	{
		Name: "*VxlanUDPPortNumber", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: physicalEthernet, Type: NumericString,
		Defaults: always(4789), Min: 1, Max: 65535, UI: true, Title: "VXLAN UDP destination port number",
		Description: "UDP destination port by which the adapter knows VXLAN packets. Both ports of a device have to use the same one.",
		Chosen:      "The default, which is IANA's number.",
		Sources:     from(ethernetB, "VXLAN", winof, "4.1.15 VXLAN"),
	},
}
