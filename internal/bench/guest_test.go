package bench

import (
	"maps"
	"reflect"
	"strings"
	"testing"
)

func TestSpeedOfGuestIsRead(t *testing.T) {
	g := guestOutput{samples: samples{}}
	for line := range strings.Lines(`random: crng init done
{"name": "syscall"}
{"syscall_us": 7.0}
{"name": "veth 1024 write"}
{"gbps": 8.5, "messages": 80, "all": 104}
{"name": "veth send-lat"}
{"typical_us": 9.5, "p99_us": 85.4, "n": 8198}
{"status": 0}
reboot: System halted
`) {
		g.line(line)
	}
	want := samples{"syscall": {7}, "veth 1024 write": {8.5}, "net send-lat": {2.5}}
	if err := g.end(); err != nil || !maps.EqualFunc(g.samples, want, func(a, b []float64) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("%v, samples %v; want %v", err, g.samples, want)
	}
	g.line(`{"error": "rxe0: No such device"}`)
	if err := g.end(); err == nil || !strings.Contains(err.Error(), "veth send-lat: rxe0: No such device") {
		t.Error("want the failure of veth send-lat, got ", err)
	}
	silent := guestOutput{samples: samples{}}
	silent.line("Kernel panic")
	if err := silent.end(); err == nil || !strings.Contains(err.Error(), "Kernel panic") {
		t.Error("want the last lines of the guest, got ", err)
	}
}

func TestLossOfGuestIsRead(t *testing.T) {
	g := guestOutput{samples: samples{}, seconds: 0.8}
	for line := range strings.Lines(`{"name": "rxe 1 4"}
{"gbps": 0.5, "messages": 80, "all": 100}
{"sent": 6720, "retries": 12, "naks": 7}
{"name": "rxe 5 1"}
{"gbps": 0.0000, "messages": 0, "all": 0}
{"sent": 20, "retries": 2, "naks": 2}
{"name": "ours 1 4"}
{  "gbps": 1.5,  "all": 1000, "seconds": 2, "counters": {    "Retransmitted packets": 640, "Requester time out received": 3  }}
{"status": 0}
`) {
		if !g.line(line) {
			t.Errorf("%q is not taken as a result", line)
		}
	}
	if g.line("[    5.0] kernel: something") {
		t.Error("a message of the guest's kernel is taken as a result")
	}
	want := samples{
		"rxe 5 1": {0}, "rxe 5 1 time-outs": {0},
		"rxe 1 4": {0.5}, "rxe 1 4 again": {5}, "rxe 1 4 time-outs": {5},
		"ours 1 4": {1.5}, "ours 1 4 again": {1}, "ours 1 4 time-outs": {1.5},
	}
	if !g.done || g.err != nil || !reflect.DeepEqual(g.samples, want) {
		t.Errorf("%+v, want that it is done, with the samples %v", g, want)
	}
}
