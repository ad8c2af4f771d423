package counters

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	for i := range catalogue.CounterSets {
		set := &catalogue.CounterSets[i]
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

var sample = []Reading{
	{"RDMA Activity", "Ethernet 1", "RDMA Active Connections", "connections", Number{Known: true, Whole: true, Integer: 1 << 63}},
	{"RDMA Activity", "Ethernet 1", "RDMA Inbound Bytes/sec", "bytes/s", Number{Known: true, Real: 12.5}},
	{"Mellanox Adapter QoS Counters", `"A", Priority 0`, "Bytes Sent", "bytes", Number{}},
}

func TestForms(t *testing.T) {
	at := time.Date(2026, 11, 20, 16, 51, 47, 123e6, time.UTC)
	for form, want := range map[Form]string{
		CSV: `"(PDH-CSV 4.0)","\\host\RDMA Activity(Ethernet 1)\RDMA Active Connections","\\host\RDMA Activity(Ethernet 1)\RDMA Inbound Bytes/sec","\\host\Mellanox Adapter QoS Counters(""A"", Priority 0)\Bytes Sent"
"11/20/2026 16:51:47.123","9223372036854775808.000000","12.500000"," "
"11/20/2026 16:51:48.123","9223372036854775808.000000","12.500000"," "
`,
		TSV: `"(PDH-TSV 4.0)"	"\\host\RDMA Activity(Ethernet 1)\RDMA Active Connections"	"\\host\RDMA Activity(Ethernet 1)\RDMA Inbound Bytes/sec"	"\\host\Mellanox Adapter QoS Counters(""A"", Priority 0)\Bytes Sent"
"11/20/2026 16:51:47.123"	"9223372036854775808.000000"	"12.500000"	" "
"11/20/2026 16:51:48.123"	"9223372036854775808.000000"	"12.500000"	" "
`,
	} {
		var b bytes.Buffer
		w := NewWriter(&b, form, "host")
		for i := range 2 {
			if err := w.Write(at.Add(time.Duration(i)*time.Second), sample); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, b.String()); d != "" {
			t.Errorf("%s: (-want +got)\n%s", form, d)
		}
	}
}

// TestJSON: JSON keeps every digit, and has null for counters that are not counted.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := NewWriter(&b, JSON, "host").Write(time.Now(), sample); err != nil {
		t.Fatal(err)
	}
	var l line
	if err := json.Unmarshal(b.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample, l.Readings); d != "" || !strings.Contains(b.String(), `"value":null`) {
		t.Errorf("%s%s", b.String(), d)
	}
}

// TestColumnsStay: a column keeps its place when an instance disappears or a new one appears.
func TestColumnsStay(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, CSV, "h")
	_ = w.Write(time.Time{}, sample[:2])
	_ = w.Write(time.Time{}, sample[1:])
	last := strings.Split(b.String(), "\n")[2]
	if !strings.HasSuffix(last, `," ","12.500000"`) {
		t.Error("the last row is ", last)
	}
}
