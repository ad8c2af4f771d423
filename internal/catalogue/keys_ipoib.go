package catalogue

const (
	groupIPoIB   Group = "IPoIB"
	groupGeneral Group = "General"
)

var (
	ipoibSources   = from(winof, "4.6.7 IPoIB Registry Keys")
	generalSources = from(winof, "4.6.8 General Registry Values")
)

func ipoibKeys() []Key {
	return []Key{
		{
			Name: "GUIDMask", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(0xE7), Min: 0, Max: 0xFF, BitsSet: 6, Hex: true,
			Description: "Which six of the port GUID's eight bytes (one bit each) form the MAC address of the interface; 0 means the default.",
			Chosen:      alsoWinOF2,
			Sources:     ipoibSources,
		},
		{
			Name: "MediumType802_3", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Defaults: always(0),
			Choices: []Choice{
				{0, "InfiniBand", "NdisPhysicalMediumInfiniband"},
				{1, "802.3", "NdisPhysicalMedium802_3"},
			},
			Description: "What kind of medium the interface shows to the operating system. Here it is a TUN interface, which has no link layer and shows neither.",
			Chosen:      alsoWinOF2,
			Sources:     ipoibSources,
		},
		{
			Name: "SaTimeout", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(1000), Min: 250, Max: 60000, Unit: "ms", UI: true, Title: "SA Query Timeout",
			Description: "Time after which an unanswered query to the subnet administrator is sent again.",
			Chosen:      "250, where the list of tunable parameters prints 500. " + alsoWinOF2,
			Sources:     append(tunableSources[:1:1], ipoibSources...),
		},
		{
			Name: "SaRetries", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(10), Min: 1, Max: 64, Unit: "retries", UI: true, Title: "SA Query Retry Count",
			Description: "How often an unanswered query to the subnet administrator is sent again.",
			Chosen:      alsoWinOF2,
			Sources:     append(tunableSources[:1:1], ipoibSources...),
		},
		{
			Name: "McastIgmpMldGeneralQueryInterval", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB,
			Type: NumericString, Status: Built,
			Defaults: always(3), Min: 1, Max: 10, Unit: "runs of 30 s", UI: true, Title: "Multicast General Query Interval",
			Description: "Runs of the multicast monitor from one general IGMP or MLD query to the next.",
			Chosen:      alsoWinOF2,
			Sources:     ipoibSources,
		},
		{
			Name: "LocalEndpointMaxAge", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(5), Min: 1, Max: 20, Unit: "runs",
			Description: "Number of runs of the endpoint monitor after which an unused local endpoint is removed. Sending from it or receiving for it starts the count again; endpoints of VMQ do not age.",
			Chosen:      alsoWinOF2,
			Sources:     ipoibSources,
		},
		{
			Name: "LocalEndpointMonitorInterval", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(60000), Min: 10000, Max: 1200000, Unit: "ms",
			Description: "Time from one run of the endpoint monitor, which ages unused local endpoints, to the next.",
			Chosen:      alsoWinOF2,
			Sources:     ipoibSources,
		},
		{
			Name: "EnableQPR", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString, Status: Built,
			Defaults: always(0), Choices: disableEnable, UI: true, Title: "Query Path Record",
			Description: "Asks the subnet administrator for path records of remote ports.",
			Chosen:      "Without it, packets to a port of the same subnet take the path by which its answer came. " + alsoWinOF2,
			Sources:     ipoibSources,
		},
		{
			Name: "McastQueryResponseInterval", Base: AdapterClass, Group: groupIPoIB, Generations: Both, Scope: onIPoIB, Type: NumericString,
			Status:   Built,
			Defaults: always(2), Min: 1, Max: 10, Unit: "runs of 30 s",
			Description: "Number of runs of the multicast monitor for which an IGMP or MLD query may stay unanswered before the adapter leaves the group.",
			Chosen:      alsoWinOF2,
			Sources:     ipoibSources,
		},
	}
}

func generalKeys() []Key {
	return []Key{
		{
			Name: "MaxNumRssCpus", Base: Absolute, Path: services + `Ndis\Parameters`, Group: groupGeneral, Generations: MLX4,
			Scope: perMachine, Type: DWORD, Status: Built,
			Defaults: always(4), Min: 1, Max: 1024, Bound: Processors, Unit: "processors",
			Description: "Number of processors, and therefore receive rings, that take part in RSS, if *MaxRSSProcessors and *NumRSSQueues allow as many. The manual asks for a power of two below the number of processors; any number works here.",
			Chosen:      "The path, which is NDIS's, and the upper limit in addition to the number of processors.",
			Sources:     generalSources,
		},
		{
			Name: "RssBaseCpu", Base: Absolute, Path: services + `Ndis\Parameters`, Group: groupGeneral, Generations: Both, Scope: perMachine,
			Type: DWORD, Status: Built,
			Defaults: always(1), Min: 0, Max: 1023, Bound: Processors,
			Description: "Number of the first processor that RSS uses, for adapters that have no *RssBaseProcNumber of their own. Only where it is set: else RSS begins with processor 0, as NDIS itself does.",
			Chosen:      "The upper limit in addition to the number of processors. That it has to be set: one of two processors would not be used.",
			Sources:     append(registryTuning, generalSources...),
		},
		{
			Name: "CheckFwVersion", Base: DriverService, Group: groupGeneral, Generations: MLX4, Scope: perDriver, Type: DWORD,
			Status: Inherent, Defaults: always(1), Choices: []Choice{{0, "don't check", "for tests alone"}, {1, "check", ""}},
			Description: "Compares the firmware's version with the driver's at start, and refuses one that does not match. Here the driver has the engine that images are for; flint refuses an image for a later one.",
			Chosen:      "The path.",
			Sources:     generalSources,
		},
		{
			Name: "MaximumWorkingThreads", Base: DriverService, Group: groupGeneral, Generations: MLX4, Scope: perDriver, Type: DWORD,
			Status: Built, Defaults: always(2), Min: 1, Max: 256, Bound: ReceiveRings, Unit: "threads",
			Description: "Most threads that may serve receive rings at the same time, of those that an adapter's busy rings have; the other rings are the driver's loop's.",
			Chosen:      "The path, and the upper limit in addition to the number of rings.",
			Sources:     generalSources,
		},
	}
}
