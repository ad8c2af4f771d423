package catalogue

// portTraffic is WinOF-2's set for what WinOF has adapterTraffic: the same words, with the names and units of that driver.
var portTraffic = CounterSet{
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
		),
		notCounted(
			total("Packets Received Frame undersize Error", "received_undersize_packets", "packets",
				"packets dropped because they are shorter than 64 bytes; here such frames are taken, since virtual wires do not fill them up"),
			total("Packets Received Fragments Error", "received_fragment_packets", "packets",
				"short packets with a wrong frame check sequence; what is below the port has checked and removed that"),
			total("Packets Received jabbers Error", "received_jabber_packets", "packets",
				"long packets with a wrong frame check sequence; what is below the port has checked and removed that"),
		),
		counted(
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
				"received packets dropped because of an error: too long, malformed, or with a wrong invariant CRC"),
			total("Packets Received Frame Length Error", "received_frame_length_error_packets", "packets",
				"received packets dropped because they are longer than any that RoCE sends, or than *JumboPacket"),
		),
		notCounted(total("Packets Received Symbol Error", "received_symbol_error_packets", "packets",
			"packets with an invalid code block; what the port is connected to has no code blocks")),
		counted(
			total("Packets Received Bad CRC Error", "received_bad_crc_packets", "packets",
				"received packets whose invariant CRC is wrong; the system has already checked the frame check sequence"),
			total("Packets Received Discarded", "received_discarded_packets", "packets",
				"packets that the system dropped because the buffer of the port's socket was full, and frames for which a receive ring had no room"),
		),
	),
}
