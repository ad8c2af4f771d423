package simulate

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// TestBundle: the flows of hosts with two links share both, each on one, so that no packet overtakes another; together they carry more
// than one link does, with routes and where switches learn. When a link is cut its flows go over the other.
func TestBundle(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, learning := range []bool{false, true} {
			for _, cut := range []bool{false, true} {
				faults := ""
				if cut {
					faults = `"faults": {"kind": "unlink", "port": "switch[1]", "at": "50us"},`
				}
				x := run(t, fmt.Sprintf(`{"topology": {"kind": "star", "hosts": 4, "bundle": 2}, "learning": %v, %s
					"switch": {"buffer": "32MB", "pfc": [3]}, "nic": {"pfc": [3]},
					"workload": {"kind": "all-to-all", "size": "1MB"}, "duration": "1s", "sample": "1ms", "lean": %v}`, learning, faults, lean))
				s := x.Summary
				if s.Complete != 12 || s.Failed > 0 || cut != (s.Again > 0) || cut != (s.Drops > 0) {
					t.Errorf("learning %v, cut %v: %+v", learning, cut, s)
				}
				used := map[string][]float64{}
				for _, p := range x.Ports {
					used[p.Node+">"+p.Peer] = append(used[p.Node+">"+p.Peer], p.Used)
				}
				for name, u := range used {
					if len(u) != 2 || !cut && min(u[0], u[1]) == 0 {
						t.Errorf("learning %v, cut %v: %v of the links %s are used", learning, cut, u, name)
					}
				}
				if u := used["host0>switch"]; cut && u[0] >= u[1] {
					t.Errorf("%v of the links of host0 are used, of which the first is cut", u)
				}
			}
		}
	})
}

// TestExamples_Shares: the classes of the manuals' examples of ETS have their shares of the port where their flows meet.
func TestExamples_Shares(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for name, want := range map[string]map[int]float64{
			"ets-smb":  {0: 0.5, 3: 0.5},
			"ets-dscp": {3: 16. / 96, 5: 80. / 96},
		} {
			// Where packets are lost, lean senders take some time until they lose few.
			s, err := scenario.Load(filepath.Join("../../examples/simulate", name+".json"), scenario.Set{Path: "lean", Text: fmt.Sprint(lean)},
				scenario.Set{Path: "duration", Text: "40ms"})
			if err != nil {
				t.Fatal(err)
			}
			r, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			x, err := r.Run(t.Context(), 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, all := map[int]float64{}, 0.
			for i, f := range x.Series.Flows {
				for _, rate := range f.Rate[3*len(f.Rate)/4:] {
					got[int(x.Flows[i].Priority)] += rate
					all += rate
				}
			}
			for p, share := range want {
				if g := got[p] / all; g < share*.98 || g > share*1.02 {
					t.Errorf("%s: priority %d has %.3f of the port, want %.3f", name, p, g, share)
				}
			}
		}
	})
}
