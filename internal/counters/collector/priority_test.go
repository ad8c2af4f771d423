package collector

import (
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/port"
)

// The set of a priority has the 17 counters of the manual, by their names (WinOF 5.50, 4.9.4.3), and each shows what the port counts of
// that priority, or without one, and nothing else: traffic by the tag or the DSCP, pauses in both directions, and what was lost instead
// of sent.
func TestPriorities_EachCounterOfTheManual(t *testing.T) {
	b := newBench(t, "Ethernet 1")
	var r counters.Reader
	b.values(&r, "adapter_qos")
	b.adapters[0].Arrived = [9]port.Tally{3: {Packets: 5, Bytes: 500}, port.Untagged: {Packets: 7, Bytes: 700}}
	b.adapters[0].Sent = [9]port.Tally{3: {Packets: 15, Bytes: 1500}, port.Untagged: {Packets: 17, Bytes: 1700}}
	flow := &b.adapters[0].Flow
	flow.Priority[3] = pause.Counts{Sent: 21, SentTime: 22 * time.Microsecond, Received: 23, ReceivedTime: 24 * time.Microsecond}
	flow.Global = pause.Counts{Sent: 31, SentTime: 32 * time.Microsecond, Received: 33, ReceivedTime: 34 * time.Microsecond}
	flow.Discards[3], flow.Discards[0] = 25, 35
	b.now = b.now.Add(2 * time.Second)
	got := b.values(&r, "adapter_qos")
	manual := []struct{ name, three, untagged string }{
		{"Bytes Received", "500", "700"}, {"Bytes Received/Sec", "250.0", "350.0"}, {"Packets Received", "5", "7"},
		{"Packets Received/Sec", "2.5", "3.5"}, {"Bytes Sent", "1500", "1700"}, {"Bytes Sent/Sec", "750.0", "850.0"},
		{"Packets Sent", "15", "17"}, {"Packets Sent/Sec", "7.5", "8.5"}, {"Bytes Total", "2000", "2400"},
		{"Bytes Total/Sec", "1000.0", "1200.0"}, {"Packets Total", "20", "24"}, {"Packets Total/Sec", "10.0", "12.0"},
		{"Sent Pause Frames", "21", "31"}, {"Sent Pause Duration", "22", "32"}, {"Received Pause Frames", "23", "33"},
		{"Received Pause Duration", "24", "34"}, {"Sent Discard Frames", "25", "35"},
	}
	for _, c := range manual {
		for instance, want := range map[string]string{"Priority 3": c.three, "Untagged": c.untagged} {
			if v := got[fmt.Sprintf("Ethernet 1, %s: %s", instance, c.name)]; v != want {
				t.Errorf("%s, %s: %q, want %q", instance, c.name, v, want)
			}
		}
		if v := got["Ethernet 1, Priority 4: "+c.name]; v != "0" && v != "0.0" {
			t.Errorf("priority 4, %s: %q, want 0", c.name, v)
		}
	}
	if instances := 9; len(got) != instances*len(manual) {
		t.Errorf("%d values, want those of %d counters of %d instances", len(got), len(manual), instances)
	}
}
