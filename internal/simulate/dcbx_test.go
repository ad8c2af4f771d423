package simulate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/qos"
)

// TestDCBX: a willing adapter takes PFC and the shares of its priorities from a switch that offers them, by IEEE's and by CEE's DCBX, and
// works as it is set itself where the switch offers nothing or speaks another protocol.
func TestDCBX(t *testing.T) {
	own, theirs := []int{5}, []int{3, 4}
	for _, c := range []struct {
		sw, nic string
		taken   bool
	}{
		{`"dcbx": "ieee"`, "auto", true}, {`"dcbx": "cee"`, "auto", true}, {`"dcbx": "cee"`, "cee", true}, {`"dcbx": "auto"`, "ieee", true},
		{`"dcbx": "cee"`, "ieee", false}, {`"dcbx": "off"`, "auto", false}, {`"lldp": false`, "auto", false},
	} {
		r := prepare(t, fmt.Sprintf(`{"switch": {"pfc": [3, 4], "weights": [10, 0, 0, 60, 30, 0, 0, 0], %s},
			"nic": {"pfc": [5], "dcbx": %q}}`, c.sw, c.nic))
		want, from := own, qos.FromLocal
		if c.taken {
			want, from = theirs, qos.FromPeer
		}
		for i, h := range r.s.Graph.Hosts {
			a, wire := r.n.agreed[i], r.n.Switch(h).Port(0).Config()
			lossless := uint8(0)
			for _, p := range want {
				lossless |= 1 << p
			}
			if after := r.n.lossless(ethernet.End{Node: h}); wire.Lossless != lossless || after != lossless {
				t.Errorf("switch %s, adapter %s: %08b at its port, %08b after a fault", c.sw, c.nic, wire.Lossless, after)
			}
			if !slices.Equal(a.PFC, want) || a.PFCFrom != from.String() {
				t.Errorf("switch %s, adapter %s: %+v", c.sw, c.nic, a)
			}
			if q := wire.Queues; c.taken != (q[3].Weight > 50 && q[4].Weight > 25) {
				t.Errorf("switch %s, adapter %s: %+v", c.sw, c.nic, q)
			}
		}
	}
}
