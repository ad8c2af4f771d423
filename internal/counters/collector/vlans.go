package collector

// VLAN is a VLAN interface at the port of an adapter, with its words by the short names of the counters. They begin anew when it does.
type VLAN struct {
	Name   string // as programs see it, which no other there has
	Values map[string]uint64
}
