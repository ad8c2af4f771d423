package mlxtool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestShowQoS: show qos has the settings of every port with their origins, and says why a port has no DCBX and which of the
// settings it does not work by.
func TestShowQoS(t *testing.T) {
	g := start(t)
	rows := map[string]string{}
	for _, row := range g.tables(append([]string{"show", "qos"}, g.where("left")...)...)[0].Rows {
		if row["port"] == float64(1) {
			rows[row["setting"].(string)] = fmt.Sprint(row["value"], " ", row["origin"])
		}
	}
	for setting, want := range map[string]string{"Priority Flow Control": "none default", "Traffic Classes": "none default",
		"ETS Bandwidths": "0:100 default", "Applications": "none default", "Not Enforced": "PFC", "Willing": "true"} {
		if !strings.HasPrefix(rows[setting], want) {
			t.Errorf("%s is %q, want %q", setting, rows[setting], want)
		}
	}
	if !strings.Contains(rows["DCBX"], "UDP sockets") {
		t.Errorf("DCBX is %q", rows["DCBX"])
	}
	if out := g.ok("show", "qos"); !strings.Contains(out, "Priority Flow Control") {
		t.Error(out)
	}
	if status, _, _ := g.call("show", "qos", "1", "2"); status != tool.Usage {
		t.Errorf("half a location: status %d", status)
	}
}
