package catalogue

const connectX3Pro = "; ConnectX-3 Pro only"

func deviceCounters() CounterSet {
	return CounterSet{
		Name: "Mellanox Device Counters", Aliases: []string{"Device Proprietary Counters"},
		Generations: MLX4, Short: "device", Instances: "device",
		Description: "How a card spends its cycles. A software adapter has no such cycles and caches; it counts what is meaningful for it.",
		Sources:     []Source{{winof, "4.9.5 Device Proprietary Counters"}},
		Counters: joined(
			notCounted(rate("PCI Back-pressure/sec", "pci_back_pressure_cycles", "cycles/s",
				"device cycles without credits to read or write over PCI Express")),
			counted(rate("No-WQE drops/sec", "no_wqe_drops", "packets/s", "UD and UC packets dropped because no receive was posted")),
			notCounted(
				rate("Scatter Back-pressure/sec", "scatter_back_pressure_cycles", "cycles/s",
					"device cycles in which scattering held up received packets"+connectX3Pro),
				rate("WQE fetch/Atomic Back-pressure/sec", "wqe_fetch_back_pressure_cycles", "cycles/s",
					"device cycles in which fetching a work request or an atomic held up received packets"+connectX3Pro),
				rate("Steering/QPC Back-pressure/sec", "steering_back_pressure_cycles", "cycles/s",
					"device cycles in which finding the queue of a packet held up received packets"+connectX3Pro),
			),
			cacheMisses(), blueFlames(), doorbells("External Doorbell push/sec", "External Doorbell drop/sec"),
		),
	}
}

// cacheMisses and blueFlames are in both sets.
func cacheMisses() []Counter {
	return notCounted(
		rate("SQ Miss/sec", "sq_misses", "misses/s", "send queue contexts that were not in the device's cache"),
		rate("RQ Miss/sec", "rq_misses", "misses/s", "receive queue contexts that were not in the device's cache"),
		rate("CQ Miss/sec", "cq_misses", "misses/s", "completion queue contexts that were not in the device's cache"),
		rate("EQ Miss/sec", "eq_misses", "misses/s", "event queue contexts that were not in the device's cache"),
		rate("MTT Miss/sec", "mtt_misses", "misses/s", "address translations that were not in the device's cache"),
		rate("MPT Miss/sec", "mpt_misses", "misses/s", "memory regions that were not in the device's cache"),
	)
}

func blueFlames() []Counter {
	return notCounted(
		rate("External Blueflame hit/sec", "blueflame_hits", "requests/s", "urgent work requests that the device read from its own buffer"),
		rate("External Blueflame replace/sec", "blueflame_replaces", "requests/s",
			"urgent work requests displaced by another one in the device's buffer"),
	)
}

func doorbells(push, drop string) []Counter {
	return joined(
		counted(rate(push, "doorbells", "doorbells/s", "doorbells that the device received; a program that posts in quick succession rings one for several requests")),
		counted(rate(drop, "dropped_doorbells", "doorbells/s",
			"doorbells for queues that do not exist, and doorbell queues with invalid contents; of all adapters of the process")),
	)
}

func winofBus() CounterSet {
	return CounterSet{
		Name: "Mellanox WinOF Bus Counters", Aliases: []string{"Mellanox Proprietary WinOF Bus Counters"},
		Generations: MLX4, Short: "winof_bus", Instances: "device",
		Description: "The inside of the device, to study its behaviour. A software adapter counts what is meaningful for it.",
		Sources:     []Source{{winof, "4.9.5.1 Mellanox Proprietary WinOF Bus Counters"}},
		Counters:    joined(busPipeline(), busProcessors(), busResources(), busCongestion()),
	}
}

