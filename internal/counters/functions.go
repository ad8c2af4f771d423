package counters

import "slices"

// Function is a virtual function of an adapter with its words, by the short names of the counters. They begin anew when the function does.
type Function struct {
	Name   string
	Values map[string]uint64
}

// functionWords are the words that virtual functions have, by the short name of the set.
var functionWords = map[string][]string{
	"function": {"sent_bytes", "sent_frames", "received_bytes", "received_frames", "inside_sent_bytes", "inside_received_bytes",
		"local_sent_bytes", "local_received_bytes", "spoofed_frames", "spoofed_mac", "spoofed_ethertype",
		"spoofed_gid", "wrong_vlan", "redirected_dhcp",
		"up", "programs", "queue_pairs"},
	"vf_monitoring": {"firmware_cpu_seconds", "firmware_errors"},
}

// readFunction reads a virtual function's totals since it was created, or since its set was reset.
func readFunction(f *Function, b *base) readTotal {
	var from Function
	if b != nil {
		if n := slices.IndexFunc(b.functions, func(o Function) bool { return o.Name == f.Name }); n >= 0 {
			from = b.functions[n]
		}
	}
	return func(short string) (now, before uint64) {
		now = f.Values[short]
		if before = from.Values[short]; before > now {
			before = 0 // another function of that name
		}
		return now, before
	}
}
