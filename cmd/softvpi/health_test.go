package main

import (
	"encoding/json"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestHealth: the status of softvpi health is that of the driver, for probes; without a driver it is a failure that says so.
func TestHealth(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	if status, out, errs := p.run(t, "health"); status != 1 || out != "" || errs == "" {
		t.Errorf("without a driver: status %d, %q, %q", status, out, errs)
	}
	p.up(t)
	if status, out, errs := p.run(t, "health"); status != 0 || out != "live and ready\n" {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	q := newPlace(t)
	// Nobody has the other end of this wire.
	q.spawn(t, "up", "--adapter", "alone=10.9.0.1/24,datagram="+q.dir+"/wire").until(t, "listening")
	status, out, errs := q.run(t, "health", "--json")
	var h api.Health
	if err := json.Unmarshal([]byte(out), &h); err != nil || status != 1 || !h.Live || h.Ready || len(h.Reasons) != 1 ||
		h.Reasons[0].Adapter != "alone" {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	if status, _, errs := q.run(t, "health", "--live"); status != 0 {
		t.Errorf("--live: status %d, %q", status, errs)
	}
}
