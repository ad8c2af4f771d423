package catalogue

import "slices"

func softVLANs() CounterSet {
	return CounterSet{
		Name: "SoftVPI VLAN Interface", Generations: Both, Short: "vlan", Instances: "vlan", Reset: ResetOnDemand,
		Description: "VLAN interfaces (vlan_config), named as programs see them: the adapter at whose port one is, which of a team is its " +
			"carrier, and its name. RDMA and the network interface together. Frames and bytes are those of Ethernet, inside the port as on " +
			"its wire; messages on the local path travel without packets, and are counted by their payload.",
		Counters: counted(slices.Concat(carried(), []Counter{
			total("Local Bytes Sent", "local_sent_bytes", "bytes", "payload sent on the local path"),
			total("Local Bytes Received", "local_received_bytes", "bytes", "payload received on the local path"),
			level("VLAN ID", "id", "VLANs", "the VLAN that its frames are in"),
			level("Priority", "priority", "priorities", "priority of what has none of its own"),
			level("Link Up", "up", "links", "1 while its link is up"),
			level("Queue Pairs", "queue_pairs", "queue pairs", "queue pairs that programs have on it"),
		})...),
	}
}
