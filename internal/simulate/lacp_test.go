package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// used returns which share of its rate each link of a direction has carried, by its ends.
func used(x *Result) map[string][]float64 {
	all := map[string][]float64{}
	for _, p := range x.Ports {
		all[p.Node+">"+p.Peer] = append(all[p.Node+">"+p.Peer], p.Used)
	}
	return all
}

// states returns how many ports that follow LACP are in each state.
func states(x *Result) map[string]int {
	all := map[string]int{}
	for _, a := range x.LACP {
		all[a.State]++
	}
	return all
}

// TestLACP: links whose both ends speak LACP carry the flows of a host from the beginning, with routes and where switches learn. Of links
// with different keys, or of which nobody speaks, one is used. A host that speaks none, at a switch that does, loses what it sends over
// the others; at one that does not, nothing.
func TestLACP(t *testing.T) {
	for _, c := range []struct {
		name, sw, nic string
		links         int // of host0 that carry flows
		loses         bool
		distributing  int // ports of 16
	}{
		{"both active", `"lacp": "active"`, `{}`, 2, false, 16},
		{"host passive, fast", `"lacp": "active"`, `{"lacp": "passive", "lacp_rate": "fast"}`, 2, false, 16},
		{"switch passive", `"lacp": "passive"`, `{}`, 2, false, 16},
		{"another key", `"lacp": "active"`, `{"lacp_keys": [7, 8]}`, 1, false, 14},
		{"the same key", `"lacp": "active"`, `{"lacp_keys": [7, 7]}`, 2, false, 16},
		{"nobody speaks first", `"lacp": "passive"`, `{"lacp": "passive"}`, 1, false, 14},
		{"silent host", `"lacp": "active"`, `{"lacp": "off"}`, 2, true, 13},
		{"silent switch", `"lacp": "off"`, `{"lacp": "active"}`, 1, true, 1},
		{"neither", `"lacp": "off"`, `{}`, 2, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, lean bool) {
				for _, learning := range []bool{false, true} {
					x := run(t, fmt.Sprintf(`{"topology": {"kind": "star", "hosts": 4, "bundle": 2}, "learning": %v, "lean": %v,
						"switch": {"buffer": "32MB", "pfc": [3], %s}, "nic": {"pfc": [3]}, "nics": {"host0": %s},
						"workload": {"kind": "all-to-all", "size": "300KB"}, "duration": "20ms"}`, learning, lean, c.sw, c.nic))
					links := used(x)["host0>switch"]
					carry := 0
					for _, u := range links {
						if u > 0 {
							carry++
						}
					}
					s := &x.Summary
					if carry != c.links || c.loses != (s.Drops > 0) || c.loses != (s.Complete < 12) || states(x)["distributing"] != c.distributing {
						t.Errorf("learning %v: links of host0 carry %v, of %d flows %d are complete, %d drops, ports %v", learning, links, s.Flows,
							s.Complete, s.Drops, states(x))
					}
				}
			})
		})
	}
}

// TestLACP_Cut: flows of a link that is cut move to the other at once, at both ends, and return when both have agreed again, in the time of
// LACP: 2 s and more after the link is back.
func TestLACP_Cut(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		x := run(t, fmt.Sprintf(`{"topology": {"kind": "star", "hosts": 3, "bundle": 2, "rate": "10Mb/s"}, "lean": %v,
			"switch": {"pfc": [3], "xoff": "20KB", "lacp": "active"}, "nic": {"pfc": [3], "timeout": 17},
			"workload": {"kind": "incast", "to": "host2"}, "duration": "12s",
			"faults": {"kind": "unlink", "port": "host2[2]", "at": "3s", "until": "4s"}}`, lean))
		if s := &x.Summary; s.Failed > 0 {
			t.Errorf("%d flows have failed", s.Failed)
		}
		changed := 0
		for _, a := range x.LACP {
			if len(a.Changes) == 0 {
				continue
			}
			changed++
			first, last := a.Changes[0], a.Changes[len(a.Changes)-1]
			if first.At != 3e6 || first.Takes || first.Sends || last.At < 6e6 || last.At > 10e6 || !last.Takes || !last.Sends {
				t.Errorf("%s[%d]>%s: %+v", a.Node, a.Port+1, a.Peer, a.Changes)
			}
		}
		if changed != 2 {
			t.Errorf("%d ports have changed, want those at both ends of the link", changed)
		}
	})
}

// TestLACP_Processors: data units of LACP, losses of them and links that come and go give the same bytes on any number of processors, also
// where a switch and its hosts are in different parts.
func TestLACP_Processors(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		var first []byte
		for _, processors := range []int{1, 2, 3} {
			r := prepare(t, fmt.Sprintf(`{"topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 20, "bundle": 3, "rate": "5Mb/s", "uplink_rate": "50Mb/s"},
				"switch": {"pfc": [3], "xoff": "20KB", "lacp": "active", "lacp_rate": "fast"}, "nic": {"pfc": [3], "lacp_rate": "fast", "timeout": 17},
				"nics": {"host3": {"lacp_keys": [1, 2, 1]}, "host4": {"lacp": "off"}}, "lean": %v, "duration": "5s", "sample": "100ms",
				"faults": [{"kind": "unlink", "port": "host7", "at": "500ms", "until": "600ms"},
					{"kind": "loss", "port": "host25[2]", "share": "50%%"}],
				"workload": {"kind": "shift", "by": 21, "size": "500KB"}}`, lean))
			x, err := r.Run(t.Context(), processors, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
				t.Logf("%d shards: %+v, ports %v", len(r.n.shards), x.Summary, states(x))
			}
			if !bytes.Equal(b, first) {
				t.Errorf("with %d processors the result is another: %+v", processors, x.Summary)
			}
		}
	})
}
