package driver

import (
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestFunctionCounters: what the program of a virtual function sends and receives moves that function's counters, and not those of one
// that nobody uses.
func TestFunctionCounters(t *testing.T) {
	d, red, _ := resettable(t)
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "idle"}); err != nil {
		t.Fatal(err)
	}
	read := func(function, counter string) uint64 {
		t.Helper()
		s, err := d.counters.Snapshot(`\SoftVPI Virtual Function(` + function + `)\` + counter)
		if err != nil || len(s.Instances) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		return *s.Instances[0].Values[0].Raw
	}
	for _, counter := range []string{"Bytes Sent", "Frames Sent", "Bytes Received", "Frames Received"} {
		before := read("red", counter)
		red.proceeds(t, 1)
		await.Eventually(t, counter+" of red", func() bool { return read("red", counter) > before })
	}
	if up, qps, programs := read("red", "Link Up"), read("red", "Queue Pairs"), read("red", "Programs"); up != 1 || qps == 0 || programs == 0 {
		t.Errorf("up %d, queue pairs %d, programs %d", up, qps, programs)
	}
	if qps, programs := read("idle", "Queue Pairs"), read("idle", "Programs"); qps != 0 || programs != 0 {
		t.Errorf("the idle function has %d queue pairs and %d programs", qps, programs)
	}
	if idle, busy := read("idle", "Bytes Sent"), read("red", "Bytes Sent"); idle >= busy {
		t.Errorf("the idle function has sent %d bytes, the other %d", idle, busy)
	}
}
