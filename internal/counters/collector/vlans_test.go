package collector

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/counters"
)

// TestVLANsAndQueues: VLAN interfaces have the labels adapter and vlan, and an adapter's receive queues for virtual ports that of the
// adapter; a reset subtracts what was counted before, and leaves levels. An adapter without such queues has no instance.
func TestVLANsAndQueues(t *testing.T) {
	b := newBench(t, "a", "b")
	b.adapters[0].VLANs = []VLAN{{Name: "a.V", Values: map[string]uint64{"sent_bytes": 70, "id": 10, "priority": 3}}}
	b.adapters[0].Queues = map[string]uint64{"default_packets": 9, "used_queues": 2}
	metrics := func() string {
		w := httptest.NewRecorder()
		b.c.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	check := func(lines ...string) {
		t.Helper()
		text := metrics()
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("no line %s", line)
			}
		}
	}
	check(`softvpi_vlan_sent_bytes_total{adapter="a",vlan="a.V"} 70`, `softvpi_vlan_id{adapter="a",vlan="a.V"} 10`,
		`softvpi_vlan_up{adapter="a",vlan="a.V"} 0`, `softvpi_vmq_default_packets_total{adapter="a"} 9`,
		`softvpi_vmq_used_queues{adapter="a"} 2`)
	if strings.Contains(metrics(), `softvpi_vmq_used_queues{adapter="b"}`) {
		t.Error("an adapter without queues counts them")
	}
	for _, set := range []string{"vlan", "vmq"} {
		if err := b.c.Reset(counters.ResetRequest{Set: set}); err != nil {
			t.Fatal(err)
		}
	}
	check(`softvpi_vlan_sent_bytes_total{adapter="a",vlan="a.V"} 0`, `softvpi_vlan_priority{adapter="a",vlan="a.V"} 3`,
		`softvpi_vmq_default_packets_total{adapter="a"} 0`, `softvpi_vmq_used_queues{adapter="a"} 2`)
}
