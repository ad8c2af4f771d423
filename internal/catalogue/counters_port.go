package catalogue

// portTraffic is WinOF-2's set for what WinOF has adapterTraffic: the same words, with the names and units of that driver.
func portTraffic() CounterSet {
	return CounterSet{
		Name: "Mellanox WinOF-2 Port Traffic", Generations: MLX5, Short: "port_traffic", Instances: "adapter",
		Description: "What an adapter's port carries, as \"Mellanox Adapter Traffic Counters\" has it, under the names of WinOF-2. The available manuals do not name the set's counters; these are the names of NVIDIA's public documentation of the driver. A kilobyte has 1,000 bytes.",
		Counters: joined(
			counted(
				total("Bytes Received", "received_bytes", "bytes", "bytes that the port received"),
				rate("KBytes Received/Sec", "received_kilobytes_per_second", KilobytesPerSecond, "kilobytes received a second", "received_bytes"),
				total("Packets Received", "received_packets", "packets", "packets that the port received"),
				rate("Packets Received/Sec", "received_packets_per_second", "packets/s", "packets received a second", "received_packets"),
				total("Packets Received Frame too long Error", "received_too_long_packets", "packets",
					"received packets dropped because they are longer than any that RoCE sends, or than *JumboPacket"),
				total("Packets Received Unsupported opcode Error", "received_unsupported_opcode_packets", "packets",
					"MAC control frames that are neither pause (opcode 1) nor priority pause (0x101)"),
				total("Packets Received Frame undersize Error", "received_undersize_packets", "packets",
					"frames dropped because they are shorter than an Ethernet header, which a datagram socket can carry; what is longer is taken, since virtual wires do not fill frames up to 64 bytes"),
				total("Packets Received Fragments Error", "received_fragment_packets", "packets",
					"frames of less than 64 bytes for the Ethernet function with a wrong frame check sequence (virtual switches)"),
				total("Packets Received jabbers Error", "received_jabber_packets", "packets",
					"frames longer than *JumboPacket for the Ethernet function with a wrong frame check sequence (virtual switches)"),
				total("Bytes Sent", "sent_bytes", "bytes", "bytes that the port sent"),
				rate("KBytes Sent/Sec", "sent_kilobytes_per_second", KilobytesPerSecond, "kilobytes sent a second", "sent_bytes"),
				total("Packets Sent", "sent_packets", "packets", "packets that the port sent"),
				rate("Packets Sent/Sec", "sent_packets_per_second", "packets/s", "packets sent a second", "sent_packets"),
				total("Bytes Total", "bytes", "bytes", "bytes received and sent"),
				rate("KBytes Total/Sec", "kilobytes_per_second", KilobytesPerSecond, "kilobytes received and sent a second", "bytes"),
				total("Packets Total", "packets", "packets", "packets received and sent"),
				rate("Packets Total/Sec", "packets_per_second", "packets/s", "packets received and sent a second", "packets"),
				total("Control Packets", "control_packets", "packets", "MAC control frames that the Ethernet function received"),
				total("Packets Outbound Errors", "outbound_error_packets", "packets",
					"packets that the system refused to send, and frames of a host that cannot be"),
				total("Packets Outbound Discarded", "outbound_discarded_packets", "packets", "packets that the port's impairment lost"),
				total("Packets Received Errors", "received_error_packets", "packets",
					"received packets dropped because of an error: too long, too short, malformed, or with a wrong invariant CRC or frame check sequence"),
				total("Packets Received Frame Length Error", "received_frame_length_error_packets", "packets",
					"received packets dropped because they are longer than any that RoCE sends, or than *JumboPacket, or shorter than an Ethernet header"),
			),
			notCounted(total("Packets Received Symbol Error", "received_symbol_error_packets", "packets",
				"packets with an invalid code block; no wire here has code blocks, so there is nothing to count")),
			counted(
				total("Packets Received Bad CRC Error", "received_bad_crc_packets", "packets",
					"received packets whose invariant CRC is wrong, and frames for the Ethernet function whose frame check sequence a virtual switch's impairment has made wrong; on other wires the system has already checked that"),
				total("Packets Received Discarded", "received_discarded_packets", "packets",
					"packets that the system dropped because the buffer of the port's socket was full, and frames for which a receive ring had no room"),
			),
		),
	}
}
