package catalogue

func softOverlay() CounterSet {
	return CounterSet{
		Name: "SoftVPI Overlay", Generations: Both, Short: "overlay", Instances: "overlay", Reset: ResetOnDemand,
		Description: "The overlay of an adapter's port, while functions there are in virtual subnets: what they exchange with other hosts in VXLAN or NVGRE, RDMA and their network interfaces together, with the headers outside. Frames that are dropped are counted by their reasons.",
		Counters: counted(
			level("Functions", "functions", "functions", "functions at the port that are in virtual subnets"),
			level("Records", "records", "records", "lookup records that there are"),
			level("Routes", "routes", "routes", "customer routes and provider routes that there are"),
			level("Provider Addresses", "addresses", "addresses", "provider addresses of the adapter"),
			total("Frames Sent", "sent", "frames", "frames sent to other hosts in a tunnel, a copy for each host that gets one"),
			total("Bytes Sent", "sent_bytes", "bytes", "bytes of these"),
			rate("Bytes Sent/Sec", "sent_bytes_per_second", "bytes/s", "bytes sent a second", "sent_bytes"),
			total("Frames Received", "arrived", "frames", "frames received from other hosts in a tunnel"),
			total("Bytes Received", "arrived_bytes", "bytes", "bytes of these"),
			rate("Bytes Received/Sec", "arrived_bytes_per_second", "bytes/s", "bytes received a second", "arrived_bytes"),
			total("Frames Local", "local", "frames", "frames from one function here to others of its subnet"),
			total("Frames Routed", "routed", "frames", "frames sent to another virtual subnet of the routing domain"),
			total("Questions Answered", "answered", "frames", "questions for customer addresses that were answered from the records"),
			total("Dropped Malformed", "dropped_malformed", "frames", "frames dropped because their headers cannot be"),
			total("Dropped No Record", "dropped_no_record", "frames", "frames dropped because no record has the destination, or the address that is asked for"),
			total("Dropped No Route", "dropped_no_route", "frames", "packets dropped because the routing domain has no route"),
			total("Dropped Hop Limit", "dropped_hop_limit", "frames", "packets dropped because they were routed as often as they may be"),
			total("Dropped No Provider", "dropped_no_provider", "frames", "frames dropped because no provider address here reaches the other host"),
			total("Dropped Unresolved", "dropped_unresolved", "frames", "frames dropped because the other host does not answer"),
			total("Dropped Too Large", "dropped_too_large", "frames", "frames dropped because they do not fit into the wire with the headers outside"),
			total("Dropped Congested", "dropped_congested", "frames", "frames dropped because too many waited, or the packet could not have the mark of congestion outside"),
			total("Dropped Tagged", "dropped_tagged", "frames", "frames dropped because of a VLAN tag inside"),
			total("Dropped Fragment", "dropped_fragment", "frames", "parts of packets of other hosts, which are not put together"),
			total("Dropped Bad Checksum", "dropped_bad_checksum", "frames", "frames dropped because of a wrong checksum outside"),
			total("Dropped No Subnet", "dropped_no_subnet", "frames", "frames dropped because no function here is in the virtual subnet"),
			total("Dropped No Host", "dropped_no_host", "frames", "frames dropped because no record of the routing domain names the host that has sent them"),
			total("Dropped Nobody", "dropped_nobody", "frames", "frames dropped because nobody in the subnet has the address inside"),
			total("Dropped Foreign", "dropped_foreign", "frames", "frames to a provider address that are in no tunnel"),
		),
	}
}
