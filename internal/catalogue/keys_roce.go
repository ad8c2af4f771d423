package catalogue

import "github.com/softvpi/softvpi/wire/eth"

const (
	groupRoCE Group = "RoCE"
	groupBus  Group = "General bus"
	groupRDMA Group = "RDMA"
)

var (
	roceWinOF  = from(winof, "4.6.9.2 RoCE Options", winof, "4.1.4.4 Configuring RoCE")
	roceWinOF2 = from(ethernetB, "Configuring the RoCE Mode", winof2, "3.1.3.6 Configuring the RoCE Mode")
	busSources = from(winof, "4.6.9.3 General Registry Keys")
)

const (
	roceDescription = "How RDMA travels over Ethernet. If the link cannot carry the mode, the best one that it can carry is used, with an event."
	onWinOF2Too     = "That WinOF-2 adapters have it too, below their own driver."
)

var roceModesMLX5 = []Choice{
	{0, "RoCE MAC based", "v1: its own EtherType, GIDs made from the MAC address"},
	{2, "RoCE v2", "UDP over IP: can be routed"},
	{4, "no RoCE", "RDMA is off"},
}

func roceKeys() []Key {
	return []Key{
		{
			Name: "roce_mode", Base: AdapterClass, Group: groupRoCE, Generations: MLX5, Scope: onEthernet, Type: DWORD,
			Status: Built, Defaults: map[Generation]Default{MLX5: {Auto: true, Text: "roce_mode of the driver"}}, Choices: roceModesMLX5,
			Description: roceDescription + " The adapter's own setting takes precedence over the driver's.",
			Sources:     roceWinOF2,
		},
		{
			Name: "roce_mode", Base: DriverService, Path: "Roce", Group: groupRoCE, Generations: MLX5, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(2), Choices: roceModesMLX5,
			Description: roceDescription + " Applies to adapters that have no setting of their own.",
			Chosen:      "The default of the later manual: WinOF-2 1.21 prints no RoCE and v1.",
			Sources:     roceWinOF2,
		},
		{
			Name: "roce_mode", Base: DriverService, Path: "Roce", Group: groupRoCE, Generations: MLX4, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(2),
			Choices: []Choice{
				{0, "RoCE MAC based", "v1: its own EtherType, GIDs made from the MAC address"},
				{2, "RoCE over UDP", "v2: UDP over IP: can be routed"},
				{4, "no RoCE", "RDMA is off"},
				{5, "RoCE IP based", "v1.25: as v1, with GIDs made from the IP addresses"},
			},
			Description: roceDescription + " Applies to all adapters of the driver.",
			Chosen:      "The default, of which the table prints two: v2, as of WinOF 5.20.",
			Sources:     roceWinOF,
		},
		{
			Name: "roce_udp_dport", Base: DriverService, Path: "Roce", Group: groupRoCE, Generations: Both, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(eth.PortRoCEv2), Min: 1, Max: 65535,
			Description: "UDP destination port of RoCE v2. All machines of a fabric have to use the same one; old drivers used 1021.",
			Chosen:      onWinOF2Too,
			Sources:     append(from(winof, "4.1.4.3 RoCE v2 UDP Port"), roceWinOF...),
		},
		{
			Name: "RoceMaxFrameSize", Base: AdapterClass, Group: groupRoCE, Generations: Both, Scope: onEthernet, Type: NumericString,
			Status: Built, Defaults: automatic("the largest that the link's MTU holds"), Unit: "bytes", UI: true, Title: "RoCE Max Frame Size",
			Choices:     []Choice{{256, "256", ""}, {512, "512", ""}, {1024, "1024", ""}, {2048, "2048", ""}, {4096, "4096", ""}},
			Description: "Largest payload of a RoCE packet. All adapters and switches on the path have to accept it; larger payloads are faster.",
			Chosen:      "4096, which InfiniBand has and the tables do not list; the automatic default is that of WinOF 4.3 and later.",
			Sources: from(winof, "4.6.6 Ethernet Registry Keys", winof2, "3.4.5 Ethernet Registry Keys", winof,
				"10 Release Notes Change Log History"),
		},
	}
}

