package lacp

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/testbed/tshark"
)

// Wireshark says of each data unit that is written what was meant.
func TestFrame_Wireshark(t *testing.T) {
	systemtest.Mark(t)
	u := PDU{Actor: Participant{0x8000, macA, 17, 0x80, 3, Activity | Timeout | Aggregation | Synchronization},
		Partner: Participant{0xffff, macA, 15, 0xff, 2, Aggregation | Collecting | Distributing}, MaxDelay: 5}
	m := Marker{Port: 3, System: macA, Transaction: 0x01020304}
	answer := m
	answer.Response = true
	out := tshark.Reads(t, [][]byte{u.Frame(macA), m.Frame(macA), answer.Frame(macA)}, "-T", "fields", "-e", "lacp.actor.key",
		"-e", "lacp.actor.port", "-e", "lacp.actor.state", "-e", "lacp.partner.key", "-e", "lacp.partner.state", "-e", "marker.tlvType",
		"-e", "marker.requesterPort", "-e", "marker.requesterTransId", "-e", "_ws.malformed", "-E", "separator=;")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := []string{"17;3;0x0f;15;0x34;;;;", ";;;;;0x01,0x00;3;16909060;", ";;;;;0x02,0x00;3;16909060;"} // 0x00: the terminator
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	for i, line := range lines {
		if line != want[i] {
			t.Errorf("frame %d: tshark reads %s, want %s", i, line, want[i])
		}
	}
}
