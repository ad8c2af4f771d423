package collector

import (
	"maps"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
)

// ofProcess are the totals that every adapter of a process has alike: the ports of a device do not add up.
var ofProcess = map[string]bool{"eq_overflows": true, "bad_doorbells": true, "dropped_doorbells": true}

// words says where each counter of the catalogue is read, by the short names of set and counter. Every
// function is a sum of words, so that the value since a reset is a difference of two results.
var words = map[string]map[string]func(*device.Counters) uint64{
	"lldp":            ofAgent(),
	"adapter_traffic": trafficWords(),
	"port_traffic": with(trafficWords(), map[string]func(*device.Counters) uint64{
		"received_too_long_packets":           tooLongPackets,
		"received_undersize_packets":          func(c *device.Counters) uint64 { return c.Link.ReceiveUndersize },
		"received_fragment_packets":           func(c *device.Counters) uint64 { return ethernetOf(c).Counters.Fragments },
		"received_jabber_packets":             func(c *device.Counters) uint64 { return ethernetOf(c).Counters.Jabbers },
		"received_unsupported_opcode_packets": unknownControls,
	}),
	"healing": ofHealing(),
	"adapter_diagnostics": {
		"requester_length_errors":               func(c *device.Counters) uint64 { return c.Transport.RequesterLengthErrors },
		"responder_length_errors":               func(c *device.Counters) uint64 { return c.Transport.ResponderLengthErrors },
		"requester_qp_operation_errors":         func(c *device.Counters) uint64 { return c.Transport.RequesterQPOperationErrors },
		"responder_qp_operation_errors":         func(c *device.Counters) uint64 { return c.Transport.ResponderQPOperationErrors },
		"requester_protection_errors":           func(c *device.Counters) uint64 { return c.Transport.RequesterProtectionErrors },
		"responder_protection_errors":           func(c *device.Counters) uint64 { return c.Transport.ResponderProtectionErrors },
		"requester_cqe_errors":                  func(c *device.Counters) uint64 { return c.Transport.RequesterCQEErrors },
		"responder_cqe_errors":                  func(c *device.Counters) uint64 { return c.Transport.ResponderCQEErrors },
		"requester_invalid_request_errors":      func(c *device.Counters) uint64 { return c.Transport.RequesterInvalidRequestErrors },
		"responder_invalid_request_errors":      func(c *device.Counters) uint64 { return c.Transport.ResponderInvalidRequestErrors },
		"requester_remote_access_errors":        func(c *device.Counters) uint64 { return c.Transport.RequesterRemoteAccessErrors },
		"responder_remote_access_errors":        func(c *device.Counters) uint64 { return c.Transport.ResponderRemoteAccessErrors },
		"requester_rnr_naks":                    func(c *device.Counters) uint64 { return c.Transport.RequesterRNRNAK },
		"responder_rnr_naks":                    func(c *device.Counters) uint64 { return c.Transport.ResponderRNRNAK },
		"requester_out_of_order_naks":           func(c *device.Counters) uint64 { return c.Transport.RequesterOutOfOrderNAK },
		"responder_out_of_order_packets":        func(c *device.Counters) uint64 { return c.Transport.ResponderOutOfOrder },
		"requester_resyncs":                     func(c *device.Counters) uint64 { return c.Transport.RequesterResync },
		"responder_resyncs":                     func(c *device.Counters) uint64 { return c.Transport.ResponderResync },
		"requester_remote_operation_errors":     func(c *device.Counters) uint64 { return c.Transport.RequesterRemoteOperationErrs },
		"requester_retries_exceeded_errors":     func(c *device.Counters) uint64 { return c.Transport.RequesterRetriesExceeded },
		"requester_rnr_retries_exceeded_errors": func(c *device.Counters) uint64 { return c.Transport.RequesterRNRRetriesExceeded },
		"bad_multicast_packets":                 func(c *device.Counters) uint64 { return c.Transport.BadMulticast },
		"discarded_ud_packets":                  func(c *device.Counters) uint64 { return c.Transport.DiscardedUD },
		"discarded_uc_packets":                  func(c *device.Counters) uint64 { return c.Transport.DiscardedUC },
		"cq_overflows":                          func(c *device.Counters) uint64 { return c.CQOverflows },
		"eq_overflows":                          func(c *device.Counters) uint64 { return c.EQOverflows },
		"bad_doorbells":                         badDoorbells,
		"responder_duplicate_requests":          func(c *device.Counters) uint64 { return c.Transport.ResponderDuplicateRequests },
		"requester_timeouts":                    func(c *device.Counters) uint64 { return c.Transport.RequesterTimeouts },
		"link_downs":                            func(c *device.Counters) uint64 { return c.LinkDowns },
		"tx_copied_packets":                     func(c *device.Counters) uint64 { return c.Transport.CopiedPackets },
		"tx_ring_full_packets":                  func(c *device.Counters) uint64 { return ethernetOf(c).Counters.RingFull },
		"rsc_aborts":                            func(c *device.Counters) uint64 { return ethernetOf(c).Counters.RSC.Aborts },
		"rsc_events":                            func(c *device.Counters) uint64 { return ethernetOf(c).Counters.RSC.Events },
		"rsc_bytes":                             func(c *device.Counters) uint64 { return ethernetOf(c).Counters.RSC.Octets },
		"stalled_states":                        func(c *device.Counters) uint64 { return c.Flow.States },
		"stalled_packets":                       func(c *device.Counters) uint64 { return c.Flow.Minor },
		"minor_stall_watermarks":                func(c *device.Counters) uint64 { return c.Flow.Minor },
		"critical_stall_watermarks":             func(c *device.Counters) uint64 { return c.Flow.Critical },
		"rsc_packets":                           func(c *device.Counters) uint64 { return ethernetOf(c).Counters.RSC.Packets },
	},
	"rdma_activity": {
		"accepted_connections":       func(c *device.Counters) uint64 { return c.CM.Accepted },
		"active_connections":         func(c *device.Counters) uint64 { return c.CM.Active },
		"completion_queue_errors":    func(*device.Counters) uint64 { return 0 }, // "always is set to zero"
		"connection_errors":          func(c *device.Counters) uint64 { return c.CM.ConnectionErrors },
		"failed_connection_attempts": func(c *device.Counters) uint64 { return c.CM.FailedAttempts },
		"inbound_bytes":              func(c *device.Counters) uint64 { return rdmaBytes(c, false) + c.Transport.LocalInboundBytes },
		"inbound_frames":             func(c *device.Counters) uint64 { return c.RDMA.ReceivedFrames + c.Transport.LocalInboundPackets },
		"initiated_connections":      func(c *device.Counters) uint64 { return c.CM.Initiated },
		"outbound_bytes":             func(c *device.Counters) uint64 { return rdmaBytes(c, true) + c.Transport.LocalOutboundBytes },
		"outbound_frames":            func(c *device.Counters) uint64 { return c.RDMA.SentFrames + c.Transport.LocalOutboundPackets },
	},
	"congestion_control": {
		"received_cnps":           cnps,
		"ignored_cnps":            func(c *device.Counters) uint64 { return c.Transport.IgnoredNotices },
		"handled_cnps":            func(c *device.Counters) uint64 { return cnps(c) - c.Transport.IgnoredNotices },
		"sent_cnps":               func(c *device.Counters) uint64 { return c.Transport.NoticesSent },
		"received_marked_packets": func(c *device.Counters) uint64 { return c.Transport.MarkedPackets },
		"limited_flows":           func(c *device.Counters) uint64 { return c.LimitedFlows },
	},
	"device": {
		"no_wqe_drops":      noReceive,
		"doorbells":         doorbells,
		"dropped_doorbells": badDoorbells,
	},
	"winof_bus": {
		"no_wqe_drops":          noReceive,
		"doorbells":             doorbells,
		"dropped_doorbells":     badDoorbells,
		"executed_commands":     func(c *device.Counters) uint64 { return c.Commands },
		"last_retransmitted_qp": func(c *device.Counters) uint64 { return c.RetransmittedQP },
		"error_qps":             func(c *device.Counters) uint64 { return c.ErrorQPs },
		"qp_mpt_entries":        func(c *device.Counters) uint64 { return uint64(c.Objects.QP) },
		"cq_mpt_entries":        func(c *device.Counters) uint64 { return uint64(c.Objects.CQ) },
		"mr_mpt_entries":        func(c *device.Counters) uint64 { return uint64(c.Objects.MR + c.Objects.MW) },
		"mr_mtt_entries":        func(c *device.Counters) uint64 { return c.MRPages },
		"received_cnps":         cnps,
		"invalid_qp_packets":    unknownQP,
	},
	"datapath": datapathWords(),
	"send_path": {
		"ring_sent_packets":      ofSends(sendPackets),
		"sent_batches":           ofSends(sendBursts),
		"sent_packets_per_batch": averageOf(ofSends(sendPackets), ofSends(sendBursts)),
		"refused_sends":          ofSends(func(s *ethernet.SendCounters) uint64 { return s.RingFull }),
		"sent_ring_bits":         ofSends(func(s *ethernet.SendCounters) uint64 { return 8 * s.Bytes }),
	},
	"transport": {
		"outbound_packets":       func(c *device.Counters) uint64 { return c.Transport.OutboundPackets },
		"outbound_bytes":         func(c *device.Counters) uint64 { return c.Transport.OutboundBytes },
		"inbound_packets":        func(c *device.Counters) uint64 { return c.Transport.InboundPackets },
		"inbound_bytes":          func(c *device.Counters) uint64 { return c.Transport.InboundBytes },
		"retransmitted_packets":  func(c *device.Counters) uint64 { return c.Transport.RetransmittedPackets },
		"local_messages":         func(c *device.Counters) uint64 { return c.Transport.LocalMessages },
		"local_bytes":            func(c *device.Counters) uint64 { return c.Transport.LocalBytes },
		"direct_messages":        func(c *device.Counters) uint64 { return c.Transport.DirectMessages },
		"direct_bytes":           func(c *device.Counters) uint64 { return c.Transport.DirectBytes },
		"local_outbound_packets": func(c *device.Counters) uint64 { return c.Transport.LocalOutboundPackets },
		"local_outbound_bytes":   func(c *device.Counters) uint64 { return c.Transport.LocalOutboundBytes },
		"local_inbound_packets":  func(c *device.Counters) uint64 { return c.Transport.LocalInboundPackets },
		"local_inbound_bytes":    func(c *device.Counters) uint64 { return c.Transport.LocalInboundBytes },
		"pkey_violations":        func(c *device.Counters) uint64 { return c.Transport.PKeyViolations },
		"qkey_violations":        func(c *device.Counters) uint64 { return c.Transport.QKeyViolations },
		"unknown_qp_packets":     unknownQP,
		"wrong_source_packets":   func(c *device.Counters) uint64 { return c.Transport.WrongSource },
		"wrong_port_packets":     func(c *device.Counters) uint64 { return c.Transport.WrongSourcePort },
		"conflicting_packets":    func(c *device.Counters) uint64 { return c.Transport.ConflictingPackets },
		"malformed_packets":      func(c *device.Counters) uint64 { return c.Transport.Malformed },
		"wrong_state_packets":    func(c *device.Counters) uint64 { return c.Transport.WrongState },
		"wrong_service_packets":  func(c *device.Counters) uint64 { return c.Transport.WrongService },
		"sent_raw_frames":        func(c *device.Counters) uint64 { return c.Transport.RawSent },
		"received_raw_frames":    func(c *device.Counters) uint64 { return c.Transport.RawReceived },
		"discarded_raw_frames":   func(c *device.Counters) uint64 { return c.Transport.RawDiscarded },
		"ghost_acks":             func(c *device.Counters) uint64 { return c.Transport.GhostACKs },
		"probes":                 func(c *device.Counters) uint64 { return c.Transport.Probes },
		"implied_naks":           func(c *device.Counters) uint64 { return c.Transport.ImpliedNAKs },
		"sent_sequence_naks":     func(c *device.Counters) uint64 { return c.Transport.SequenceNAKsSent },
		"sent_acks":              func(c *device.Counters) uint64 { return c.Transport.ACKsSent },
		"received_acks":          func(c *device.Counters) uint64 { return c.Transport.ACKsReceived },
		"broken_uc_messages":     func(c *device.Counters) uint64 { return c.Transport.BrokenUC },
		"received_cnps":          cnps,
		"unreachables":           func(c *device.Counters) uint64 { return c.Transport.Unreachable },
		"multicast_packets":      func(c *device.Counters) uint64 { return c.Transport.MulticastPackets },
		"dropped_mads":           func(c *device.Counters) uint64 { return c.Transport.DatagramDrops },
	},
	"connections": {
		"received_mads":              func(c *device.Counters) uint64 { return c.CM.Received },
		"sent_mads":                  func(c *device.Counters) uint64 { return c.CM.Sent },
		"retransmitted_mads":         func(c *device.Counters) uint64 { return c.CM.Retransmitted },
		"duplicate_mads":             func(c *device.Counters) uint64 { return c.CM.Duplicates },
		"malformed_mads":             func(c *device.Counters) uint64 { return c.CM.Malformed },
		"unknown_mads":               func(c *device.Counters) uint64 { return c.CM.Unknown },
		"unexpected_mads":            func(c *device.Counters) uint64 { return c.CM.Unexpected },
		"backlog_refused_requests":   func(c *device.Counters) uint64 { return c.CM.BacklogOverflow },
		"half_open_refused_requests": func(c *device.Counters) uint64 { return c.CM.HalfOpenLimit },
		"displaced_requests":         func(c *device.Counters) uint64 { return c.CM.Displaced },
		"unanswered_requests":        func(c *device.Counters) uint64 { return c.CM.Unanswered },
	},
	"link": {
		"sent_bursts":                 func(c *device.Counters) uint64 { return c.Link.SentBursts },
		"icrc_errors":                 func(c *device.Counters) uint64 { return c.Encap.ICRCErrors },
		"icrc_id_inferred_packets":    func(c *device.Counters) uint64 { return c.Encap.ICRCIDInferred },
		"icrc_id_open_guess_packets":  func(c *device.Counters) uint64 { return c.Encap.ICRCIDOpen },
		"icrc_id_refused_packets":     func(c *device.Counters) uint64 { return c.Encap.ICRCIDRefused },
		"malformed_frames":            func(c *device.Counters) uint64 { return c.Encap.Malformed },
		"foreign_frames":              func(c *device.Counters) uint64 { return c.Encap.NotForUs },
		"send_errors":                 func(c *device.Counters) uint64 { return c.Link.SendErrors },
		"send_blocks":                 func(c *device.Counters) uint64 { return c.Link.SendBlocked },
		"receive_drops":               func(c *device.Counters) uint64 { return c.Link.ReceiveDrops },
		"sent_frames":                 func(c *device.Counters) uint64 { return c.Link.SentFrames },
		"received_frames":             func(c *device.Counters) uint64 { return c.Link.ReceivedFrames },
		"other_source_port_routes":    func(c *device.Counters) uint64 { return c.Link.OtherSourcePorts },
		"truncated_packets":           func(c *device.Counters) uint64 { return c.Link.ReceiveTruncated },
		"receive_buffer_bytes":        func(c *device.Counters) uint64 { return uint64(max(0, c.Link.ReceiveBuffer)) },
		"impaired_lost_packets":       func(c *device.Counters) uint64 { return c.Link.ImpairedLost },
		"impaired_duplicated_packets": func(c *device.Counters) uint64 { return c.Link.ImpairedDuplicated },
		"impaired_reordered_packets":  func(c *device.Counters) uint64 { return c.Link.ImpairedReordered },
		"impaired_corrupted_packets":  func(c *device.Counters) uint64 { return c.Link.ImpairedCorrupted },
		"impaired_marked_packets":     func(c *device.Counters) uint64 { return c.Link.ImpairedMarked },
		"impaired_delayed_packets":    func(c *device.Counters) uint64 { return c.Link.ImpairedDelayed },
	},
}

