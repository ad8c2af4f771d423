package catalogue

const groupOffload Group = "Off-load"

var offloadSources = from(winof, "4.6.4 Off-load Registry Keys", winof2, "3.4.3 Off-load Registry Keys")

var checksums = []Choice{
	{0, "disable", "the host computes and checks"},
	{1, "Tx enable", "the adapter computes when sending"},
	{2, "Rx enable", "the adapter checks when receiving"},
	{3, "Tx and Rx enable", "both"},
}

func offloadKeys() []Key {
	return []Key{
		{
			Name: "*LsoV1IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 1 (IPv4)",
			Description: "Cuts large TCP sends over IPv4 into segments in the adapter, in NDIS's first form of the offload.",
			Sources:     offloadSources,
		},
		{
			Name: "*LsoV1IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 1 (IPv4)",
			Description: "Lets TCP over IPv4 pass large packets to IPoIB, which cuts them. Linux has only one form of the offload: it is on if this key or *LsoV2IPv4 is 1 and the Tx checksum offloads are on.",
			Sources:     offloadSources,
		},
		{
			Name: "*LsoV2IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv4)",
			Description: "Cuts large TCP sends over IPv4 into segments in the adapter, in NDIS's second form of the offload.",
			Sources:     offloadSources,
		},
		{
			Name: "*LsoV2IPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv4)",
			Description: "Lets TCP over IPv4 pass large packets to IPoIB, which cuts them. Linux has only one form of the offload: it is on if this key or *LsoV1IPv4 is 1 and the Tx checksum offloads are on.",
			Sources:     offloadSources,
		},
		{
			Name: "*LsoV2IPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv6)",
			Description: "Cuts large TCP sends over IPv6 into segments in the adapter.",
			Sources:     offloadSources,
		},
		{
			Name: "*LsoV2IPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Large Send Offload Version 2 (IPv6)",
			Description: "Lets TCP over IPv6 pass large packets to IPoIB, which cuts them; only if the Tx checksum offloads are on, too.",
			Sources:     offloadSources,
		},
		{
			Name: "LSOSize", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(64000), Min: 614 + 1024, Max: 64000, Unit: "bytes",
			Description: "Most bytes that TCP may pass on as one large send. A value below the MTU plus 1024 switches the large-send offload off.",
			Chosen:      "The fixed lower limit, which is that of the smallest MTU.",
			Sources:     offloadSources,
		},
		{
			Name: "LSOSize", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(64000), Min: 1500 + 1024, Max: 64000, Unit: "bytes",
			Description: "Most bytes that TCP may pass to IPoIB as one large packet. A value below *JumboPacket plus 1024 switches the large-send offload off.",
			Chosen:      "The fixed lower limit, which is that of the smallest MTU.",
			Sources:     offloadSources,
		},
		{
			Name: "LSOMinSegment", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(2), Min: 2, Max: 32, Unit: "segments",
			Description: "Fewest segments into which a send must be cut for TCP to leave that to the adapter. Of InfiniBand ports it switches nothing: Linux does not ask, and the driver cuts large sends in any case.",
			Sources:     offloadSources,
		},
		{
			Name: "LSOTcpOptions", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable,
			Description: "Accepts large sends whose TCP header has options. Of InfiniBand ports it switches nothing: Linux does not ask, and the driver cuts large sends in any case.",
			Sources:     offloadSources,
		},
		{
			Name: "LSOIpOptions", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable,
			Description: "Accepts large sends whose IP header has options. Of InfiniBand ports it switches nothing: Linux does not ask, and the driver cuts large sends in any case.",
			Sources:     offloadSources,
		},
		{
			Name: "*IPChecksumOffloadIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(3), Choices: checksums, UI: true, Title: "IPv4 Checksum Offload",
			Description: "For which direction the adapter handles the IPv4 header checksums. Of InfiniBand ports it switches nothing: Linux makes and checks these itself, and segments get theirs.",
			Sources:     offloadSources,
		},
		{
			Name: "*TCPUDPChecksumOffloadIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet,
			Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv4)",
			Description: "For which direction the adapter handles TCP and UDP checksums over IPv4.",
			Sources:     offloadSources,
		},
		{
			Name: "*TCPUDPChecksumOffloadIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv4)",
			Description: "For which direction IPoIB handles TCP and UDP checksums over IPv4. Linux has one switch for sending: Tx has to be enabled for IPv6 too. Received segments are joined if Rx is enabled.",
			Sources:     offloadSources,
		},
		{
			Name: "*TCPUDPChecksumOffloadIPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet,
			Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv6)",
			Description: "For which direction the adapter handles TCP and UDP checksums over IPv6.",
			Sources:     offloadSources,
		},
		{
			Name: "*TCPUDPChecksumOffloadIPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(3), Choices: checksums, UI: true, Title: "TCP/UDP Checksum Offload (IPv6)",
			Description: "For which direction IPoIB handles TCP and UDP checksums over IPv6. Linux has one switch for sending: Tx has to be enabled for IPv4 too. Received segments are joined if Rx is enabled.",
			Sources:     offloadSources,
		},
		{
			Name: "ParentBusRegPath", Aliases: []string{"ParentBusPath"}, Base: AdapterClass, Group: groupOffload, Generations: MLX4,
			Scope: onBoth, Type: String,
			Defaults: automatic("the key of the adapter's own device"), Status: ReadOnly,
			Description: "The registry key, among the system devices, of the device to which this port belongs.",
			Sources:     from(winof, "4.6.4 Off-load Registry Keys", winof, "10 Release Notes Change Log History"),
		},
		{
			Name: "*RscIPv4", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Recv Segment Coalescing (IPv4)",
			Description: "Joins received TCP segments over IPv4 into larger packets before the host sees them.",
			Chosen:      "The name, which is NDIS's standardized keyword; the manual only describes the setting.",
			Sources:     from(winof, "4.1.8 Receive Segment Coalescing (RSC)", ethernetB, "Receive Segment Coalescing (RSC)"),
		},
		{
			Name: "*RscIPv6", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(1), Choices: disableEnable, UI: true, Title: "Recv Segment Coalescing (IPv6)",
			Description: "Joins received TCP segments over IPv6 into larger packets before the host sees them.",
			Chosen:      "The name, which is NDIS's standardized keyword; the manual only describes the setting.",
			Sources:     from(winof, "4.1.8 Receive Segment Coalescing (RSC)", ethernetB, "Receive Segment Coalescing (RSC)"),
		},
		{
			Name: "*EncapsulatedPacketTaskOffload", Base: AdapterClass, Group: groupOffload,
			Generations: Both, Scope: physicalEthernet, Type: NumericString, Status: Built, Effect: AtOnce,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Encapsulated Task Offload",
			Description: "Looks into NVGRE tunnels: RSS spreads packets by what is inside, whose checksums are checked as well. Disabled, such traffic flows, and the host does that. " + hostCuts,
			Chosen:      "That it takes effect at once.",
			Sources: from(winof2, "3.3.2.3 Enabling/Disabling NVGRE Offloading", winof, "10 Release Notes Change Log History",
				virtualization, "Enabling/Disabling NVGRE Offloading"),
		},
		{
			Name: "*EncapsulatedPacketTaskOffloadVxlan", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: physicalEthernet,
			Type: NumericString, Status: Built, Effect: AtOnce,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Encapsulated Task Offload (VXLAN)",
			Description: "Looks into VXLAN tunnels: RSS spreads packets by what is inside, whose checksums are checked as well. Disabled, such traffic flows, and the host does that. " +
				linuxLeaves,
			Chosen:  "The default, and that it takes effect at once.",
			Sources: from(ethernetB, "VXLAN", winof, "4.1.15 VXLAN"),
		},
		{
			Name: "*VxlanUDPPortNumber", Base: AdapterClass, Group: groupOffload, Generations: Both, Scope: physicalEthernet,
			Type: NumericString, Status: Built, Effect: AtOnce,
			Defaults: always(4789), Min: 1, Max: 65535, UI: true, Title: "VXLAN UDP destination port number",
			Description: "UDP destination port by which the adapter recognizes VXLAN packets. Of two ports of a device with different numbers only the first handles VXLAN. Virtual functions have the default.",
			Chosen:      "The default, which is IANA's number, and that it takes effect at once.",
			Sources:     from(ethernetB, "VXLAN", winof, "4.1.15 VXLAN"),
		},
	}
}

// linuxLeaves says when large sends inside tunnels are the adapter's too.
const linuxLeaves = "Large sends inside tunnels reach the adapter from a TAP of Linux 6.17 or later; other hosts cut them before."

// hostCuts says what of the offload is not the adapter's.
const hostCuts = "Large sends inside tunnels are cut by the host before they reach the adapter."
