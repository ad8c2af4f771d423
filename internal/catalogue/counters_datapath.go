package catalogue

// The histogram that the tool prints after these is not a counter: the tool makes it.
var datapathStatistics = CounterSet{
	Name: "Ethernet Driver Data Path Statistics", Aliases: []string{"perfstats"},
	Generations: MLX4, Short: "datapath", Instances: "adapter", Reset: ResetOnDemand,
	Description: "What mlxtool show perfstats prints of the rings of the Ethernet interface. There is no Ethernet interface yet.",
	Sources:     []Source{{winof, "5.5.3.10 show perfstats"}},
	Counters: notCounted(
		total("PacketsReceivedDPC", "dpc_received_packets", "packets", "packets processed in interrupt mode"),
		total("PacketsReceivedThread", "thread_received_packets", "packets", "packets processed in polling mode"),
		level("Average Packets Per DPC", "packets_per_dpc", "packets", "packets handed up at once in interrupt mode, on average"),
		level("Average Packets Per Thread", "packets_per_thread", "packets", "packets handed up at once in polling mode, on average"),
		total("ConsumedMaxReceives", "consumed_maximum_receives", "times", "times that as many packets were processed as may be at once"),
		total("NumTrafficProfileTransitions", "traffic_profile_transitions", "times", "changes from interrupt mode to polling mode"),
		total("PacketsLowResources", "low_resource_packets", "times", "times that packets were handed up which the driver needed back at once"),
		total("SkipReceiveDueToControlChanges", "skipped_receives", "times", "times that receiving stopped for a change of settings"),
		total("DpcWatchDogSingleDpcStarvation", "dpc_starvations", "times", "times that one run in interrupt mode came to its limit"),
		total("DpcWatchDogTotalDpcStarvation", "dpc_total_starvations", "times", "times that all runs in interrupt mode came to their limit"),
		rate("Ring Throughput", "ring_bits", "bits/s", "what a ring carries"),
	),
}

var vfMonitoring = CounterSet{
	Name: "VF Monitoring", Generations: MLX5, Short: "vf_monitoring", Instances: "function",
	Description: "What virtual functions cost the adapter's firmware. There are no virtual functions yet.",
	Sources:     []Source{{virtualization, "VF Monitoring"}},
	Counters: notCounted(
		level("FwCpuUsage", "firmware_cpu_percent", "%", "share of the firmware's time that the function takes"),
		total("Errors2FW", "firmware_errors", "errors", "errors that the function caused in the firmware"),
	),
}
