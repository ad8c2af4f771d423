package collector

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/softvpi/softvpi/internal/catalogue"
)

func TestMetrics(t *testing.T) {
	b := newBench(t, "Ethernet 1", "Ethernet 2")
	b.adapters[0].Link.SentPackets, b.adapters[0].Link.ReceiveBuffer = 12, 1<<20
	b.adapters[0].RDMA.SentFrames = 12
	b.adapters[0].CM.Active = 3
	w := httptest.NewRecorder()
	b.c.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, line := range []string{
		`# TYPE softvpi_adapter_traffic_sent_packets_total counter`,
		`softvpi_adapter_traffic_sent_packets_total{adapter="Ethernet 1"} 12`,
		`softvpi_adapter_traffic_sent_packets_total{adapter="Ethernet 2"} 0`,
		`softvpi_adapter_traffic_sent_bytes_total{adapter="Ethernet 1"} 504`,
		`softvpi_rdma_activity_outbound_frames_total{adapter="Ethernet 1"} 12`,
		`# TYPE softvpi_rdma_activity_active_connections gauge`,
		`softvpi_rdma_activity_active_connections{adapter="Ethernet 1"} 3`,
		`softvpi_link_receive_buffer_bytes{adapter="Ethernet 1",port="1"} 1.048576e+06`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	for _, absent := range []string{"symbol_error_packets", "per_second"} {
		if strings.Contains(text, absent) {
			t.Errorf("what nothing counts, or a rate, is shown: %s", absent)
		}
	}
}

// TestMetricNames: the metric names are as Prometheus wants them, also those of counters that are not counted yet.
func TestMetricNames(t *testing.T) {
	problems, err := testutil.CollectAndLint(newMetrics(newBench(t, "Ethernet 1").c))
	if err != nil || len(problems) > 0 {
		t.Errorf("the linter finds %+v, %v; want no problems", problems, err)
	}
	seen := map[string]bool{}
	for i := range catalogue.CounterSets() {
		set := &catalogue.CounterSets()[i]
		for j := range set.Counters {
			k := &set.Counters[j]
			if (k.Unit == "us") != strings.HasSuffix(k.Short, "_seconds") {
				t.Errorf("%s %s: times are in seconds there", set.Short, k.Short)
			}
			if d := newMetric(set, k).desc.String(); seen[d] {
				t.Errorf("%s twice", d)
			} else {
				seen[d] = true
			}
		}
	}
}
