package catalogue

const groupPerformance Group = "Performance"

var (
	performanceSources = from(winof, "4.6.5 Performance Registry Keys", winof2, "3.4.4 Performance Registry Keys")
	performanceMLX4    = from(winof, "4.6.5 Performance Registry Keys")
	tunableSources     = from(winof, "4.9.3 Tunable Performance Parameters", winof2, "3.5.3 Tunable Performance Parameters")
	tuningSources      = from(winof, "4.9.1.6 Performance Tuning Tool Application")
)

const rssChoice = "chosen from the RSS configuration"

func performanceKeys() []Key {
	return []Key{
		{
			Name: "RecvCompletionMethod", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(1), UI: true, Title: "Receive Completion Method",
			Choices: []Choice{
				{0, "polling", "the rings are polled all the time: lowest latency, but a processor is always busy"},
				{1, "adaptive", "polls while packets arrive, and waits for an interrupt when they stop"},
				{2, "adaptive", "the same, as perf_tuning numbers it"},
			},
			Description: "How the arrival of packets is noticed.",
			Chosen:      "That 2 means adaptive: the key tables do not list it, but perf_tuning writes it. Adaptive polling lasts at least 50 microseconds. One loop serves all adapters: it polls as long as one of them asks for it.",
			Sources:     append(tuningSources, performanceSources...),
		},
		{
			Name: "SendCompletionMethod", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(1), IPoIB: onIB(0), UI: true, Title: "Send Completion Method",
			Choices: []Choice{
				{0, "polling", "completions of sends are looked for when the next packets are sent"},
				{1, "interrupt", "completions of sends raise an interrupt"},
			},
			Description: "How the completion of sends is noticed. Of InfiniBand ports it switches nothing: completions of sends are polled, as their default says.",
			Chosen:      "What the two numbers mean: perf_tuning's table prints only the numbers.",
			Sources:     append(tunableSources, tuningSources...),
		},
		{
			Name: "*InterruptModeration", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Interrupt Moderation",
			Description: "Delays the events of completions until 5 packets have arrived or 10 microseconds have passed since the first of them. Without it every completion raises an event: lower latency, but more processor time. What a program itself sets for a queue takes precedence.",
			Chosen:      "Microseconds, where the lists of tunable parameters print milliseconds. That the events of completion queues are delayed, and that connections on the direct path raise theirs without the adapter.",
			Sources:     performanceSources,
		},
		{
			Name: "RxIntModeration", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(2), UI: true, Title: "Rx Interrupt Moderation Type",
			Choices: []Choice{
				{1, "static", "count and time stay as they are set"},
				{2, "adaptive", "count and time follow the kind and rate of traffic"},
			},
			Description: "Whether the moderation of receive interrupts follows the traffic.",
			Chosen:      "Adaptive moderation delays a queue's events from when its completions arrive faster than pkt_rate_high until they arrive slower than pkt_rate_low; WinOF-2 adapters use WinOF's defaults of the two.",
			Sources:     performanceSources,
		},
		{
			Name: "RxIntModerationPacketCount", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth,
			Type: NumericString, Status: Built,
			Defaults: always(5), Min: 0, Max: 65535, Unit: "packets", UI: true, Title: "Interrupt Moderation RX Packet Count",
			Description: "Number of packets that have to arrive before the receive side raises an interrupt; with 0 only the time decides.",
			Chosen:      "The name and the limits; the manuals print the title and the default.",
			Sources:     tunableSources,
		},
		{
			Name: "RxIntModerationPacketTime", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth,
			Type: NumericString, Status: Built,
			Defaults: always(10), Min: 0, Max: 65535, Unit: "us", UI: true, Title: "Interrupt Moderation RX Packet Time",
			Description: "Longest time from a packet's arrival to its interrupt, however few have arrived; 0 means no moderation.",
			Chosen:      "The name and the limits; the manuals print the title and the default.",
			Sources:     tunableSources,
		},
		{
			Name: "TxIntModerationPacketCount", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth,
			Type: NumericString, Status: Built,
			Defaults: always(0), Min: 0, Max: 65535, Unit: "packets", UI: true, Title: "Interrupt Moderation TX Packet Count",
			Description: "Number of sends that have to complete before the send side raises an interrupt; with 0 only the time decides.",
			Chosen:      "The name and the limits; the manuals print the title and the default.",
			Sources:     tunableSources,
		},
		{
			Name: "TxIntModerationPacketTime", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth,
			Type: NumericString, Status: Built,
			Defaults: always(0), Min: 0, Max: 65535, Unit: "us", UI: true, Title: "Interrupt Moderation TX Packet Time",
			Description: "Longest time from a send's completion to its interrupt, however few have completed; 0 means no moderation.",
			Chosen:      "The name and the limits; the manuals print the title and the default.",
			Sources:     tunableSources,
		},
		{
			Name: "pkt_rate_low", Base: AdapterClass, Group: groupPerformance, Generations: MLX4, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(150000), Min: 100, Max: 1000000, Unit: "packets/s",
			Description: "Adaptive moderation treats traffic slower than this as latency traffic.",
			Sources:     performanceMLX4,
		},
		{
			Name: "pkt_rate_high", Base: AdapterClass, Group: groupPerformance, Generations: MLX4, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(170000), Min: 100, Max: 1000000, Unit: "packets/s",
			Description: "Adaptive moderation treats traffic faster than this as bandwidth traffic.",
			Sources:     performanceMLX4,
		},
		{
			Name: "*RSS", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "Receive Side Scaling",
			Description: "Spreads received packets over several processors by a hash of their addresses and ports. Disabled, the Toeplitz hash is set up once and its indirection table stays. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Sources:     performanceSources,
		},
		{
			Name: "TxHashDistribution", Aliases: []string{"TxHashDisrtibution"}, Base: AdapterClass, Group: groupPerformance, Generations: MLX4,
			Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(3),
			Choices: []Choice{
				{1, "size", "two send rings: packets below 128 bytes in one, the others in the other"},
				{2, "hash", "a hash of destination address and TCP ports; packets other than IP go to ring 0"},
				{3, "hash and size", "two rings for each hash value, one for small packets"},
			},
			Description: "How packets to send are spread over the send rings. Of InfiniBand ports it switches nothing: an IPoIB interface has one send queue.",
			Chosen:      "The spelling: the manual swaps two letters.",
			Sources:     performanceMLX4,
		},
		{
			Name: "RxSmallPacketBypass", Base: AdapterClass, Group: groupPerformance, Generations: MLX4, Scope: onBoth, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(0), Choices: disableEnable,
			Description: "Passes small received packets to the system before large ones, so that acknowledgements overtake data if there is traffic both ways. Of InfiniBand ports it switches nothing: packets stay in their order.",
			Sources:     performanceMLX4,
		},
		{
			Name: "ReturnPacketThreshold", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(341), Min: 0, Max: 4096, Unit: "packets",
			Description: "Number of free received packets that a receive ring keeps; the memory of any more is given back at once. 0 means two thirds of the ring. Of InfiniBand ports it switches nothing: an IPoIB interface keeps the memory of *ReceiveBuffers.",
			Chosen:      "That a packet is given back as memory: a ring here has memory only for what has waited in it.",
			Sources:     performanceSources,
		},
		{
			Name: "NumTcb", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(16), Min: 1, Max: 64, Unit: "buffers",
			Description: "Number of buffers for large frames of the host that have not left; while they are full nothing more is read from it. Frames of up to 2 KB have 1,024 buffers of their own. Of InfiniBand ports it switches nothing: an IPoIB interface has *TransmitBuffers.",
			Chosen:      "That each has room for the largest of all frames, with that offload or without, and that up to four frames of one packet count as one.",
			Sources:     performanceSources,
		},
		{
			Name: "ThreadPoll", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(10000), Min: 0, Max: 200000, Unit: "cycles",
			Description: "Number of polling rounds without a packet before polling ends, if RecvCompletionMethod is polling; the next packet starts it again.",
			Sources:     performanceSources,
		},
		{
			Name: "AverageFactor", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(16), Min: 0, Max: 256,
			Description: "Weight of the last polling round in the moving average that decides whether to continue polling.",
			Chosen:      "That the weight is in 256ths.",
			Sources:     performanceSources,
		},
		{
			Name: "AveragePollThreshold", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(10), Min: 0, Max: 1000, Unit: "packets",
			Description: "Polling continues while the average number of packets in a round is above this.",
			Sources:     performanceSources,
		},
		{
			Name: "ThisPollThreshold", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString,
			Status:   Built,
			Defaults: always(100), Min: 0, Max: 1000, Unit: "packets",
			Description: "Polling continues if the last round alone brought more packets than this.",
			Sources:     performanceSources,
		},
		{
			Name: "*HeaderDataSplit", Base: AdapterClass, Group: groupPerformance, Generations: MLX4, Scope: onBoth, Type: NumericString,
			Status: Built,
			Effect: AtOnce, Defaults: always(0), Choices: disableEnable,
			Description: "Receives headers and data into separate buffers, which keeps the headers together in the caches. Of InfiniBand ports it switches nothing: Linux takes packets whole.",
			Sources:     append(from(winof, "4.1.7 Header Data Split"), performanceMLX4...),
		},
		{
			Name: "VlanId", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: physical, Type: NumericString, Status: Built,
			Effect: AtOnce, Defaults: always(0), Min: 0, Max: 4095, UI: true, Title: "VLAN ID",
			Description: "VLAN of every packet of the adapter, if no teaming driver sets one; 0 means no VLAN. Not to be set on a virtual function. Of InfiniBand ports it switches nothing: they have partitions (part_man) instead.",
			Sources:     performanceSources,
		},
		{
			Name: "TxForwardingProcessor", Base: AdapterClass, Group: groupPerformance, Generations: MLX4, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: automatic(rssChoice), Min: 0, Max: 1023, Bound: Processors, AutoText: "-1",
			Description: "Processor that runs the thread that forwards packets to send: the driver's loop, which serves everything else of its adapters too. Of InfiniBand ports it switches nothing: the loop runs where Ethernet functions have it.",
			Chosen:      "The limits. That the loop runs on all that are named, if its adapters name different ones.",
			Sources:     append(tuningSources, performanceMLX4...),
		},
		{
			Name: "DefaultRecvRingProcessor", Base: AdapterClass, Group: groupPerformance, Generations: MLX4, Scope: onBoth,
			Type: NumericString, Status: Built,
			Defaults: automatic(rssChoice), Min: 0, Max: 1023, Bound: Processors, AutoText: "-1",
			Description: "Processor of the default receive ring, which receives the packets that RSS does not spread. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "The limits.",
			Sources:     append(tuningSources, performanceMLX4...),
		},
		{
			Name: "TxInterruptProcessor", Base: AdapterClass, Group: groupPerformance, Generations: MLX4, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: automatic(rssChoice), Min: 0, Max: 1023, Bound: Processors, AutoText: "-1",
			Description: "Processor that handles the completions of sends: as TxForwardingProcessor, it is for the driver's loop. Of InfiniBand ports it switches nothing: the loop runs where Ethernet functions have it.",
			Chosen:      "The limits.",
			Sources:     append(tuningSources, performanceMLX4...),
		},
		{
			Name: "*NumRSSQueues", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(8), Min: 1, Max: 64, Unit: "queues", UI: true, Title: "Maximum Number of RSS Queues",
			Description: "Most receive queues over which RSS spreads packets. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Sources:     performanceSources,
		},
		{
			Name: "BlueFlame", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString, Status: Inherent,
			Defaults: always(1), Choices: disableEnable,
			Description: "Passes small work requests to the device together with the doorbell, so that it need not fetch them over its bus. A software adapter has no bus: it reads a request where the program has written it. Whether the data is in the request is the program's choice (inline sends).",
			Sources:     performanceSources,
		},
		{
			Name: "*MaxRSSProcessors", Base: AdapterClass, Group: groupPerformance, Generations: Both, Scope: onBoth, Type: NumericString, Status: Built,
			Defaults: always(8), Min: 1, Max: 64, Bound: Processors, Unit: "processors", UI: true, Title: "Maximum Number of RSS Processors",
			Description: "Most processors that take part in RSS; adapters may have different numbers. Of InfiniBand ports it switches nothing: an IPoIB interface has one queue pair, which one thread serves.",
			Chosen:      "The limits, which are those of the RSS queues.",
			Sources:     append(from(winof, "4.1.13.2 Using RSS", winof2, "3.1.7 Receive Side Scaling (RSS)"), performanceSources...),
		},
	}
}
