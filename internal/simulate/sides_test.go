package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// TestSides: shards of a network with two sides go on by turns, twice as far as a frame takes over a link; the result is the one of a
// run in which all go on together. A circle of an odd number of switches has one side.
func TestSides(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, c := range []struct {
			scenario string
			sided    bool
		}{
			{`"topology": {"kind": "leaf-spine", "leaves": 3, "hosts": 4}, "switch": {"most": "20KB"}, "nic": {"timeout": 5},
				"workload": [{"kind": "incast", "size": "30KB", "to": "host7"}, {"kind": "ring-allreduce", "size": "200KB"}]`, true},
			{`"topology": {"kind": "star", "hosts": 40}, "workload": {"kind": "permutation", "size": "100KB"},
				"switch": {"pfc": [3], "kmin": "5KB", "kmax": "50KB", "pmax": 0.1}, "nic": {"pfc": [3], "DcqcnEnablePrio3": 1}`, true},
			{`"topology": {"kind": "ring", "switches": 6}, "workload": {"kind": "poisson", "load": 0.8, "size": "20KB"}`, true},
			{`"topology": {"kind": "ring", "switches": 5}, "workload": {"kind": "poisson", "load": 0.8, "size": "20KB"}`, false},
			{`"topology": {"kind": "star"}, "workload": {"kind": "permutation", "size": "100KB"}`, false},
		} {
			var results [2][]byte
			for i := range results {
				r := prepare(t, fmt.Sprintf(`{%s, "lean": %v, "duration": "300us"}`, c.scenario, lean))
				if r.n.sided != c.sided {
					t.Errorf("%s: two sides: %v", c.scenario, r.n.sided)
				}
				if i == 1 {
					r.n.sided = false
				}
				x, err := r.Run(t.Context(), 2, nil)
				if err != nil {
					t.Fatal(err)
				}
				if results[i], err = json.Marshal(x); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(results[0], results[1]) {
				t.Errorf("%s: the result is another", c.scenario)
			}
		}
	})
}
