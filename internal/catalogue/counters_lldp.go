package catalogue

func softLLDP() CounterSet {
	return CounterSet{
		Name: "SoftVPI LLDP", Generations: MLX5, Short: "lldp", Instances: "adapter", Reset: ResetOnDemand,
		Description: "The LLDP agent of an adapter's port (the statistics of IEEE 802.1AB, 9.2.6), and DCBX. Of adapters that share a port the first has them.",
		Counters: counted(
			total("Frames sent", "sent_frames", "frames", "data units sent"),
			total("Frames received", "received_frames", "frames", "data units received"),
			total("Frames in error", "received_error_frames", "frames", "data units received with a TLV that is wrong, or that are invalid"),
			total("Frames discarded", "discarded_frames", "frames", "data units received that are invalid, or from one neighbour too many"),
			total("TLVs discarded", "discarded_tlvs", "TLVs", "TLVs received that are wrong"),
			total("TLVs unrecognized", "unrecognized_tlvs", "TLVs", "TLVs received of a type that is not known; they are shown, and mean nothing"),
			total("Neighbours aged out", "ageouts", "neighbours", "neighbours that were not heard of for as long as they said"),
			total("Neighbours shut down", "shutdowns", "neighbours", "neighbours that said that they end"),
			total("Multiple peers", "multiple_peers", "times", "times that a second neighbour began to speak DCBX, which then does nothing"),
			total("Invalid DCBX settings", "invalid_dcbx_settings", "times", "times that a peer's traffic classes made no sense, and were not taken"),
			total("DCBX configurations", "dcbx_configurations", "times", "times that the operative settings changed"),
		),
	}
}
