package catalogue

func adapterQoS() CounterSet {
	return CounterSet{
		Name: "Mellanox Adapter QoS Counters", Aliases: []string{"Proprietary Mellanox QoS Counters", "Mellanox QoS Counters"},
		Generations: Both, Short: "adapter_qos", Instances: "priority",
		Description: "What each priority of a port carries, and how it is paused. A frame counts at the priority of its tag or, with RxTrustedState 2, of its DSCP, sent ones at that at which they leave. The instance \"Untagged\" counts frames without a priority, and its pause frames are the global ones. Sent: what this side asked of its peer. Received: what the peer asked of this side. Adapters at one port have the same counts, and frames between them are on no wire.",
		Sources:     []Source{{winof, "4.9.4.3 Proprietary Mellanox QoS Counters"}, {winof2, "Appendix: Windows MPI, PFC Example"}},
		Counters: joined(
			counted(qosTraffic()...),
			counted(
				total("Sent Pause Frames", "sent_pause_frames", "frames", "pause frames sent for the priority"),
				total("Sent Pause Duration", "sent_pause_seconds", "us", "time for which the peer was asked to pause the priority"),
				total("Received Pause Frames", "received_pause_frames", "frames", "pause frames received for the priority"),
				total("Received Pause Duration", "received_pause_seconds", "us", "time for which the peer asked to pause the priority"),
				total("Sent Discard Frames", "sent_discarded_frames", "frames",
					"packets that were dropped instead of sent, because they were at the head of their queue for too long; of the traffic class to which the priority is mapped"),
			),
		),
	}
}

// qosTraffic returns the counters of the packets and bytes of a priority.
func qosTraffic() []Counter {
	return []Counter{
		total("Bytes Received", "received_bytes", "bytes", "bytes of the priority received"),
		rate("Bytes Received/Sec", "received_bytes_per_second", "bytes/s", "bytes of the priority received a second", "received_bytes"),
		total("Packets Received", "received_packets", "packets", "packets of the priority received"),
		rate("Packets Received/Sec", "received_packets_per_second", "packets/s", "packets of the priority received a second",
			"received_packets"),
		total("Bytes Sent", "sent_bytes", "bytes", "bytes of the priority sent"),
		rate("Bytes Sent/Sec", "sent_bytes_per_second", "bytes/s", "bytes of the priority sent a second", "sent_bytes"),
		total("Packets Sent", "sent_packets", "packets", "packets of the priority sent"),
		rate("Packets Sent/Sec", "sent_packets_per_second", "packets/s", "packets of the priority sent a second", "sent_packets"),
		total("Bytes Total", "bytes", "bytes", "bytes of the priority received and sent"),
		rate("Bytes Total/Sec", "bytes_per_second", "bytes/s", "bytes of the priority received and sent a second", "bytes"),
		total("Packets Total", "packets", "packets", "packets of the priority received and sent"),
		rate("Packets Total/Sec", "packets_per_second", "packets/s", "packets of the priority received and sent a second", "packets"),
	}
}