func busKeys() []Key {
	return []Key{
		{
			Name: "UpdateGIDTimerFrequency", Base: DriverService, Group: groupBus, Generations: Both, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(3000), Min: 0, Max: 10000, Unit: "ms",
			Description: "How often the interfaces' addresses are checked to keep the IP-based GIDs up to date; 0 means never.",
			Chosen:      onWinOF2Too,
			Sources:     busSources,
		},
		{
			Name: "RoceRcE2EFlowControlEnable", Base: DriverService, Group: groupBus, Generations: Both, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(1), Choices: disableEnable,
			Description: "Uses end-to-end credits on reliable connections: a sender waits while its peer has no receive posted.",
			Chosen:      onWinOF2Too,
			Sources:     busSources,
		},
		{
			Name: "MaxCMRetries", Base: DriverService, Group: groupBus, Generations: Both, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(15), Min: 1, Max: 15, Unit: "retries",
			Description: "How often the connection manager sends a message again before it gives up.",
			Chosen:      "Path, default and limits, which are those of the field in the connection manager's messages. " + onWinOF2Too,
			Sources:     from(winof, "1.8 Known Issues"),
		},
		{
			Name: "LogNumQp", Base: DriverService, Group: groupBus, Generations: Both, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(19), Min: 10, Max: 19,
			Description: "Base-2 logarithm of the number of queue pairs of an adapter: 19 means 524,288.",
			Chosen:      "The limits. " + onWinOF2Too,
			Sources:     from(winof, "1.9 Bug Fixes History", winof, "6.6 Virtualization Related Troubleshooting"),
		},
		{
			Name: "LogNumRdmaRc", Base: DriverService, Group: groupBus, Generations: Both, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(7), Min: 0, Max: 7,
			Description: "Base-2 logarithm of the number of RDMA reads and atomics that a queue pair may have outstanding: 7 means 128.",
			Chosen:      "Path, default and limits. " + onWinOF2Too,
			Sources:     from(winof, "1.9 Bug Fixes History"),
		},
		{
			Name: "ThreadDpcEnable", Base: DriverService, Group: groupBus, Generations: MLX4, Scope: perDriver, Type: DWORD,
			Status: Inherent, Defaults: always(0), Choices: disableEnable,
			Description: "Runs the driver's deferred work in threads, which can be interrupted by other work. All work of a software adapter is done so. perfstats counts it as DPC whenever it was woken for packets, threaded or not.",
			Chosen:      "The default, which the manual gives only for Azure packages (enabled).",
			Sources:     from(winof, "4.1.16 Threaded DPC"),
		},
		{
			Name: "AllowResetOnError", Base: DriverService, Group: groupBus, Generations: MLX4, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(1), Choices: disableEnable,
			Description: "Lets the driver reset the device after a fatal error if no program is using it: programs lose what they have of it first. With 0 an adapter whose engines have broken down stays off until somebody enables it, and mlxtool dbg sw-reset and the OID of the reset are refused.",
			Chosen:      "Path, default and values; that it also allows the reset on request.",
			Sources:     from(winof, "10 Release Notes Change Log History"),
		},
		{
			Name: "PortType1", Base: DeviceClass, Path: "Parameters", Group: groupBus, Generations: MLX4, Scope: perAdapter, Type: DWORD,
			Status: Built, Defaults: always(3), Choices: portTypes, UI: true, Title: "Port 1 protocol",
			Description: "Protocol of the device's first port. A device with an Ethernet port whose RoCE is off and an InfiniBand port is not possible.",
			Chosen:      "Name, path and numbers; the manual shows the choices of the Port Protocol page.",
			Sources:     portTypeSources,
		},
		{
			Name: "PortType2", Base: DeviceClass, Path: "Parameters", Group: groupBus, Generations: MLX4, Scope: perAdapter, Type: DWORD,
			Status: Built, Defaults: always(3), Choices: portTypes, UI: true, Title: "Port 2 protocol",
			Description: "Protocol of the device's second port. A device with an Ethernet port whose RoCE is off and an InfiniBand port is not possible.",
			Chosen:      "Name, path and numbers; the manual shows the choices of the Port Protocol page.",
			Sources:     portTypeSources,
		},
	}
}

var (
	portTypes = []Choice{
		{0, "HW defaults", "senses the protocol, and uses the device's own if that fails"},
		{1, "IB", "InfiniBand; both ends of the cable have to agree"},
		{2, "ETH", "Ethernet; both ends of the cable have to agree"},
		{3, "AUTO", "senses the protocol when the adapter starts"},
	}
	portTypeSources = from(winof, "4.1.1.2 Port Protocol Configuration", winof, "6.7 Reported Driver Events")
)

func rdmaKeys() []Key {
	return []Key{
		{
			Name: "*NetworkDirect", Base: AdapterClass, Group: groupRDMA, Generations: Both, Scope: onBoth, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, UI: true, Title: "NetworkDirect Functionality",
			Description: "Offers RDMA to the system and its programs. Without it they get no queue pairs, except those of raw frames, and no connection ids; the port, its Ethernet function and IPoIB go on.",
			Chosen:      "The default, that WinOF has it too, and that it holds for all programs: WinOF 5.50 knows as an issue that its ND goes on.",
			Sources:     from(ethernetB, "RoCE Configuration", winof, "1.8 Known Issues", virtualization, "Configuring NDK"),
		},
		{
			Name: "*PacketDirect", Base: AdapterClass, Group: groupRDMA, Generations: Both, Scope: physicalEthernet, Type: NumericString,
			Status: Built, Defaults: always(1), Choices: disableEnable, UI: true, Title: "PacketDirect",
			Description: "Offers queues of Ethernet frames to programs (packetdirect, raw packet queue pairs) on the adapter.",
			Chosen:      "Name (NDIS's standardized keyword) and default.",
			Sources:     from(winof, "4.5.5 PacketDirect Provider Interface", virtualization, "Using PacketDirect for VM"),
		},
	}
}
