package catalogue

func softEthernet() CounterSet {
	return CounterSet{
		Name: "SoftVPI Ethernet", Generations: Both, Short: "ethernet", Instances: "interface", Reset: ResetOnDemand,
		Description: "Ethernet functions beyond what Network Interface shows: why frames were dropped, offloads, and how frames reach the host and come from it.",
		Counters: counted(
			total("Dropped, other address", "dropped_address_frames", "frames", "received frames to another address, or to groups that are not asked for"),
			total("Dropped, other VLAN", "dropped_vlan_frames", "frames", "received frames of a VLAN that is not asked for"),
			total("Dropped, too long", "dropped_long_frames", "frames", "received frames longer than *JumboPacket"),
			total("Dropped, own address", "dropped_own_frames", "frames", "received frames that somebody else sent with the function's address"),
			total("Dropped, malformed", "dropped_malformed_frames", "frames", "received frames without a whole Ethernet header"),
			total("MAC control frames", "control_frames", "frames", "received MAC control frames, such as pause, which end at the adapter"),
			total("Dropped, no buffer", "dropped_buffer_frames", "frames", "received frames for which the ring (*ReceiveBuffers) had no room"),
			total("Dropped, host", "dropped_host_frames", "frames", "received frames that the host did not take: nobody is there, or its interface is down"),
			total("Dropped, asleep", "dropped_asleep_frames", "frames", "received frames that did not wake the host, which slept"),
			total("Wake-ups", "wakes", "times", "times that a frame woke the host"),
			total("Received large", "received_large_frames", "frames", "frames of several segments that came unsplit"),
			total("Received checksums right", "received_good_checksums", "frames", "received frames whose checksums are right, or were never on a wire"),
			total("Received checksum errors", "received_checksum_errors", "frames", "received frames with a wrong checksum; the host gets them nevertheless"),
			total("Coalesced segments", "coalesced_segments", "frames", "received segments that were joined with others"),
			total("Coalescing events", "coalescing_events", "frames", "large frames that they were joined to"),
			total("Coalescing aborts", "coalescing_aborts", "times", "times that joining ended for another reason than the length"),
			total("Sent large", "sent_large_frames", "frames", "large sends, cut or passed on unsplit"),
			total("Sent segments", "sent_segments", "frames", "segments into which large sends were cut for the wire"),
			total("Sent checksums made", "sent_checksums_made", "frames", "sent frames whose checksums were made here, segments excluded"),
			total("Refused sends", "refused_sends", "frames", "frames of the host that were refused: too long, or with a tag of another VLAN"),
			total("Bad headers", "bad_header_frames", "frames", "frames of the host whose virtio header says what cannot be, or that are longer than any"),
			total("Finished for the host", "finished_frames", "frames", "frames of the host that were cut, or whose checksums were made, because a key switches the offload off"),
			total("Host blocked", "host_blocked", "times", "times that the host had no room for a frame, which then waited"),
			total("By threads", "threaded_frames", "frames", "frames that the threads of their queues read from the host, or were handed for it, because several queues were busy"),
			total("Reading paused", "reading_paused", "times", "times that nothing was read from the host because all buffers were in use"),
		),
	}
}

func softReceiveQueues() CounterSet {
	return CounterSet{
		Name: "SoftVPI Ethernet Receive Queues", Aliases: []string{"Mellanox WinOF-2 Receive Datapath Counters",
			"Mellanox WinOF-2 Receive Datapath"}, Generations: Both, Short: "receive_queues", Instances: "queue", Reset: ResetOnDemand,
		Description: "The receive queues of Ethernet functions. In interrupt mode (DPC) something was woken for packets, in polling mode (thread) the adapter looked for them.",
		Counters: counted(
			total("Received packets", "received_packets", "packets", "packets for the queue, joined ones counted once"),
			total("Received bytes", "received_bytes", "bytes", "bytes of these packets"),
			total("Packets in interrupt mode", "dpc_received_packets", "packets", "packets passed to the host in interrupt mode"),
			total("Packets in polling mode", "thread_packets", "packets", "packets passed to the host in polling mode"),
			total("Indications in interrupt mode", "dpc_indications", "times", "times that packets were passed to the host in interrupt mode"),
			total("Indications in polling mode", "thread_indications", "times", "times that packets were passed to the host in polling mode"),
			total("Receive interrupts", "receive_interrupts", "interrupts", "interrupts for received packets, as moderation lets them through"),
			total("Polling began", "polling_starts", "times", "changes from interrupt mode to polling mode"),
			total("Packets that waited", "moderated_packets", "packets", "packets that waited in the ring: for an interrupt, a thread or the host"),
			total("Packets in the reserve", "burst_packets", "packets", "packets that only the reserve for bursts (RfdReservationFactor) had room for"),
			total("Dropped, no buffer", "dropped_buffer_packets", "packets", "packets for which the ring had no room"),
		),
	}
}

func softSendQueues() CounterSet {
	return CounterSet{
		Name: "SoftVPI Ethernet Send Queues", Generations: Both, Short: "send_queues", Instances: "queue", Reset: ResetOnDemand,
		Description: "The send queues of Ethernet functions, by the receive queue of the same flows.",
		Counters: counted(
			total("Sent packets", "sent_packets", "packets", "sends that are complete"),
			total("Sent bytes", "sent_bytes", "bytes", "bytes of these sends"),
			total("Reported sends", "reported_sends", "packets", "complete sends that the host was told of"),
			total("Send interrupts", "send_interrupts", "interrupts", "interrupts for complete sends; none with SendCompletionMethod polling"),
			total("Full send ring", "full_ring_sends", "times", "sends for which the ring had no room"),
		),
	}
}
