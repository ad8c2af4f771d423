package lldp

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/testbed/tshark"
)

// TestFrame_Wireshark: Wireshark decodes every TLV that is written, and says of each what was meant.
func TestFrame_Wireshark(t *testing.T) {
	systemtest.Mark(t)
	var written [][]byte
	for _, c := range units {
		written = append(written, c.want.Frame(macA))
	}
	out := tshark.Reads(t, written, "-V", "-O", "lldp")
	frames := strings.Split(out, "\nFrame ")
	if len(frames) != len(units) {
		t.Fatalf("%d frames, want %d:\n%s", len(frames), len(units), out)
	}
	for i, want := range [][]string{
		{"Seconds: 0", "End of LLDPDU"},
		{"Chassis Id: 02:00:00:00:0a:01", "Port Id: 02:00:00:00:0a:01", "Seconds: 120", "End of LLDPDU"},
		{"Port Description: eth", "System Name: host", "System Description: Linux", "Capabilities: 0x0084", "Enabled Capabilities: 0x0080",
			"Management Address: 10.0.0.1", "Management Address: fe80::1", "Interface Number: 3"},
		{"1... .... = Willing: Yes", "Maximum Number of Traffic Classes: 8", "PGID for Prio 2: 2", "PGID for Prio 3: 3",
			"Bandwidth for PGID 0: 40", "TSA for Traffic Class 3: Enhanced Transmission Selection (2)", "ETS Recommendation",
			".... 1... = PFC for Priority 3: Enabled", "Max PFC Enabled Traffic Classes: 8", "Application Priority: 3"},
		{"Credit-Based Shaper: Supported", "TSA for Traffic Class 7: Vendor Specific Algorithm (255)", "MACsec Bypass Capability: Capable"},
		{"Sequence No: 1", "Ack No: 2", "PGID for Prio 7: 7", "Bandwidth for PGID 4: 12", "Error: Set",
			"Application Protocol Id: 0x0cbc", "Selector Field: Socket Number (1)"},
		{"IEEE 802.3 Subtype", "IEEE 802.1 Subtype: Port VLAN ID"},
	} {
		for _, text := range want {
			if !strings.Contains(frames[i], text) {
				t.Errorf("%s: tshark does not say %q:\n%s", units[i].name, text, frames[i])
			}
		}
		if strings.Contains(frames[i], "Malformed") {
			t.Errorf("%s is malformed:\n%s", units[i].name, frames[i])
		}
	}
}
