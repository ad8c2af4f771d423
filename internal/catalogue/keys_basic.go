package catalogue

const groupBasic Group = "Basic"

var basicSources = from(winof, "4.6.3 Basic Registry Keys", winof2, "3.4.2 Basic Registry Keys")

var moderationProfiles = []Choice{
	{0, "low latency", "frequent interrupts: for low latency, or few streams"},
	{1, "moderate", "a middle course for common loads"},
	{2, "aggressive", "rare interrupts: most throughput for the processor time, with many streams"},
}

func basicKeys() []Key {
	return []Key{
		{
			Name: "*JumboPacket", Aliases: []string{"JumboPackets", "MTU", "MaxFramSize"}, Base: AdapterClass, Group: groupBasic,
			Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Defaults: automatic("the MTU of the interface and 14 bytes: 1514 where that is 1500"), Min: 614, Max: 9614, Unit: "bytes", UI: true,
			Title:       "Jumbo Packet",
			Description: "Largest Ethernet frame, including its 14 bytes of header but not the FCS. RoCE packets are as large as it allows, and never larger than the interface's MTU does. Every device on the path has to accept frames of this size; on a virtual function it cannot exceed the host's.",
			Chosen:      "The limits of the lists of tunable parameters, where the tables print 600 to 9600. The automatic default: the manuals print 1514, which the interface of an adapter may not have.",
			Sources: append(from(winof, "4.9.3 Tunable Performance Parameters", winof2, "3.5.3 Tunable Performance Parameters", winof,
				"10 Release Notes Change Log History"), basicSources...),
		},
		{
			Name: "*JumboPacket", Aliases: []string{"JumboPackets", "MTU", "MaxFramSize"}, Base: AdapterClass, Group: groupBasic,
			Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(4092), Min: 1500, Max: 4092, Unit: "bytes", UI: true, Title: "Jumbo Packet",
			Description: "Largest IP packet over InfiniBand, not counting the 4 bytes of the IPoIB header, for which an InfiniBand MTU of 4096 must have room as well.",
			Chosen:      "4092, where one table prints 4096. " + alsoWinOF2,
			Sources:     from(winof, "4.6.3 Basic Registry Keys", winof, "4.9.3 Tunable Performance Parameters"),
		},
		{
			Name: "*ReceiveBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Defaults: each(512, 4096), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Receive Buffers",
			Description: "Number of packets for which each receive ring has room. More survive longer bursts, and take more memory.",
			Chosen:      "The defaults of the tables; perf_tuning and the lists of tunable parameters print others.",
			Sources:     basicSources,
		},
		{
			Name: "*ReceiveBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(512), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Receive Buffers",
			Description: "Number of received datagrams for which an IPoIB interface has room until they are handled. More survive longer bursts, and take more memory.",
			Chosen:      "The defaults of the tables; perf_tuning and the lists of tunable parameters print others.",
			Sources:     basicSources,
		},
		{
			Name: "*TransmitBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onEthernet, Type: NumericString, Status: Built,
			Defaults: always(2048), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Send Buffers",
			Description: "Number of packets for which each send ring has room. More may improve sending, and take more memory.",
			Sources:     basicSources,
		},
		{
			Name: "*TransmitBuffers", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(2048), Min: 256, Max: 4096, Unit: "packets", UI: true, Title: "Send Buffers",
			Description: "Most datagrams that an IPoIB interface may be sending at once; further ones are dropped and counted.",
			Sources:     basicSources,
		},
		{
			Name: "*SpeedDuplex", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: NumericString,
			Defaults: always(7), Choices: []Choice{{7, "10 Gb/s full duplex", "NDIS's number for it"}}, Status: ReadOnly,
			Description: "The speed that the device reports to NDIS. It can only be read; the speed of the link itself is shown in the device's status.",
			Sources:     basicSources,
		},
		{
			Name: "MaxNumOfMCList", Base: AdapterClass, Group: groupBasic, Generations: MLX4, Scope: onEthernet, Type: NumericString,
			Effect: AtOnce, Status: Built, Defaults: always(128), Min: 64, Max: 1024, Unit: "addresses",
			Description: "Number of multicast addresses that the adapter filters itself. If more are in use the port accepts every multicast frame, and the host filters (event ManyGroups). The addresses are those of the host's TAP; those of a virtual machine are not known, so that it gets every multicast frame.",
			Sources:     from(winof, "4.6.3 Basic Registry Keys"),
		},
		{
			Name: "MaxNumOfMCList", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(128), Min: 64, Max: 1024, Unit: "addresses",
			Description: "Most multicast groups, including the broadcast group, that an IPoIB interface joins. Further groups are not joined, but counted: an InfiniBand port cannot accept all groups.",
			Chosen:      alsoWinOF2,
			Sources:     from(winof, "4.6.3 Basic Registry Keys"),
		},
		{
			Name: "*QOS", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: physicalEthernet, Type: NumericString,
			Status:   Built,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Quality of Service",
			Description: "Offers NDIS quality of service: traffic classes, priority flow control and ETS. Not to be set on a virtual function.",
			Chosen:      alsoWinOF2,
			Sources:     from(winof, "4.6.3 Basic Registry Keys"),
		},
		{
			Name: "RxIntModerationProfile", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(2), Choices: moderationProfiles, UI: true, Title: "Rx Interrupt Moderation Profile",
			Description: "How long interrupts for received packets are delayed while moderation is on.",
			Chosen:      "The effect of the profiles on adaptive moderation: none with low latency, according to count and time with moderate, twice that with aggressive.",
			Sources:     basicSources,
		},
		{
			Name: "TxIntModerationProfile", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(1), Choices: moderationProfiles, UI: true, Title: "Tx Interrupt Moderation Profile",
			Description: "How long interrupts for completed sends are delayed while moderation is on.",
			Chosen:      "The effect of the profiles: no moderation with low latency, according to count and time with moderate, twice that with aggressive.",
			Sources:     basicSources,
		},
		{
			Name: "NetworkAddress", Base: AdapterClass, Group: groupBasic, Generations: Both, Scope: onBoth, Type: String, Status: Built,
			Defaults: automatic("the adapter's permanent address"), Max: 17, Form: UnicastMAC, UI: true, Title: "Locally Administered Address",
			Description: "MAC address to use instead of the permanent one. A multicast address is reported as an error when the adapter starts.",
			Chosen:      "The form of the value, which is NDIS's, and that WinOF has it too. GUIDs stay those of the permanent address.",
			Sources:     from(winof2, "5.5 Reported Driver Events"),
		},
	}
}
