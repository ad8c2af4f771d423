package catalogue

import "fmt"

// mlxtool computes the averages itself, over what was counted since it has looked before.
func datapathStatistics() CounterSet {
	return CounterSet{
		Name: "Ethernet Driver Data Path Statistics", Aliases: []string{"perfstats"},
		Generations: MLX4, Short: "datapath", Instances: "adapter", Reset: ResetOnDemand,
		Description: "What mlxtool show perfstats prints about the receive rings: those of the adapter's Ethernet function, or the link if it has none. In interrupt mode something was woken for packets; in polling mode somebody looked for them: the adapter's loop, as RecvCompletionMethod has it, or of a link a program that polls. A threaded DPC (AsyncReceiveIndicate 1) is interrupt mode.",
		Sources:     []Source{{winof, "5.5.3.10 show perfstats"}},
		Counters: joined(
			counted(
				total("PacketsReceivedDPC", "dpc_received_packets", "packets", "packets processed in interrupt mode"),
				total("PacketsReceivedThread", "thread_received_packets", "packets", "packets processed in polling mode"),
			),
			counted(
				level("Average Packets Per DPC", "packets_per_dpc", "packets",
					"average number of packets passed on at once in interrupt mode, since the driver's start, rounded down"),
				level("Average Packets Per Thread", "packets_per_thread", "packets",
					"average number of packets passed on at once in polling mode, since the driver's start, rounded down"),
				total("ConsumedMaxReceives", "consumed_maximum_receives", "times",
					"times that the most packets allowed at once were processed"),
				total("NumTrafficProfileTransitions", "traffic_profile_transitions", "times", "changes from interrupt mode to polling mode"),
			),
			counted(total("PacketsLowResources", "low_resource_packets", "times",
				"times that packets were passed on which the driver needed back at once: those that never waited in a ring")),
			counted(
				total("SkipReceiveDueToControlChanges", "skipped_receives", "times",
					"times that packets were being passed on and the rest had to stay, because the host took no more"),
				total("DpcWatchDogSingleDpcStarvation", "dpc_starvations", "times",
					"times that one run in interrupt mode reached its limit, which is MaxCallsToNdisIndicate of driverparams"),
			),
			notCounted(
				total("DpcWatchDogTotalDpcStarvation", "dpc_total_starvations", "times",
					"times that runs in interrupt mode reached the limit of the system's watchdog together; there is no such watchdog here"),
			),
			counted(
				rate("Ring Throughput", "ring_bits", "bits/s", "what the ring carries, in bits of frames"),
				total("Indications DPC", "dpc_batches", "times", "times that packets were passed on in interrupt mode"),
				total("Indications Thread", "thread_batches", "times", "times that packets were passed on in polling mode"),
			),
			counted(batchSizes()...),
		),
	}
}

// batchSizes returns the rows of the histogram that perfstats prints.
func batchSizes() []Counter {
	var all []Counter
	for from := 0; from <= 240; from += 40 {
		name := fmt.Sprintf("Indications of %d - %d Packets", from, from+39)
		all = append(all, total(name, fmt.Sprintf("batches_of_%d", from), "times", "times that this many packets were passed on at once"))
	}
	return all
}

func sendStatistics() CounterSet {
	return CounterSet{
		Name: "SoftVPI Send Path", Generations: MLX4, Short: "send_path", Instances: "adapter", Reset: ResetOnDemand,
		Description: "What mlxtool show perfstats prints about the send rings, whose counters the manual does not name: those of the adapter's Ethernet function, or the link if it has none.",
		Counters: joined(
			counted(
				total("PacketsSent", "ring_sent_packets", "packets", "packets that the link accepted"),
				level("Average Packets Per Send", "sent_packets_per_batch", "packets",
					"average number of packets passed to the link at once, since the driver's start, rounded down"),
				total("SendsRefused", "refused_sends", "times", "times that the link was full"),
				rate("Send Ring Throughput", "sent_ring_bits", "bits/s", "what the ring carries, in bits of frames"),
				total("Sends", "sent_batches", "times", "times that packets were passed to the link"),
			),
		),
	}
}

func vfMonitoring() CounterSet {
	return CounterSet{
		Name: "VF Monitoring", Generations: MLX5, Short: "vf_monitoring", Instances: "function",
		Description: "What virtual functions cost the adapter's firmware, which is the driver here, since they were created. mlx5cmd -ResourceDump with segment 0x5000 has the same values.",
		Sources:     []Source{{virtualization, "VF Monitoring"}},
		Counters: counted(
			total("FwCpuUsage", "firmware_cpu_seconds", "us", "how long the driver has worked on the commands of the function's programs"),
			total("Errors2FW", "firmware_errors", "errors", "commands of the function's programs that were refused"),
		),
	}
}