func busPipeline() []Counter {
	return joined(
		notCounted(rate("PCI Back-pressure/sec", "pci_back_pressure_cycles", "cycles/s",
			"device cycles without credits to read or write over PCI Express")),
		counted(rate("No-WQE Drops/sec", "no_wqe_drops", "packets/s", "UD and UC packets dropped because no receive was posted")),
		notCounted(
			rate("Scatter Back-pressure/sec", "scatter_back_pressure_cycles", "cycles/s",
				"device cycles in which scattering held up received packets"+connectX3Pro),
			rate("WQE fetch/Atomic Back-pressure/sec", "wqe_fetch_back_pressure_cycles", "cycles/s",
				"device cycles in which fetching a work request or an atomic held up received packets"+connectX3Pro),
			rate("Steering/QPC Back-pressure/sec", "steering_back_pressure_cycles", "cycles/s",
				"device cycles in which finding the queue of a packet held up received packets"+connectX3Pro),
			rate("Receive WQE cache hit/sec", "receive_wqe_cache_hits", "hits/s", "receives that were in the device's cache"),
			rate("Receive WQE cache lookup/sec", "receive_wqe_cache_lookups", "lookups/s", "receives looked up in the device's cache"),
		),
		cacheMisses(),
		notCounted(
			rate("External Blueflame hit/sec", "blueflame_hits", "requests/s", "urgent work requests that the device read from its own buffer"),
			rate("External Blueflame Replace/sec", "blueflame_replaces", "requests/s",
				"urgent work requests displaced by another one in the device's buffer"),
		),
		doorbells("External Doorbell Push/sec", "External Doorbell Drop/sec"),
	)
}

func busProcessors() []Counter {
	return joined(notCounted(
		level("Internal Processor0 Maximum Latency", "processor0_maximum_latency_seconds", "us", "longest cycle of the device's processor 0"),
		level("Internal Processor1 Maximum Latency", "processor1_maximum_latency_seconds", "us", "longest cycle of the device's processor 1"),
		level("Internal Processor2 Maximum Latency", "processor2_maximum_latency_seconds", "us", "longest cycle of the device's processor 2"),
		level("Internal Processor3 Maximum Latency", "processor3_maximum_latency_seconds", "us", "longest cycle of the device's processor 3"),
	), counted(
		total("Internal processor executed commands", "executed_commands", "commands",
			"commands of programs that were carried out; of all adapters of the process"),
		level("Last Retransmitted QP", "last_retransmitted_qp", "", "number of the RC QP that last sent a packet again"),
		level("Current QPS in error state", "error_qps", "QPs", "QPs that ended with an error"),
	), notCounted(
		total("QP priority update flow events", "qp_priority_updates", "events", "changes of the priority or service level of a QP"),
		total("Transmission engine hang events", "transmission_hangs", "events", "times that the sending engine hung"),
		level("Current QPS in limited state", "limited_qps", "QPs", "QPs that are limited now"),
		total("Total QPS in limited state", "limited_qps_ever", "QPs", "QPs that were limited"),
		level("Maximum QPS in limited state", "limited_qps_maximum", "QPs", "most QPs that were limited at one time"),
	))
}

func busResources() []Counter {
	return joined(
		counted(
			level("MPT entries used for QP", "qp_mpt_entries", "entries", "QPs that exist: each has the memory of its rings"),
			level("MPT entries used for CQ", "cq_mpt_entries", "entries", "CQs that exist: each has the memory of its ring"),
		),
		notCounted(
			level("MPT entries used for EQ", "eq_mpt_entries", "entries", "entries of the memory protection table that EQs hold"),
		),
		counted(level("MPT entries used for MR", "mr_mpt_entries", "entries", "memory regions and windows that exist")),
		notCounted(
			level("MTT entries used for QP", "qp_mtt_entries", "entries", "entries of the address translation table that QPs hold"),
			level("MTT entries used for CQ", "cq_mtt_entries", "entries", "entries of the address translation table that CQs hold"),
			level("MTT entries used for EQ", "eq_mtt_entries", "entries", "entries of the address translation table that EQs hold"),
		),
		counted(level("MTT entries used for MR", "mr_mtt_entries", "entries",
			"pages of 4 KB that memory regions touch; a page counts once for each region")),
		notCounted(
			level("CPU MEM-pages (4K) mapped by TPT for QP", "qp_mapped_pages", "pages", "pages of 4 KB that are mapped for QPs"),
			level("CPU MEM-pages (4K) mapped by TPT for CQ", "cq_mapped_pages", "pages", "pages of 4 KB that are mapped for CQs"),
			level("CPU MEM-pages (4K) mapped by TPT for EQ", "eq_mapped_pages", "pages", "pages of 4 KB that are mapped for EQs"),
			level("CPU MEM-pages (4K) mapped by TPT for MR", "mr_mapped_pages", "pages", "pages of 4 KB that are mapped for memory regions"),
		),
	)
}

func busCongestion() []Counter {
	return counted(
		total("Arrived RDMA CNPs", "received_cnps", "packets", "congestion notification packets received"),
		total("Packets discarded due to invalid QP", "invalid_qp_packets", "packets", "packets for a QP that does not exist"),
	)
}
