package catalogue

func softQueues() CounterSet {
	return CounterSet{
		Name: "SoftVPI VMQ", Generations: Both, Short: "vmq", Instances: "queues", Reset: ResetOnDemand,
		Description: "The receive queues that adapters with wires of whole frames have for virtual ports (VMQ). What came by a port's own " +
			"queue is in the set of virtual functions; the default queue is shared by the ports without one.",
		Counters: counted(
			total("Default Queue Packets", "default_packets", "packets", "packets that came by the default queue"),
			total("Default Queue Bytes", "default_bytes", "bytes", "bytes that came by the default queue"),
			total("Default Queue Drops", "default_dropped", "packets", "packets dropped there for want of a buffer"),
			level("Ports Sharing", "sharing_ports", "ports", "virtual ports that share the default queue"),
			level("Queues", "queues", "queues", "queues that virtual ports may have, the default one not among them"),
			level("Queues Used", "used_queues", "queues", "queues that virtual ports have"),
			level("MAC Filters", "mac_filters", "filters", "MAC filters that there may be"),
			level("MAC Filters Used", "used_mac_filters", "filters", "MAC filters that there are"),
			level("VLAN Filters", "vlan_filters", "filters", "VLAN filters that there may be"),
			level("VLAN Filters Used", "used_vlan_filters", "filters", "VLAN filters that there are"),
		),
	}
}
