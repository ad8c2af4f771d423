package collector

// Function is a virtual function of an adapter with its words, by the short names of the counters. They begin anew when the function does.
type Function struct {
	Name   string
	Values map[string]uint64
}

// namedWords are the words that instances have that count by themselves, by the short name of the set.
var namedWords = map[string][]string{
	"function": {"sent_bytes", "sent_frames", "received_bytes", "received_frames", "inside_sent_bytes", "inside_received_bytes",
		"local_sent_bytes", "local_received_bytes", "spoofed_frames", "spoofed_mac", "spoofed_ethertype",
		"spoofed_gid", "wrong_vlan", "redirected_dhcp", "blocked_sent", "blocked_received", "queue_packets", "queue_bytes", "queue_dropped", "queue_number",
		"up", "programs", "queue_pairs"},
	"vf_monitoring": {"firmware_cpu_seconds", "firmware_errors"},
	"overlay": {"functions", "records", "routes", "addresses", "sent", "sent_bytes", "arrived", "arrived_bytes", "local", "routed", "answered",
		"dropped_malformed", "dropped_no_record", "dropped_no_route", "dropped_hop_limit", "dropped_no_provider", "dropped_unresolved",
		"dropped_too_large", "dropped_congested", "dropped_tagged", "dropped_fragment", "dropped_bad_checksum", "dropped_no_subnet",
		"dropped_no_host", "dropped_nobody", "dropped_foreign"},
	"team": {"up", "speed", "members", "active_members", "fail_overs", "fail_backs", "announced", "peers_told", "lost", "stood_by", "returned",
		"strange"},
	"team_member": {"up", "active", "disabled", "speed", "sent_bytes", "sent_frames", "received_bytes", "received_frames", "lacp_partner",
		"lacp_collecting", "lacp_distributing", "lacp_received", "lacp_sent", "lacp_errors", "lacp_timeouts", "lacp_markers"},
	"vlan": {"sent_bytes", "sent_frames", "received_bytes", "received_frames", "local_sent_bytes", "local_received_bytes", "id", "priority",
		"up", "queue_pairs"},
	"vmq": {"default_packets", "default_bytes", "default_dropped", "sharing_ports", "queues", "used_queues", "mac_filters",
		"used_mac_filters", "vlan_filters", "used_vlan_filters"},
}

// named returns what counts by itself at an adapter: its virtual functions, VLAN interfaces, teams or their members, its queues,
// or the overlay of its port.
func (a *Adapter) named(kind string) (all []instance) {
	switch kind {
	case "function":
		for _, f := range a.Functions {
			all = append(all, instance{name: f.Name, labels: map[string]string{"adapter": a.Name, "function": f.Name}, values: f.Values})
		}
	case "vlan":
		for _, v := range a.VLANs {
			all = append(all, instance{name: v.Name, labels: map[string]string{"adapter": a.Name, "vlan": v.Name}, values: v.Values})
		}
	case "queues":
		if a.Queues != nil {
			all = append(all, instance{name: a.Name, labels: map[string]string{"adapter": a.Name}, values: a.Queues})
		}
	case "team":
		for _, t := range a.Teams {
			all = append(all, instance{name: t.Name, labels: map[string]string{"adapter": a.Name, "team": t.Name}, values: t.Values})
		}
	case "overlay":
		if a.Overlay != nil {
			all = append(all, instance{name: a.Name, labels: map[string]string{"adapter": a.Name}, values: a.Overlay})
		}
	case "member":
		for _, t := range a.Teams {
			for _, m := range t.Members {
				all = append(all, instance{name: t.Name + ", " + m.Name, values: m.Values,
					labels: map[string]string{"adapter": a.Name, "team": t.Name, "member": m.Name}})
			}
		}
	}
	return all
}

// readNamed reads the totals of an instance since it began, or since its set was reset.
func readNamed(in *instance, b *base) readTotal {
	var from map[string]uint64
	if b != nil {
		from = b.named[in.name]
	}
	return func(short string) (now, before uint64) {
		now = in.values[short]
		if before = from[short]; before > now {
			before = 0 // another one of that name
		}
		return now, before
	}
}
