package collector

import (
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
)

// ethernetWords says where the counters of an Ethernet function's interface are read.
var ethernetWords = map[string]map[string]func(*Interface) uint64{
	"network_interface": {
		"received_bytes":           function(func(e *device.EthernetStatus) uint64 { return e.Counters.Received.Bytes }),
		"sent_bytes":               function(func(e *device.EthernetStatus) uint64 { return e.Counters.Sent.Bytes }),
		"received_packets":         function(func(e *device.EthernetStatus) uint64 { return e.Counters.Received.Frames }),
		"received_unicast_packets": function(func(e *device.EthernetStatus) uint64 { return e.Counters.Received.Directed }),
		"received_multicast_packets": function(func(e *device.EthernetStatus) uint64 {
			return e.Counters.Received.Multicast + e.Counters.Received.Broadcast
		}),
		"received_discarded_packets": function(func(e *device.EthernetStatus) uint64 { return e.Counters.NoBuffer + e.Side.Lost }),
		"received_error_packets": function(func(e *device.EthernetStatus) uint64 {
			return e.Counters.Malformed + e.Counters.BadFCS + e.Counters.Received.ChecksumBad
		}),
		"received_unknown_packets":   function(func(*device.EthernetStatus) uint64 { return 0 }), // the host knows its protocols
		"sent_packets":               function(func(e *device.EthernetStatus) uint64 { return e.Counters.Sent.Frames }),
		"sent_unicast_packets":       function(func(e *device.EthernetStatus) uint64 { return e.Counters.Sent.Directed }),
		"sent_multicast_packets":     function(func(e *device.EthernetStatus) uint64 { return e.Counters.Sent.Multicast + e.Counters.Sent.Broadcast }),
		"outbound_discarded_packets": function(func(e *device.EthernetStatus) uint64 { return e.Counters.RingFull }),
		"outbound_error_packets":     function(refusedSends),
		"bandwidth":                  func(i *Interface) uint64 { return i.Speed },
		"output_queue_packets":       function(func(e *device.EthernetStatus) uint64 { return uint64(e.Sending) }),
		"coalesced_packets":          function(func(e *device.EthernetStatus) uint64 { return e.Counters.RSC.Packets }),
		"rsc_exceptions":             function(func(e *device.EthernetStatus) uint64 { return e.Counters.RSC.Aborts }),
		"rsc_packet_bytes": function(func(e *device.EthernetStatus) uint64 {
			return average(e.Counters.RSC.Octets, e.Counters.RSC.Events)
		}),
		"active_rsc_connections": function(func(e *device.EthernetStatus) uint64 { return uint64(e.Joining) }),
	},
	"ethernet": {
		"dropped_address_frames":   filtered(filter.OtherMAC),
		"dropped_vlan_frames":      filtered(filter.OtherVLAN),
		"dropped_long_frames":      filtered(filter.TooLong),
		"dropped_own_frames":       filtered(filter.Own),
		"dropped_malformed_frames": function(func(e *device.EthernetStatus) uint64 { return e.Counters.Malformed }),
		"control_frames":           function(func(e *device.EthernetStatus) uint64 { return e.Counters.Control }),
		"dropped_buffer_frames":    function(func(e *device.EthernetStatus) uint64 { return e.Counters.NoBuffer }),
		"dropped_host_frames":      function(func(e *device.EthernetStatus) uint64 { return e.Side.Lost }),
		"dropped_asleep_frames":    function(func(e *device.EthernetStatus) uint64 { return e.Counters.Asleep }),
		"wakes":                    function(func(e *device.EthernetStatus) uint64 { return e.Counters.Woken }),
		"received_large_frames":    function(func(e *device.EthernetStatus) uint64 { return e.Counters.Received.Large }),
		"received_good_checksums":  function(func(e *device.EthernetStatus) uint64 { return e.Counters.Received.ChecksumGood }),
		"received_checksum_errors": function(func(e *device.EthernetStatus) uint64 { return e.Counters.Received.ChecksumBad }),
		"coalesced_segments":       function(func(e *device.EthernetStatus) uint64 { return e.Counters.RSC.Packets }),
		"coalescing_events":        function(func(e *device.EthernetStatus) uint64 { return e.Counters.RSC.Events }),
		"coalescing_aborts":        function(func(e *device.EthernetStatus) uint64 { return e.Counters.RSC.Aborts }),
		"sent_large_frames":        function(func(e *device.EthernetStatus) uint64 { return e.Counters.Sent.Large }),
		"sent_segments":            function(func(e *device.EthernetStatus) uint64 { return e.Counters.Sent.Segments }),
		"sent_checksums_made":      function(func(e *device.EthernetStatus) uint64 { return e.Counters.Sent.ChecksumMade }),
		"refused_sends":            function(func(e *device.EthernetStatus) uint64 { return e.Counters.Refused }),
		"bad_header_frames":        function(func(e *device.EthernetStatus) uint64 { return e.Side.BadHeaders }),
		"finished_frames":          function(func(e *device.EthernetStatus) uint64 { return e.Side.Finished }),
		"host_blocked":             function(func(e *device.EthernetStatus) uint64 { return e.Side.Blocked }),
		"threaded_frames":          function(func(e *device.EthernetStatus) uint64 { return e.Side.Threaded }),
		"reading_paused":           function(func(e *device.EthernetStatus) uint64 { return e.Side.Paused }),
	},
}

// function reads a value of an Ethernet function.
func function(at func(*device.EthernetStatus) uint64) func(*Interface) uint64 {
	return func(i *Interface) uint64 { return at(i.Ethernet) }
}

// average returns the average of so many; 0 of none.
func average(sum, n uint64) uint64 { return sum / max(n, 1) }

// filtered reads how many frames the filter dropped for a reason.
func filtered(v filter.Verdict) func(*Interface) uint64 {
	return function(func(e *device.EthernetStatus) uint64 { return e.Counters.Filtered[v] })
}
