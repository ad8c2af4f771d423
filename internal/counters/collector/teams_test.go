package collector

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/counters"
)

// TestTeams: teams and their members are instances of their sets, in snapshots and as metrics with the labels adapter, team and member;
// role, status and LACP are labels of a metric that is always 1. A reset subtracts what was counted before.
func TestTeams(t *testing.T) {
	b := newBench(t, "Ethernet 1", "Ethernet 2")
	set := func(bytes uint64) {
		b.adapters[0].Teams = []Team{{Name: "T", Values: map[string]uint64{"fail_overs": 2}, Members: []TeamMember{
			{Name: "x", Role: "Active", Status: "Connected", LACP: "distributing", Values: map[string]uint64{"sent_bytes": bytes, "active": 1}},
			{Name: "y", Role: "Backup", Status: "Disconnected", LACP: "down", Values: map[string]uint64{"lacp_timeouts": 5}},
		}}}
	}
	value := func() uint64 {
		t.Helper()
		s, err := b.c.Snapshot(`\SoftVPI Team Member(T, x)\Bytes Sent`)
		if err != nil || len(s.Instances) != 1 || s.Instances[0].Labels["team"] != "T" || s.Instances[0].Labels["member"] != "x" {
			t.Fatalf("%+v, %v", s, err)
		}
		return *s.Instances[0].Values[0].Raw
	}
	set(100)
	if got := value(); got != 100 {
		t.Errorf("%d bytes", got)
	}
	w := httptest.NewRecorder()
	b.c.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{`softvpi_team_fail_overs_total{adapter="Ethernet 1",team="T"} 2`,
		`softvpi_team_member_sent_bytes_total{adapter="Ethernet 1",member="x",team="T"} 100`,
		`softvpi_team_member_active{adapter="Ethernet 1",member="x",team="T"} 1`,
		`softvpi_team_member_active{adapter="Ethernet 1",member="y",team="T"} 0`,
		`softvpi_team_member_lacp_timeouts_total{adapter="Ethernet 1",member="y",team="T"} 5`,
		`softvpi_team_member_info{adapter="Ethernet 1",lacp="down",member="y",role="Backup",status="Disconnected",team="T"} 1`} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if err := b.c.Reset(counters.ResetRequest{Set: "team_member", Adapter: "Ethernet 1"}); err != nil {
		t.Fatal(err)
	}
	set(130)
	if got := value(); got != 30 {
		t.Errorf("%d bytes since the reset, want 30", got)
	}
}
