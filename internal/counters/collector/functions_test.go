package collector

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/counters"
)

// TestFunctions: virtual functions are instances of their sets, in snapshots and as metrics with the labels adapter and function. A
// reset subtracts what was counted before, but nothing from another function that has the name since.
func TestFunctions(t *testing.T) {
	b := newBench(t, "Ethernet 1", "Ethernet 2")
	set := func(bytes uint64) {
		b.adapters[0].Functions = []Function{{Name: "red", Values: map[string]uint64{"sent_bytes": bytes, "up": 1, "firmware_errors": 3}}}
	}
	value := func() uint64 {
		t.Helper()
		s, err := b.c.Snapshot(`\SoftVPI Virtual Function(red)\Bytes Sent`)
		if err != nil || len(s.Instances) != 1 || s.Instances[0].Labels["function"] != "red" || len(s.Instances[0].Values) != 1 {
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
	for _, line := range []string{`softvpi_function_sent_bytes_total{adapter="Ethernet 1",function="red"} 100`,
		`softvpi_function_up{adapter="Ethernet 1",function="red"} 1`,
		`softvpi_vf_monitoring_firmware_errors_total{adapter="Ethernet 1",function="red"} 3`} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if err := b.c.Reset(counters.ResetRequest{Set: "function", Adapter: "Ethernet 1"}); err != nil {
		t.Fatal(err)
	}
	set(130)
	if got := value(); got != 30 {
		t.Errorf("%d bytes since the reset, want 30", got)
	}
	set(7)
	if got := value(); got != 7 {
		t.Errorf("%d bytes of another function, want 7", got)
	}
}
