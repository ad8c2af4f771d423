package catalogue

import "strings"

func adapterRSS() CounterSet {
	return CounterSet{
		Name: "Mellanox Adapter Rss Counters", Aliases: []string{"Mellanox Adapter RSS Counters", "Propriety Mellanox Adapter RSS Counters"},
		Generations: MLX4, Short: "adapter_rss", Instances: "cpu",
		Description: "Which received Ethernet packets had an RSS hash, by processor and, with a NIC switch, by vPort; the instance \"Total\" covers all processors. Adapters with an Ethernet function have it while RssMonitoringEnabled is 1; it counts from the adapter's start or from when the set is first read by its name (RssCountersActivatedAtStartup). There are no vPorts yet. What has a hash is told apart by what was hashed, which in a tunnel (VXLAN on UDP port 4789, NVGRE) are the outer headers, and what has none by its headers, in a tunnel those inside.",
		Sources:     []Source{{winof, "4.9.4.4.2 Propriety Mellanox Adapter RSS Counters"}},
		Counters:    counted(rssCounters()...),
	}
}

// rssCounters returns the counters of the set, which differ in three respects: whether the packet was in a
// tunnel, whether it had a hash, and over which headers.
func rssCounters() []Counter {
	kinds := []struct{ name, short, what string }{
		{"IPv4 Only", "ipv4", "IPv4 without TCP or UDP"}, {"IPv4/Tcp", "ipv4_tcp", "TCP over IPv4"},
		{"IPv4/Udp", "ipv4_udp", "UDP over IPv4"},
		{"IPv6 Only", "ipv6", "IPv6 without TCP or UDP"}, {"IPv6/Tcp", "ipv6_tcp", "TCP over IPv6"},
		{"IPv6/Udp", "ipv6_udp", "UDP over IPv6"},
		{"Misc", "misc", "any other kind"},
	}
	var all []Counter
	for _, tunnel := range []string{"Encapsulated ", ""} {
		for _, hash := range []string{"NonRss", "Rss"} {
			for _, k := range kinds {
				what := "received packets of " + k.what
				if tunnel != "" {
					what = "received packets in a tunnel that hold " + k.what
				}
				if hash == "Rss" {
					what += ", with an RSS hash"
				} else {
					what += ", without an RSS hash"
				}
				short := strings.ToLower(strings.ReplaceAll(tunnel, " ", "_") + hash + "_" + k.short + "_packets")
				all = append(all, total(tunnel+hash+" "+k.name, short, "packets", what))
			}
		}
	}
	return all
}
