package catalogue

func adapterTraffic() CounterSet {
	return CounterSet{
		Name: "Mellanox Adapter Traffic Counters", Aliases: []string{"Proprietary Mellanox Adapter Traffic Counters",
			"Mellanox Adapter Traffic"},
		Generations: Both, Short: "adapter_traffic", Instances: "adapter",
		Description: "What an adapter's port carries. Bytes are those of Ethernet frames from the destination address on, without the frame check sequence. A large frame that passes unsplit counts as the frames that it would be on a wire. Of adapters at one wire each counts its own, without what they send to each other. Messages on the local path travel without packets, and are not in this set.",
		Sources:     []Source{{winof, "4.9.4.1 Proprietary Mellanox Adapter Traffic Counters"}},
		Counters: joined(
			counted(
				total("Bytes Received", "received_bytes", "bytes", "bytes that the port received"),
				rate("Bytes Received/Sec", "received_bytes_per_second", "bytes/s", "bytes received a second", "received_bytes"),
				total("Packets Received", "received_packets", "packets", "packets that the port received"),
				rate("Packets Received/Sec", "received_packets_per_second", "packets/s", "packets received a second", "received_packets"),
				total("Bytes Sent", "sent_bytes", "bytes", "bytes that the port sent"),
				rate("Bytes Sent/Sec", "sent_bytes_per_second", "bytes/s", "bytes sent a second", "sent_bytes"),
				total("Packets Sent", "sent_packets", "packets", "packets that the port sent"),
				rate("Packets Sent/Sec", "sent_packets_per_second", "packets/s", "packets sent a second", "sent_packets"),
				total("Bytes Total", "bytes", "bytes", "bytes received and sent"),
				rate("Bytes Total/Sec", "bytes_per_second", "bytes/s", "bytes received and sent a second", "bytes"),
				total("Packets Total", "packets", "packets", "packets received and sent"),
				rate("Packets Total/Sec", "packets_per_second", "packets/s", "packets received and sent a second", "packets"),
			),
			counted(
				total("Control Packets", "control_packets", "packets",
					"MAC control frames received, pause frames among them, which end at the port"),
				total("Packets Outbound Errors", "outbound_error_packets", "packets",
					"packets that the system refused to send, and frames of a host that cannot be"),
				total("Packets Outbound Discarded", "outbound_discarded_packets", "packets", "packets that the port's impairment lost"),
				total("Packets Received Errors", "received_error_packets", "packets",
					"received packets dropped because of an error: too long, too short, malformed, or with a wrong invariant CRC or frame check sequence"),
				total("Packets Received with Frame Length Error", "received_frame_length_error_packets", "packets",
					"received packets dropped because they are longer than any that RoCE sends, or than *JumboPacket, or shorter than an Ethernet header"),
			),
			notCounted(total("Packets Received with Symbol Error", "received_symbol_error_packets", "packets",
				"packets with an invalid code block; no wire here has code blocks, so there is nothing to count")),
			counted(
				total("Packets Received with Bad CRC Error", "received_bad_crc_packets", "packets",
					"received packets whose invariant CRC is wrong, and frames for the Ethernet function whose frame check sequence a virtual switch's impairment has made wrong; on other wires the system has already checked that"),
				total("Packets Received Discarded", "received_discarded_packets", "packets",
					"packets that the system dropped because the buffer of the port's socket was full; a burst that it had merged counts once; and frames for which a receive ring had no room"),
			),
		),
	}
}
