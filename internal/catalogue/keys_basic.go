package catalogue

const groupBasic Group = "Basic"

var basicSources = from(winof, "4.6.3 Basic Registry Keys", winof2, "3.4.2 Basic Registry Keys")

var moderationProfiles = []Choice{
	{0, "low latency", "interrupts come often: for latency, or few streams"},
	{1, "moderate", "a middle course for common loads"},
	{2, "aggressive", "interrupts come seldom: most throughput for the processor time, with many streams"},
}

var basicKeys = []Key{
	{
		Name: "*JumboPacket", Aliases: []string{"JumboPackets", "MTU", "MaxFramSize"}, Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
		Defaults: automatic("the MTU of the interface and 14 bytes: 1514 where that is 1500"), Min: 614, Max: 9614, Unit: "bytes", UI: true, Title: "Jumbo Packet",
		Description: "Largest Ethernet frame, its 14 bytes of header counted and the FCS not. RoCE packets are as large as it allows, and never larger than the interface's. Every device on the path has to take frames of this size; on a virtual function it cannot exceed the host's.",
		Chosen:      "The limits of the lists of tunable parameters, where the tables print 600 to 9600. The automatic default: the manuals print 1514, which the interface of an adapter may not have.",
		Sources:     append(from(winof, "4.9.3 Tunable Performance Parameters", winof2, "3.5.3 Tunable Performance Parameters", winof, "10 Release Notes Change Log History"), basicSources...),
	},
	{
		Name: "*JumboPacket", Aliases: []string{"JumboPackets", "MTU", "MaxFramSize"}, Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(4092), Min: 1500, Max: 4092, Unit: "bytes", UI: true, Title: "Jumbo Packet",
		Description: "Largest IP packet over InfiniBand, without the 4 bytes of the IPoIB header, which an InfiniBand MTU of 4096 has to hold as well.",
		Chosen:      "4092, where one table prints 4096. " + alsoWinOF2,
		Sources:     from(winof, "4.6.3 Basic Registry Keys", winof, "4.9.3 Tunable Performance Parameters"),
	},
	{
		Name: "*ReceiveBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: each(512, 4096), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Receive Buffers",
		Description: "Packets that each receive ring has room for. More of them survive longer bursts, and take more memory.",
		Chosen:      "The defaults of the tables; perf_tuning and the lists of tunable parameters print others.",
		Sources:     basicSources,
	},
	{
		Name: "*ReceiveBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(512), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Receive Buffers",
		Description: "Datagrams that an IPoIB interface has room for until they are looked at. More of them survive longer bursts, and take more memory.",
		Chosen:      "The defaults of the tables; perf_tuning and the lists of tunable parameters print others.",
		Sources:     basicSources,
	},
	{
		Name: "*TransmitBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onEthernet, Type: NumericString,
		Defaults: always(2048), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Send Buffers",
		Description: "Packets that each send ring has room for. More of them may improve sending, and take more memory.",
		Sources:     basicSources,
	},
	{
		Name: "*TransmitBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(2048), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Send Buffers",
		Description: "Datagrams that an IPoIB interface has under way at most; one that finds no room is dropped and counted.",
		Sources:     basicSources,
	},
	{
		Name: "*SpeedDuplex", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: NumericString,
		Defaults: always(7), Choices: []Choice{{7, "10 Gb/s full duplex", "the number that NDIS has for it"}}, Status: ReadOnly,
		Description: "Tells what speed the device reports to NDIS. It is there to be read; the link's own speed is in the device's status.",
		Sources:     basicSources,
	},
	{
		Name: "MaxNumOfMCList", Base: AdapterClass, Group: groupBasic, Generations: MLX4, Scope: onEthernet, Type: NumericString,
		Defaults: always(128), Min: 64, Max: 1024, Unit: "addresses",
		Description: "Multicast addresses that the adapter filters itself. With more of them in use the port takes every multicast frame and the host filters.",
		Sources:     from(winof, "4.6.3 Basic Registry Keys"),
	},
	{
		Name: "MaxNumOfMCList", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
		Defaults: always(128), Min: 64, Max: 1024, Unit: "addresses",
		Description: "Multicast groups that an IPoIB interface is a member of at most, the broadcast group counted. Groups beyond are not joined, and counted: InfiniBand has no port that takes every group.",
		Chosen:      alsoWinOF2,
		Sources:     from(winof, "4.6.3 Basic Registry Keys"),
	},
	{
		Name: "*QOS", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: physicalEthernet, Type: NumericString,
		Defaults: always(1), Choices: disableEnable, UI: true, Title: "Quality of Service",
		Description: "Offers NDIS quality of service: traffic classes, priority flow control and ETS. Not to be set on a virtual function.",
		Chosen:      alsoWinOF2,
		Sources:     from(winof, "4.6.3 Basic Registry Keys"),
	},
	{
		Name: "RxIntModerationProfile", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
		Defaults: always(2), Choices: moderationProfiles, UI: true, Title: "Rx Interrupt Moderation Profile",
		Description: "How far interrupts for received packets are held back while moderation is on.",
		Chosen:      "What the profiles do to adaptive moderation: none of it under low latency, as count and time say under moderate, twice as much under aggressive.",
		Sources:     basicSources,
	},
	{
		Name: "TxIntModerationProfile", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
		Defaults: always(1), Choices: moderationProfiles, UI: true, Title: "Tx Interrupt Moderation Profile",
		Description: "How far interrupts for completed sends are held back while moderation is on.",
		Chosen:      "What the profiles do: no moderation under low latency, as count and time say under moderate, twice as much under aggressive.",
		Sources:     basicSources,
	},
	{
		Name: "NetworkAddress", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: String, Status: Built,
		Defaults: automatic("the adapter's permanent address"), Max: 17, Form: UnicastMAC, UI: true, Title: "Locally Administered Address",
		Description: "MAC address to use in place of the permanent one. A multicast address is reported as an error when the adapter starts.",
		Chosen:      "The form of the value, which is NDIS's, and that WinOF has it too. GUIDs stay those of the permanent address.",
		Sources:     from(winof2, "5.5 Reported Driver Events"),
	},
}
