package collector

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// TestMetricsArePrometheus: the metrics of adapters of both generations are accepted by Prometheus' own parser and
// linter: base units, _total for counters that only grow, help and type for each.
func TestMetricsArePrometheus(t *testing.T) {
	b := newBench(t, "Ethernet 1", `a "b\c`)
	b.adapters[1].Generation = catalogue.MLX4
	b.adapters[1].Link.ReceivedBytes = 1000
	w := httptest.NewRecorder()
	b.c.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("the linter finds %+v, %v; want no problems", problems, err)
	}
	if line := `softvpi_datapath_ring_bytes_total{adapter="a \"b\\c"} 1000`; !strings.Contains(text, "\n"+line+"\n") {
		t.Errorf("no line %s: 8000 bits of the ring are 1000 bytes", line)
	}
}

// TestIdentities: what adapters are is a metric of 1 with labels, for joins with others, which Prometheus accepts.
func TestIdentities(t *testing.T) {
	c := New(Config{Read: func() []Adapter { return nil }, Identities: func() []Identity {
		return []Identity{{Adapter: "Ethernet 1", Generation: "mlx5", Driver: "v3", Firmware: "1.0.1000", Board: "ACME_7"}}
	}})
	w := httptest.NewRecorder()
	c.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	problems, err := promlint.New(strings.NewReader(w.Body.String())).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("the linter finds %+v, %v; want no problems", problems, err)
	}
	want := `softvpi_adapter_info{adapter="Ethernet 1",board_id="ACME_7",driver_version="v3",firmware_version="1.0.1000",generation="mlx5"} 1`
	if !strings.Contains(w.Body.String(), "\n"+want+"\n") {
		t.Errorf("no line %s in\n%s", want, w.Body.String())
	}
}

// TestOpenMetrics: a reader that asks for OpenMetrics gets it, with its end marked.
func TestOpenMetrics(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	q, w := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
	q.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	b.c.Metrics().ServeHTTP(w, q)
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "application/openmetrics-text") ||
		!strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Errorf("content type %s, body %.100s; want OpenMetrics text that ends with EOF", got, w.Body.String())
	}
}
