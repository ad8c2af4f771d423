package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

// TestRequestPanics: a request that panics is refused, counted, told by an event and kept with its traceback, one in ten seconds; the
// driver goes on.
func TestRequestPanics(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.FaultInjection, cfg.SkipSelfCheck = true, true
	d := start(t, cfg)
	defer stop(t, d)
	client := api.NewClient(cfg.Socket)
	for range 2 {
		err := client.InjectFault(t.Context(), api.FaultRequest{Adapter: cfg.Adapters[0].Name, Fault: faultRequest})
		if err == nil || !strings.Contains(err.Error(), "ended in a panic") {
			t.Errorf("the request is answered with %v", err)
		}
	}
	s, err := client.Status(t.Context())
	if err != nil || s.Panics != 2 {
		t.Errorf("%d panics are counted, want 2; %v", s.Panics, err)
	}
	var text strings.Builder
	s.WriteText(&text)
	if !strings.Contains(text.String(), "\npanics of requests to the management interface: 2,") {
		t.Errorf("the status is\n%s", &text)
	}
	folders, err := filepath.Glob(filepath.Join(d.temp(), "*", "dmn-driver-GENERAL-PANIC-request--*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("the folders are %v, %v", folders, err)
	}
	for name, part := range map[string]string{"traceback_0.log": "driver.(*Driver).InjectFault(", "fwtrace_0.log": "", "commands_0.log": ""} {
		b, err := os.ReadFile(filepath.Join(folders[0], name))
		if err != nil || !strings.Contains(string(b), part) {
			t.Errorf("%s does not have %s: %v\n%s", name, part, err, b)
		}
	}
	wantEvent(t, d, "RequestPanicked", "POST /adapters/", "a fault that was asked for", folders[0])
	values := map[string]float64{}
	for _, v := range d.driverValues() {
		values[v.Name] = v.Value
	}
	if values["softvpi_driver_request_panics_total"] != 2 {
		t.Errorf("the metrics are %v", values)
	}
	if err := d.RestartAdapter(cfg.Adapters[0].Name); err != nil {
		t.Error("after the panics: ", err)
	}
}

// TestPanics_Kept: of panics that follow each other one in panicEvery is kept; all are counted.
func TestPanics_Kept(t *testing.T) {
	var p panics
	at := time.Unix(1, 0)
	for i, want := range []bool{true, false, false, true} {
		if got := p.add(at.Add(time.Duration(i) * (panicEvery/3 + 1))); got != want {
			t.Errorf("panic %d is kept: %v, want %v", i, got, want)
		}
	}
	if p.count() != 4 {
		t.Errorf("%d are counted, want 4", p.count())
	}
}
