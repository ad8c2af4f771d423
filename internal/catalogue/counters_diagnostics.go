package catalogue

func adapterDiagnostics() CounterSet {
	return CounterSet{
		Name: "Mellanox Adapter Diagnostics Counters", Aliases: []string{"Proprietary Mellanox Adapter Diagnostics Counters",
			"Mellanox Adapter Diagnostics"},
		Generations: Both, Short: "adapter_diagnostics", Instances: "adapter",
		Description: "What went wrong, or almost did. \"Requester\" is what happened to requests that this adapter sent, \"Responder\" to those that it received.",
		Sources:     []Source{{winof, "4.9.4.2 Proprietary Mellanox Adapter Diagnostics Counters"}},
		Counters:    joined(diagnostics(), stalls(), counted(ringFull()...), counted(coalescing()...)),
	}
}

func diagnostics() []Counter {
	return counted(
		total("Requester length errors", "requester_length_errors", "errors",
			"requests longer than a message may be, inline data beyond the QP's limit, atomics of other than 8 bytes"),
		total("Responder length errors", "responder_length_errors", "errors", "messages longer than the receive posted for them"),
		total("Requester QP operation errors", "requester_qp_operation_errors", "errors",
			"operations that the QP's service does not have, failed binds and invalidates, UD without an address handle"),
		total("Responder QP operation errors", "responder_qp_operation_errors", "errors", "receive queues whose ring has invalid contents"),
		total("Requester protection errors", "requester_protection_errors", "errors",
			"requests whose local memory is not registered for this use"),
		total("Responder protection errors", "responder_protection_errors", "errors", "receives whose memory is not registered for this use"),
		total("Requester CQE errors", "requester_cqe_errors", "errors", "completions of requests with an error, flushed ones included"),
		total("Responder CQE errors", "responder_cqe_errors", "errors", "completions of receives with an error, flushed ones included"),
		total("Requester Invalid request errors", "requester_invalid_request_errors", "errors", "NAKs \"invalid request\" received"),
		total("Responder Invalid request errors", "responder_invalid_request_errors", "errors", "NAKs \"invalid request\" sent"),
		total("Requester Remote access errors", "requester_remote_access_errors", "errors", "NAKs \"remote access\" received"),
		total("Responder Remote access errors", "responder_remote_access_errors", "errors", "NAKs \"remote access\" sent"),
		total("Requester RNR NAK", "requester_rnr_naks", "NAKs", "RNR NAKs received"),
		total("Responder RNR NAK", "responder_rnr_naks", "NAKs", "RNR NAKs sent"),
		total("Requester out of order sequence NAK", "requester_out_of_order_naks", "NAKs", "sequence NAKs received"),
		total("Responder out of order sequence received", "responder_out_of_order_packets", "packets",
			"packets that arrived ahead of their turn"),
		total("Requester resync", "requester_resyncs", "times", "times that the requester went back to an earlier packet"),
		total("Responder resync", "responder_resyncs", "times", "times that a read was answered again"),
		total("Requester Remote operation errors", "requester_remote_operation_errors", "errors", "NAKs \"remote operational error\" received"),
		total("Requester transport retries exceeded errors", "requester_retries_exceeded_errors", "errors", "requests to which no answer came"),
		total("Requester RNR NAK retries exceeded errors", "requester_rnr_retries_exceeded_errors", "errors",
			"requests for which the receiver was never ready"),
		total("Bad multicast received", "bad_multicast_packets", "packets", "multicast datagrams of a group to which no QP is attached"),
		total("Discarded UD packets", "discarded_ud_packets", "packets", "datagrams that found no receive"),
		total("Discarded UC packets", "discarded_uc_packets", "packets", "UC messages that found no receive"),
		whole(total("CQ overflows", "cq_overflows", "times", "completion queues of the device that overflowed; of both ports together")),
		total("EQ overflows", "eq_overflows", "events", "events dropped because a program had not fetched earlier ones; of all adapters of the process"),
		total("Bad doorbells", "bad_doorbells", "doorbells", "doorbells for queues that do not exist, and doorbell queues with invalid contents; of all adapters of the process"),
		total("Responder duplicate request received", "responder_duplicate_requests", "requests",
			"requests received again after they had been carried out"),
		total("Requester time out received", "requester_timeouts", "times", "times that the ACK timer expired"),
		total("Link down events", "link_downs", "times", "times that the address of the port went away, or the adapter was disabled"),
		total("TX Copied Packets", "tx_copied_packets", "packets",
			"packets whose payload had to be gathered: it lies in several SGEs, or in memory that the loop has not mapped"),
	)
}

func stalls() []Counter {
	return counted(
		total("Device detected stalled state", "stalled_states", "times",
			"times that a port in dropless mode began to hold packets back because there was no receive for one; without the mode it drops them (\"Packets Received Discarded\")"),
		total("Packet detected as stalled", "stalled_packets", "times", "times that the receive path stood still longer than its watermark"),
		Counter{
			Name: "Minor Stall Watermark Reached", Short: "minor_stall_watermarks", Kind: Total, Unit: "times", Generations: MLX5,
			Description: "times that the receive path stood still longer than DeviceRxStallWatermark", Sources: watermarkSources,
		},
		Counter{
			Name: "Critical Stall Watermark Reached", Short: "critical_stall_watermarks", Kind: Total, Unit: "times", Generations: MLX5,
			Description: "times that the receive path stood still longer than DeviceRxStallTimeout, which turns flow control off",
			Sources:     watermarkSources,
		},
	)
}

var watermarkSources = []Source{{ethernetA, "Receive Path Activity Monitoring"}, {ethernetB, "Receive Path Activity Monitoring"}}

func ringFull() []Counter {
	return []Counter{{
		Name: "TX Ring Is Full Packets", Short: "tx_ring_full_packets", Unit: "packets",
		Description: "packets of the Ethernet interface that found its send ring full",
		Sources:     []Source{{winof, "3 Bug Fixes (1079136)"}},
	}}
}

func coalescing() []Counter {
	return []Counter{
		rsc("RSC Aborts", "rsc_aborts", "times", "times that coalescing ended for a reason other than the length of a datagram"),
		rsc("RSC Coalesce Events", "rsc_events", "packets", "packets made by coalescing"),
		rsc("RSC Coalesce Octets", "rsc_bytes", "bytes", "bytes in packets that were coalesced"),
		rsc("RSC Coalesce Packets", "rsc_packets", "packets", "packets that were coalesced"),
	}
}

func rsc(name, short, unit, description string) Counter {
	c := total(name, short, unit, description)
	c.Sources = []Source{{winof, "4.1.8.2 RSC Counters"}, {ethernetA, "Receive Segment Coalescing (RSC)"},
		{ethernetB, "Receive Segment Coalescing (RSC)"}}
	return c
}