// trafficWords are those of the sets about what a port carries.
func trafficWords() map[string]func(*device.Counters) uint64 {
	return with(carriedWords(), map[string]func(*device.Counters) uint64{
		"outbound_error_packets":              func(c *device.Counters) uint64 { return c.Link.SendErrors + refusedSends(ethernetOf(c)) },
		"outbound_discarded_packets":          func(c *device.Counters) uint64 { return c.Link.ImpairedLost },
		"received_error_packets":              receivedErrors,
		"received_frame_length_error_packets": func(c *device.Counters) uint64 { return tooLongPackets(c) + c.Link.ReceiveUndersize },
		"received_bad_crc_packets":            func(c *device.Counters) uint64 { return c.Encap.ICRCErrors + ethernetOf(c).Counters.BadFCS },
		"received_discarded_packets":          discardedPackets,
		"control_packets":                     controls,
	})
}

// with adds more words.
func with(m, more map[string]func(*device.Counters) uint64) map[string]func(*device.Counters) uint64 {
	maps.Copy(m, more)
	return m
}

// carriedWords are those of everything that an adapter carries.
func carriedWords() map[string]func(*device.Counters) uint64 {
	return map[string]func(*device.Counters) uint64{
		"received_bytes":   receivedBytes,
		"received_packets": func(c *device.Counters) uint64 { return c.Link.ReceivedPackets },
		"sent_bytes":       sentBytes,
		"sent_packets":     func(c *device.Counters) uint64 { return c.Link.SentPackets },
		"bytes":            func(c *device.Counters) uint64 { return receivedBytes(c) + sentBytes(c) },
		"packets":          func(c *device.Counters) uint64 { return c.Link.ReceivedPackets + c.Link.SentPackets },
	}
}

