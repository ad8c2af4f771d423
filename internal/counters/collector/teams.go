package collector

import "github.com/prometheus/client_golang/prometheus"

// Team is a team that an adapter stands on, with its words by the short names of the counters. They begin anew when its wires are opened.
type Team struct {
	Name    string // which no other team has
	Values  map[string]uint64
	Members []TeamMember
}

// TeamMember is a member of a team.
type TeamMember struct {
	Name               string // which no other member of the team has
	Role, Status, LACP string // as people read them
	Values             map[string]uint64
}

var memberDesc = prometheus.NewDesc("softvpi_team_member_info", "What a member of a team is at the moment: its role, its status, and how "+
	"far its link is with LACP (none with other types). Always 1.", []string{"adapter", "team", "member", "role", "status", "lacp"}, nil)

// members serves what members of teams are.
type members func() []Adapter

// Describe implements prometheus.Collector.
func (f members) Describe(out chan<- *prometheus.Desc) { out <- memberDesc }

// Collect implements prometheus.Collector.
func (f members) Collect(out chan<- prometheus.Metric) {
	for _, a := range f() {
		for _, t := range a.Teams {
			for _, m := range t.Members {
				out <- prometheus.MustNewConstMetric(memberDesc, prometheus.GaugeValue, 1, a.Name, t.Name, m.Name, m.Role, m.Status, m.LACP)
			}
		}
	}
}

// Flag is the value of what either is or is not: 1 or 0.
func Flag(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
