package collector

// interfaceWords says where the counters of the per-interface sets are read, like words for the others.
var interfaceWords = map[string]map[string]func(*Interface) uint64{
	"network_interface": {
		"received_bytes":             func(i *Interface) uint64 { return i.ReceivedBytes },
		"sent_bytes":                 func(i *Interface) uint64 { return i.SentBytes },
		"received_packets":           func(i *Interface) uint64 { return i.ReceivedPackets },
		"received_unicast_packets":   func(i *Interface) uint64 { return i.ReceivedPackets - i.ReceivedMulticast },
		"received_multicast_packets": func(i *Interface) uint64 { return i.ReceivedMulticast },
		"received_discarded_packets": func(i *Interface) uint64 { return i.SystemRefused },
		"received_error_packets":     func(i *Interface) uint64 { return i.ReceivedInvalid + i.ChecksumErrors },
		"received_unknown_packets":   func(i *Interface) uint64 { return i.UnknownProtocol },
		"sent_packets":               func(i *Interface) uint64 { return i.SentPackets },
		"sent_unicast_packets":       func(i *Interface) uint64 { return i.SentPackets - i.SentMulticast },
		"sent_multicast_packets":     func(i *Interface) uint64 { return i.SentMulticast },
		"outbound_discarded_packets": func(i *Interface) uint64 {
			return i.DroppedDown + i.DroppedNoRoute + i.DroppedFull + i.SendQueueFull
		},
		"outbound_error_packets": func(i *Interface) uint64 { return i.DroppedInvalid + i.DroppedLong },
		"bandwidth":              func(i *Interface) uint64 { return i.Speed },
		"output_queue_packets":   func(i *Interface) uint64 { return i.Queued },
		"coalesced_packets":      func(i *Interface) uint64 { return i.Coalesced },
		"rsc_exceptions":         func(i *Interface) uint64 { return i.JoinAborts },
		"rsc_packet_bytes":       func(i *Interface) uint64 { return average(i.JoinedBytes, i.Joined) },
		"active_rsc_connections": func(i *Interface) uint64 { return i.Joining },
	},
	"ipoib": {
		"dropped_disconnected_packets": func(i *Interface) uint64 { return i.DroppedDown },
		"dropped_long_packets":         func(i *Interface) uint64 { return i.DroppedLong },
		"dropped_invalid_packets":      func(i *Interface) uint64 { return i.DroppedInvalid },
		"dropped_unresolved_packets":   func(i *Interface) uint64 { return i.DroppedNoRoute },
		"dropped_waiting_packets":      func(i *Interface) uint64 { return i.DroppedFull },
		"dropped_full_packets":         func(i *Interface) uint64 { return i.SendQueueFull },
		"dropped_system_packets":       func(i *Interface) uint64 { return i.SystemRefused },
		"received_invalid_packets":     func(i *Interface) uint64 { return i.ReceivedInvalid },
		"received_checksum_errors":     func(i *Interface) uint64 { return i.ChecksumErrors },
		"sa_requests":                  func(i *Interface) uint64 { return i.Requests },
		"sa_repeated_requests":         func(i *Interface) uint64 { return i.Repeated },
		"sa_unanswered_requests":       func(i *Interface) uint64 { return i.Unanswered },
		"refused_groups":               func(i *Interface) uint64 { return i.GroupsRefused },
		"queue_pair_recoveries":        func(i *Interface) uint64 { return i.Recoveries },
		"large_sends":                  func(i *Interface) uint64 { return i.LargeSends },
		"large_send_segments":          func(i *Interface) uint64 { return i.Segments },
		"made_checksums":               func(i *Interface) uint64 { return i.ChecksumsMade },
		"joined_packets":               func(i *Interface) uint64 { return i.Joined },
		"local_endpoints":              func(i *Interface) uint64 { return uint64(i.Local) },
		"multicast_endpoints":          func(i *Interface) uint64 { return uint64(i.Multicast) },
		"remote_endpoints":             func(i *Interface) uint64 { return uint64(i.Remote) },
	},
}

// words says where the counters of a set are read; nil: the interface does not have the set.
func (i *Interface) words(set string) map[string]func(*Interface) uint64 {
	if i.Ethernet != nil {
		return ethernetWords[set]
	}
	return interfaceWords[set]
}

// Values returns the counters of the interface's sets by their short names, since it was created.
func (i *Interface) Values() map[string]uint64 {
	out := map[string]uint64{}
	sets := interfaceWords
	if i.Ethernet != nil {
		sets = ethernetWords
	}
	for _, of := range sets {
		for short, at := range of {
			out[short] = at(i)
		}
	}
	return out
}