// The links count what follows the UDP header; frames begin with the Ethernet header.
func receivedBytes(c *device.Counters) uint64 {
	return c.Link.ReceivedBytes + c.Link.ReceivedPackets*c.FrameOverhead
}

func sentBytes(c *device.Counters) uint64 {
	return c.Link.SentBytes + c.Link.SentPackets*c.FrameOverhead
}

// rdmaBytes returns the bytes that RDMA functions have sent, or received.
func rdmaBytes(c *device.Counters, sent bool) uint64 {
	s := &c.RDMA
	if sent {
		return s.SentBytes + s.SentFrames*c.FrameOverhead
	}
	return s.ReceivedBytes + s.ReceivedFrames*c.FrameOverhead
}

func receivedErrors(c *device.Counters) uint64 {
	e := ethernetOf(c)
	return c.Link.ReceiveTruncated + c.Link.ReceiveUndersize + c.Encap.Malformed + c.Encap.ICRCErrors + e.Counters.Malformed +
		e.Counters.BadFCS + tooLong(e)
}

// noEthernet is what an adapter without an Ethernet function has counted.
var noEthernet device.EthernetStatus

func ethernetOf(c *device.Counters) *device.EthernetStatus {
	if c.Ethernet == nil {
		return &noEthernet
	}
	return c.Ethernet
}

// tooLongPackets are received ones dropped for their length.
func tooLongPackets(c *device.Counters) uint64 {
	return c.Link.ReceiveTruncated + tooLong(ethernetOf(c))
}

func tooLong(e *device.EthernetStatus) uint64 { return e.Counters.Filtered[filter.TooLong] }

// refusedSends are frames of a host that cannot be sent as they are.
func refusedSends(e *device.EthernetStatus) uint64 { return e.Counters.Refused + e.Side.BadHeaders }

func doorbells(c *device.Counters) uint64 { return c.Doorbells }

func badDoorbells(c *device.Counters) uint64 { return c.BadDoorbells }

func noReceive(c *device.Counters) uint64 { return c.Transport.DiscardedUD + c.Transport.DiscardedUC }

func cnps(c *device.Counters) uint64 { return c.Transport.CongestionNotices }

func unknownQP(c *device.Counters) uint64 { return c.Transport.UnknownQP }
