package catalogue

var softEthernet = CounterSet{
	Name: "SoftVPI Ethernet", Generations: Both, Short: "ethernet", Instances: "interface", Reset: ResetOnDemand,
	Description: "Ethernet functions beyond what Network Interface shows: why frames were dropped, offloads, and how frames reach the host and come from it.",
	Counters: counted(
		total("Dropped, other address", "dropped_address_frames", "frames", "received frames to another address, or to groups that are not asked for"),
		total("Dropped, other VLAN", "dropped_vlan_frames", "frames", "received frames of a VLAN that is not asked for"),
		total("Dropped, too long", "dropped_long_frames", "frames", "received frames longer than *JumboPacket"),
		total("Dropped, own address", "dropped_own_frames", "frames", "received frames that somebody else sent with the function's address"),
		total("Dropped, malformed", "dropped_malformed_frames", "frames", "received frames without a whole Ethernet header"),
		total("Dropped, no buffer", "dropped_buffer_frames", "frames", "received frames for which the ring (*ReceiveBuffers) had no room"),
		total("Dropped, host", "dropped_host_frames", "frames", "received frames that the host did not take: nobody is there, or its interface is down"),
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
		total("Reading paused", "reading_paused", "times", "times that nothing was read from the host because all buffers were in use"),
	),
}
