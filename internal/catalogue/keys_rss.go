package catalogue

const (
	groupRSS           Group = "RSS placement"
	groupRSSMonitoring Group = "RSS monitoring"
	groupLossless      Group = "Lossless TCP and dropless mode"
	groupBurst         Group = "Packet burst handling"
)

var (
	rssSources  = from(winof, "4.1.13.2 Using RSS", winof2, "3.1.7 Receive Side Scaling (RSS)")
	burstSource = from(ethernetB, "Packet Burst Handling")
)

// rssKeys are NDIS's standardized keywords.
func rssKeys() []Key {
	return []Key{
		{
			Name: "*RssBaseProcNumber", Base: AdapterClass, Group: groupRSS, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(0), Min: 0, Max: 63, Bound: Processors, UI: true, Title: "RSS Base Processor Number",
			Description: "First processor, within its group, that RSS uses. Different numbers keep adapters apart from each other. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "Default and limits, which are NDIS's.",
			Sources:     append(tuningSources, rssSources...),
		},
		{
			Name: "*RssBaseProcGroup", Base: AdapterClass, Group: groupRSS, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(0), Min: 0, Max: 63, UI: true, Title: "RSS Base Processor Group",
			Description: "Processor group of that first processor, on machines with more than 64. Processors 0 to 63 are group 0, and so on. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "Default and limits.",
			Sources:     rssSources,
		},
		{
			Name: "*RssMaxProcNumber", Base: AdapterClass, Group: groupRSS, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(63), Min: 0, Max: 63, UI: true, Title: "RSS Max Processor Number",
			Description: "Last processor, within its group, that RSS uses. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "Default and limits, which are NDIS's. " + alsoWinOF2,
			Sources:     append(tuningSources, from(winof, "10 Release Notes Change Log History")...),
		},
		{
			Name: "*NumaNodeID", Base: AdapterClass, Group: groupRSS, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(65535), Min: 0, Max: 65535, UI: true, Title: "Preferred NUMA node",
			Description: "NUMA node whose processors the adapter should use; 65535 means no preference. Memory is where the system puts it: with the processors that touch it first. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "Default and limits, which are NDIS's.",
			Sources:     rssSources,
		},
		{
			Name: "*RSSProfile", Base: AdapterClass, Group: groupRSS, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(1), UI: true, Title: "RSS Profile",
			Choices: []Choice{
				{1, "closest processor", "those next to the adapter, as the load requires"},
				{2, "closest processor static", "those next to the adapter, fixed"},
				{3, "NUMA scaling", "spread over the NUMA nodes, as the load requires"},
				{4, "NUMA scaling static", "spread over the NUMA nodes, fixed; perf_tuning's choice"},
				{5, "conservative scaling", "as few as are sufficient"},
			},
			Description: "How processors are chosen for RSS. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "The meaning of the numbers and the default, which are NDIS's; the manual prints perf_tuning's 4. " + alsoWinOF2,
			Sources:     append(tuningSources, from(winof, "10 Release Notes Change Log History")...),
		},
	}
}

func rssMonitoringKeys() []Key {
	return []Key{
		{
			Name: "RssMonitoringEnabled", Base: AdapterClass, Group: groupRSSMonitoring, Generations: MLX4, Scope: onBoth, Type: DWORD,
			Status: Built, Defaults: always(0), Choices: disableEnable,
			Description: "Allows capturing the packets that RSS does not spread, and the counters of the Adapter RSS set, which an adapter with an Ethernet function has.",
			Sources:     from(winof, "4.9.4.4 RSS Monitoring", winof, "4.9.4.4.2.1 Controlling the Counters"),
		},
		{
			Name: "RssCountersActivatedAtStartup", Base: AdapterClass, Group: groupRSSMonitoring, Generations: MLX4, Scope: onBoth, Type: DWORD,
			Status: Built, Defaults: always(0),
			Choices: []Choice{
				{0, "when watched", "counts from the first reading of the counter"},
				{1, "at startup", "counts from the start of the adapter"},
			},
			Description: "When the counters of the Adapter RSS set begin to count. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "That whoever reads the set by its name watches, and whoever reads all sets does not.",
			Sources: from(winof, "4.9.4.4.1.2 Packet Monitoring through the Performance Monitor", winof,
				"4.9.4.4.2.1 Controlling the Counters"),
		},
	}
}

func losslessKeys() []Key {
	return []Key{
		{
			Name: "DelayDropTimeout", Base: AdapterClass, Group: groupLossless, Generations: MLX4, Scope: physicalEthernet, Type: DWORD,
			Status: Built, Defaults: always(0), Min: 0, Max: 65535, Unit: "units of 100 us",
			Description: "How long a packet waits when its ring has no receive descriptor, and holds back those behind it; 0 disables lossless mode, 65535 means forever. OID_MLX_DROPLESS_MODE enters and leaves the mode.",
			Sources:     from(winof, "4.1.12.5 Enabling/Disabling Lossless TCP"),
		},
		{
			Name: "DelayDropTimeout", Base: AdapterClass, Group: groupLossless, Generations: MLX5, Scope: physicalEthernet, Type: DWORD,
			Status: Built, Defaults: always(50), Min: 0, Max: 100, Unit: "units of 100 us",
			Description: "How long a packet waits in dropless mode when its ring has no receive descriptor. After that it is dropped and the mode left, with an event; 0 disables dropless mode.",
			Chosen:      "That the mode is entered at start only if the key is set; the default is the time that OID_MLX_DROPLESS_MODE enters it with.",
			Sources:     from(ethernetB, "Dropless Mode"),
		},
	}
}

func burstKeys() []Key {
	return []Key{
		{
			Name: "AsyncReceiveIndicate", Base: AdapterClass, Group: groupBurst, Generations: MLX5, Scope: onEthernet, Type: NumericString, Status: Built,
			Defaults: always(0),
			Choices: []Choice{
				{0, "disabled", ""},
				{1, "threaded DPC", "buffers bursts, and passes packets to the system in a thread; recommended"},
				{2, "polling", "buffers bursts, and passes packets to the system by polling"},
			},
			Description: "Buffers received packets beyond the receive ring, so that none are lost in bursts.",
			Sources:     burstSource,
		},
		{
			Name: "RfdReservationFactor", Base: AdapterClass, Group: groupBurst, Generations: MLX5, Scope: onEthernet, Type: NumericString, Status: Built,
			Defaults: always(150), Min: 0, Max: 5000000, Unit: "packets",
			Description: "Receive packets held in reserve for bursts; 10,000 is recommended, and memory grows with it.",
			Chosen:      "The lower limit.",
			Sources:     burstSource,
		},
	}
}
