package simulate

import (
	"fmt"
	"testing"
)

// TestFaults: what a scenario says that goes wrong does so at its time, and is over at its end: rates, losses and pauses are those of the
// fault while it lasts, and then those of before.
func TestFaults(t *testing.T) {
	const network = `"topology": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts": 2, "rate": "10Gb/s"}, "sample": "100us", "duration": "3ms",
		"switch": {"pfc": [3], "buffer": "300KB", "xoff": "20KB"}, "nic": {"pfc": [3], "timeout": %d},
		"workload": {"kind": "incast", "hosts": ["host0", "host2"], "to": "host2"}`
	for _, c := range []struct {
		name, fault  string
		low, high    float64 // Gb/s while it lasts, from 1.1 ms to 2 ms
		lost, pauses bool
	}{
		{"none", ``, 9, 10, false, false},
		{"unlink", `"kind": "unlink", "port": "leaf0[3]"`, 0, 0, true, false},
		{"loss", `"kind": "loss", "port": "spine0[2]", "share": "5%"`, 0.1, 9.2, true, false},
		{"rate", `"kind": "rate", "port": "leaf0[3]", "rate": "2Gb/s"`, 1.8, 2, false, true},
		{"slow receiver", `"kind": "take", "port": "host2", "rate": "3Gb/s"`, 2.7, 3, false, true},
		{"hung receiver", `"kind": "take", "port": "host2", "rate": "none"`, 0, 0, false, false},
		{"storm", `"kind": "storm", "port": "host2"`, 0, 0, false, true},
		{"storm of another priority", `"kind": "storm", "port": "host2", "priorities": [4]`, 9, 10, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, lean bool) {
				faults := ""
				if c.fault != "" {
					faults = fmt.Sprintf(`"faults": [{%s, "at": "1ms", "until": "2ms"}],`, c.fault)
				}
				timeout, after := 14, 9.
				if c.lost {
					timeout, after = 6, 1 // until windows are open again
				}
				x := run(t, fmt.Sprintf(`{`+network+`, %s "lean": %v}`, timeout, faults, lean))
				rate := func(from, to int) (mean float64) { // samples
					for _, r := range x.Series.Sum[from:to] {
						mean += r / float64(to-from)
					}
					return mean
				}
				if r := rate(5, 10); r < 9 {
					t.Errorf("%.2f Gb/s before it", r)
				}
				if r := rate(12, 20); r < c.low || r > c.high {
					t.Errorf("%.2f Gb/s while it lasts, want %g to %g", r, c.low, c.high)
				}
				if r := rate(25, 30); r < after {
					t.Errorf("%.2f Gb/s after it", r)
				}
				if s := x.Summary; (s.Drops > 0) != c.lost || (s.Again > 0) != c.lost || c.pauses && s.Pauses == 0 {
					t.Errorf("%+v", s)
				}
				if c.fault != "" && (len(x.Faults) != 1 || x.Faults[0].At != 1000 || *x.Faults[0].Until != 2000) {
					t.Errorf("faults %+v", x.Faults)
				}
			})
		})
	}
}

// TestFaults_PFC: with PFC at all hops nothing is lost; where one hop does not pause for a while, frames are lost there, and only then.
func TestFaults_PFC(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, wrong := range []bool{false, true} {
			faults := ""
			if wrong {
				faults = `"faults": [{"kind": "pfc", "port": "spine0", "priorities": [], "at": "1ms", "until": "2ms"}],`
			}
			x := run(t, fmt.Sprintf(`{"topology": {"kind": "leaf-spine", "leaves": 3, "spines": 1, "hosts": 4, "uplink_rate": "100Gb/s"},
				"switch": {"pfc": [3], "buffer": "800KB", "xoff": "20KB"}, "nic": {"pfc": [3], "timeout": 6}, %s "duration": "3ms",
				"workload": {"kind": "incast", "to": "host0"}, "lean": %v}`, faults, lean))
			if s := x.Summary; s.Pauses == 0 || (s.Drops > 0) != wrong {
				t.Errorf("wrong %v: %+v", wrong, s)
			}
			for _, p := range x.Ports {
				for _, q := range p.Priorities {
					if q.Drops > 0 && p.Node != "spine0" && p.Peer != "spine0" {
						t.Errorf("%d frames are lost at %s>%s", q.Drops, p.Node, p.Peer)
					}
				}
			}
		}
	})
}

// TestFaults_LongPause: a sender whose priority is lossless sends nothing again for a pause, however long, until its ACK timer ends: what
// is late is not lost. One that obeys no pauses looks for losses long before, and finds none.
func TestFaults_LongPause(t *testing.T) {
	for _, c := range []struct {
		nic   string // with what is of the switch before it
		again bool
	}{
		{`"pfc": [3]}, "nic": {"timeout": 14, "pfc": [3]`, false}, // 67 ms
		{`"pause": true}, "nic": {"timeout": 14, "pause": true`, false},
		{`"pfc": [3]}, "nic": {"timeout": 11, "pfc": [3]`, true}, // 8.4 ms
	} {
		x := run(t, fmt.Sprintf(`{"topology": {"senders": 3, "rate": "10Gb/s"}, "switch": {"buffer": "4MB", %s},
			"faults": [{"kind": "storm", "port": "receiver", "at": "1ms", "until": "41ms"}], "duration": "60ms",
			"workload": {"kind": "incast"}}`, c.nic))
		if s := x.Summary; s.Drops > 0 || s.Pauses == 0 || s.Failed > 0 || (s.Again > 0) != c.again || s.Late > 6 {
			t.Errorf("%s: %+v", c.nic, s)
		}
	}
}

// TestLearning: switches that learn bring all flows of a VLAN to their ends, flood only what they do not know yet, and only in the VLAN.
func TestLearning(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		r := prepare(t, fmt.Sprintf(`{"topology": {"kind": "leaf-spine", "leaves": 3, "spines": 1, "hosts": 2}, "learning": true, "lean": %v,
			"ports": {"host1": {"pvid": 7}, "host3": {"pvid": 7}, "host5": {"pvid": 7}},
			"workload": [{"kind": "all-to-all", "size": "50KB", "hosts": ["host0", "host2", "host4"]},
				{"kind": "all-to-all", "size": "50KB", "hosts": ["host1", "host3"]}]}`, lean))
		x, err := r.Run(t.Context(), 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s := x.Summary; s.Complete != 8 || s.Again > 0 || s.Drops > 0 {
			t.Errorf("%+v", s)
		}
		for _, p := range x.Ports {
			frames := uint64(0)
			for _, q := range p.Priorities {
				frames += q.Frames
			}
			switch {
			case p.Peer == "host5" && (frames == 0 || frames > 20):
				t.Errorf("%d frames went to a host that was only flooded", frames)
			case p.Peer == "host1" && frames > 120:
				t.Errorf("%d frames went to a host of another VLAN", frames)
			}
		}
	})
}
