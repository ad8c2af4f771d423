package catalogue

import "slices"

func softFunctions() CounterSet {
	return CounterSet{
		Name: "SoftVPI Virtual Function", Generations: Both, Short: "function", Instances: "function", Reset: ResetOnDemand,
		Description: "What virtual functions send and receive: RDMA, raw packets and their network interfaces together. Frames and bytes are those of Ethernet, inside the port (to other functions there) as on its wire; messages on the local path travel without packets, and are counted by their payload.",
		Counters: counted(slices.Concat(carried(), []Counter{
			total("Bytes Sent Inside", "inside_sent_bytes", "bytes", "bytes sent to other functions of the port, a part of those sent"),
			total("Bytes Received Inside", "inside_received_bytes", "bytes", "bytes received from other functions of the port, a part of those received"),
			total("Local Bytes Sent", "local_sent_bytes", "bytes", "payload sent on the local path"),
			total("Local Bytes Received", "local_received_bytes", "bytes", "payload received on the local path"),
			total("Spoofed Frames", "spoofed_frames", "frames", "frames dropped by spoof protection, the next three together"),
			total("Spoofed MACs", "spoofed_mac", "frames", "frames dropped because their source MAC is another's"),
			total("Spoofed EtherTypes", "spoofed_ethertype", "frames", "frames dropped because of an EtherType that virtual functions may not send"),
			total("Spoofed GIDs", "spoofed_gid", "packets", "RoCE packets of raw queue pairs dropped because their source GID is another's"),
			total("Wrong VLANs", "wrong_vlan", "frames", "frames dropped because of a tag that the function may not use"),
			total("Redirected DHCP", "redirected_dhcp", "frames", "frames of DHCP that went to the physical function alone"),
			total("Blocked Frames Sent", "blocked_sent", "frames", "frames sent that nobody got because the filter platform blocks the function's port or that of whom they were for"),
			total("Blocked Frames Received", "blocked_received", "frames", "frames for the function that the filter platform kept from it"),
			total("Queue Packets", "queue_packets", "packets", "packets that came by a virtual port's own receive queue (VMQ), since it has it"),
			total("Queue Bytes", "queue_bytes", "bytes", "bytes that came by that queue"),
			total("Queue Drops", "queue_dropped", "packets", "packets dropped there for want of a buffer"),
			level("Queue Number", "queue_number", "queues", "number of that queue at the physical function, 0: the port shares the default queue"),
			level("Link Up", "up", "links", "1 while the function's link is up"),
			level("Programs", "programs", "programs", "programs attached to the function"),
			level("Queue Pairs", "queue_pairs", "queue pairs", "queue pairs that programs have on the function"),
		})...),
	}
}
