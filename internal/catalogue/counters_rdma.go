package catalogue

func rdmaActivity() CounterSet {
	return CounterSet{
		Name: "RDMA Activity", Aliases: []string{"Proprietary RDMA Activity", "RDMA Activity Counters"},
		Generations: Both, Short: "rdma_activity", Instances: "adapter",
		Description: "The RDMA connections of an adapter, and what it carries for them. The manuals' note that some of these do not count NDSPI traffic does not apply here: all do. The local path moves messages without packets; they count with their payload and the number of packets that they would have taken.",
		Sources:     []Source{{winof, "4.9.4.4.2.2 Proprietary RDMA Activity"}, {winof2, "3.5.4.0.1 RDMA Activity"}},
		Counters: counted(
			total("RDMA Accepted Connections", "accepted_connections", "connections", "inbound connections established"),
			level("RDMA Active Connections", "active_connections", "connections", "connections established now"),
			total("RDMA Completion Queue Errors", "completion_queue_errors", "errors", "always 0, as the manuals say"),
			total("RDMA Connection Errors", "connection_errors", "errors", "established connections that ended with an error"),
			total("RDMA Failed Connection Attempts", "failed_connection_attempts", "attempts", "inbound and outbound attempts that failed"),
			rate("RDMA Inbound Bytes/sec", "inbound_bytes", "bytes/s", "bytes received, including headers from the Ethernet header on"),
			rate("RDMA Inbound Frames/sec", "inbound_frames", "frames/s", "packets received"),
			total("RDMA Initiated Connections", "initiated_connections", "connections", "outbound connections established"),
			rate("RDMA Outbound Bytes/sec", "outbound_bytes", "bytes/s", "bytes sent, including headers from the Ethernet header on"),
			rate("RDMA Outbound Frames/sec", "outbound_frames", "frames/s", "packets sent"),
		),
	}
}

// The manuals at hand name this set but refer to another chapter for its contents, so the names of its
// counters are ours.
func congestionControl() CounterSet {
	return CounterSet{
		Name: "Mellanox WinOF-2 Congestion Control", Aliases: []string{"RCM counters"},
		Generations: MLX5, Short: "congestion_control", Instances: "adapter",
		Description: "RoCE congestion management. The available manuals name the set but not its counters; these names are SoftVPI's.",
		Sources:     []Source{{ethernetA, "RCM counters"}, {ethernetB, "RCM counters"}},
		Counters: counted(
			total("CNPs Received", "received_cnps", "packets", "congestion notification packets received"),
			total("CNPs Ignored", "ignored_cnps", "packets",
				"congestion notification packets that slowed no flow down: its priority has no reaction point, or they were not from its peer"),
			total("CNPs Handled", "handled_cnps", "packets", "congestion notification packets that slowed a flow down"),
			total("CNPs Sent", "sent_cnps", "packets", "congestion notification packets sent"),
			total("Marked Packets Received", "received_marked_packets", "packets",
				"RoCE packets with payloads received with a congestion mark, while any priority has a notification point"),
			level("Limited Flows", "limited_flows", "flows", "flows that are slowed down now"),
		),
	}
}
