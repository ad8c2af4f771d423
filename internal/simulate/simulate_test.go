package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// run runs a scenario.
func run(t testing.TB, text string) *Result {
	t.Helper()
	s, err := scenario.Read("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.Run(context.Background(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// both runs a test with lean senders and with RC queue pairs.
func both(t *testing.T, f func(t *testing.T, lean bool)) {
	for _, lean := range []bool{true, false} {
		t.Run(map[bool]string{true: "lean", false: "RC"}[lean], func(t *testing.T) { f(t, lean) })
	}
}

// TestAgreement: incasts share the port as those of a simulator written elsewhere do (dcqcn/incast.json of the oracles): the sum from
// 20 to 50 ms within 3 % of its share of what the port can carry, Jain's index from 10 to 20 ms within 0.05, and the median of the
// queue within 30 %. Nothing is lost.
func TestAgreement(t *testing.T) {
	const (
		limit = 40. * 1024 / (1024 + headers + onWire)
		nic   = `"DcqcnEnablePrio3": 1, "DcqcnDceTcpG": 4, "DcqcnRpgByteReset": 0,
			"DcqcnRpgMinRate": 100, "DcqcnCnpDscp": 48, "cnp_interval": 0, "pfc": [3]`
		early = `"kmin": "5KB", "kmax": "200KB", "pmax": 0.01`
		late  = `"kmin": "160KB", "kmax": "640KB", "pmax": 0.2`
	)
	for _, c := range []struct {
		name               string
		senders            int
		nic, ecn           string
		share, jain, queue float64
	}{
		{"authors", 2, `"dcqcn": "authors",` + nic, early, 38.1 / 38.17, 0.9874, 30},
		{"HPCC", 2, `"dcqcn": "firmware", "DcqcnRpgAiRate": 8, "DcqcnRpgHaiRate": 80,` + nic, late, 37.99 / 38.17, 0.9975, 84},
		{"HPCC", 16, `"dcqcn": "firmware", "DcqcnRpgAiRate": 8, "DcqcnRpgHaiRate": 80,` + nic, late, 38.02 / 38.17, 0.9972, 199},
	} {
		t.Run(fmt.Sprintf("%s, %d to 1", c.name, c.senders), func(t *testing.T) {
			both(t, func(t *testing.T, lean bool) {
				if testing.Short() && c.senders > 2 {
					t.Skip("takes seconds")
				}
				x := run(t, fmt.Sprintf(`{"topology": {"senders": %d, "rate": "40Gb/s", "delay": "1us"}, "nic": {%s},
					"switch": {"buffer": "32MB", "pfc": [3], %s}, "workload": {"kind": "incast"},
					"duration": "50ms", "sample": "10us", "lean": %v}`,
					c.senders, c.nic, c.ecn, lean))
				mean := func(v []float64, from, to time.Duration) (m float64) {
					first, last := int(from/(10*time.Microsecond)), int(to/(10*time.Microsecond))
					for _, r := range v[first:last] {
						m += r / float64(last-first)
					}
					return m
				}
				sum := mean(x.Series.Sum, 20*time.Millisecond, 50*time.Millisecond)
				rates, squares := 0., 0.
				for _, f := range x.Series.Flows {
					r := mean(f.Rate, 10*time.Millisecond, 20*time.Millisecond)
					rates += r
					squares += r * r
				}
				index := rates * rates / squares / float64(c.senders)
				t.Logf("%.4f of %.2f Gb/s (%.4f), Jain %.4f (%.4f), queue %.0f KB (%.0f)",
					sum/limit, limit, c.share, index, c.jain, x.Summary.Queue.P50, c.queue)
				if got := sum / limit; got < c.share-0.03 || got > c.share+0.03 {
					t.Errorf("%.4f of the port are used, want %.4f", got, c.share)
				}
				if index < c.jain-0.05 {
					t.Errorf("Jain's index is %.4f, want %.4f", index, c.jain)
				}
				if q := x.Summary.Queue.P50; q < 0.7*c.queue || q > 1.3*c.queue {
					t.Errorf("%.0f KB are in the queue, want %.0f", q, c.queue)
				}
				if x.Summary.Drops+x.Summary.Again > 0 || x.Summary.Marks == 0 {
					t.Errorf("summary %+v", x.Summary)
				}
			})
		})
	}
}

// TestIdeal: a flow that is alone takes as long as it must, over one switch and over five, with links of different rates.
func TestIdeal(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, topology := range []string{`"kind": "incast", "senders": 1`, `"kind": "fat-tree", "radix": 4`,
			`"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts": 1, "rate": "10Gb/s", "uplink_rate": "100Gb/s", "delay": "3us"`} {
			most := 1.01
			if !lean {
				most = 1.1 // windows grow
			}
			for _, size := range []string{"1B", "1024B", "1025B", "10KB", "1MB"} {
				s, err := scenario.Read("f", []byte(fmt.Sprintf(`{"topology": {%s}, "lean": %v}`, topology, lean)))
				if err != nil {
					t.Fatal(err)
				}
				first, last := s.Graph.Nodes[s.Graph.Hosts[0]].Name, s.Graph.Nodes[s.Graph.Hosts[len(s.Graph.Hosts)-1]].Name
				x := run(t, fmt.Sprintf(`{"topology": {%s}, "workload": {"size": %q, "hosts": [%q, %q]}, "lean": %v}`,
					topology, size, first, last, lean))
				if x.Summary.Complete != 1 || x.Summary.Slowdown.Max < 0.99 || x.Summary.Slowdown.Max > most {
					t.Errorf("%s, %s: %d complete, slowdown %+v", topology, size, x.Summary.Complete, x.Summary.Slowdown)
				}
			}
		}
	})
}

// TestLossy: without pauses packets are lost and sent again, and all flows end all the same.
func TestLossy(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		x := run(t, fmt.Sprintf(`{"topology": {"senders": 8}, "switch": {"most": "30KB"}, "nic": {"timeout": 8},
			"workload": {"kind": "incast", "size": "200KB"}, "duration": "1s", "sample": "1ms", "lean": %v}`, lean))
		if s := x.Summary; s.Complete != 8 || s.Drops == 0 || s.Again == 0 || s.Failed > 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestLossless: with PFC nothing is lost without DCQCN either, and all flows end; a NIC that obeys no pauses loses packets.
func TestLossless(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, wrong := range []bool{false, true} {
			nics := ""
			if wrong {
				nics = `"nics": {"sender3": {"pfc": []}},`
			}
			x := run(t, fmt.Sprintf(`{"topology": {"senders": 8}, "switch": {"buffer": "1MB", "pfc": [3], "xoff": "20KB"}, "nic": {"pfc": [3]}, %s
				"workload": {"kind": "incast", "size": "1MB"}, "duration": "1s", "sample": "1ms", "lean": %v}`, nics, lean))
			s := x.Summary
			if s.Complete != 8 || s.Pauses == 0 || wrong != (s.Drops > 0) || wrong != (s.Again > 0) {
				t.Errorf("wrong %v: %+v", wrong, s)
			}
			for _, p := range x.Ports {
				for _, q := range p.Priorities {
					if q.Drops > 0 && p.Peer != "sender3" {
						t.Errorf("%d frames are lost at %s>%s", q.Drops, p.Node, p.Peer)
					}
				}
			}
		}
	})
}

// TestAll_Repeats: the same scenarios give the same bytes, however many processors run them.
func TestAll_Repeats(t *testing.T) {
	base, err := scenario.Load(filepath.FromSlash("../../examples/simulate/leaf-spine-alltoall.json"),
		scenario.Set{Path: "workload.size", Text: "30KB"})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := scenario.Combine(base, []scenario.Set{{Path: "workload.size", Text: "30KB"}},
		[]string{"kmin=5,40", "lean=true,false", "seed=1,2"})
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, processors := range []int{1, 3, 8} {
		all, err := All(context.Background(), runs, processors, func(Progress) {})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("with %d processors the result is another", processors)
		}
	}
}

// TestExamples: each example that is delivered runs, and shows what it is about.
func TestExamples(t *testing.T) {
	lasts := func(text string) []scenario.Set { return []scenario.Set{{Path: "duration", Text: text}} } // where that is long enough
	for _, c := range []struct {
		name string
		set  []scenario.Set
		ok   func(s *Summary) bool
	}{
		{"incast-2", lasts("20ms"), func(s *Summary) bool { return s.Late > 36 && s.Jain > 0.95 && s.Pauses == 0 }},
		{"incast-16", lasts("20ms"), func(s *Summary) bool { return s.Late > 36 && s.Jain > 0.95 && s.Drops == 0 }},
		{"manual-defaults", nil, func(s *Summary) bool { return s.CNPs > 0 && s.Drops == 0 }},
		{"leaf-spine-alltoall", nil, func(s *Summary) bool { return s.Complete == 240 && s.Drops == 0 }},
		{"ring-allreduce", nil, func(s *Summary) bool { return s.Complete == 480 && s.Slowdown.Max < 1.5 }},
		{"tree-allreduce", nil, func(s *Summary) bool { return s.Complete == 30 }},
		{"websearch", lasts("40ms"), func(s *Summary) bool { return s.Complete == s.Flows && s.Slowdown.P99 > s.Slowdown.P50 }},
		{"pause-storm", nil, func(s *Summary) bool { return s.Storms > 1 && s.Late < 0.1 }},
		{"deadlock", nil, func(s *Summary) bool { return s.Deadlocks == 1 && s.Late == 0 }},
		{"faults", nil, func(s *Summary) bool { return s.Drops > 0 && s.Failed == 0 }},
		{"faults", []scenario.Set{{Path: "faults", Text: "[]"}}, func(s *Summary) bool { return s.Drops == 0 && s.Pauses > 100 }},
		{"vlans", nil, func(s *Summary) bool { return s.Complete == 24 && s.Drops == 0 && s.Again == 0 }},
		{"bundle", nil, func(s *Summary) bool { return s.Complete == 56 && s.Failed == 0 && s.Drops > 0 }},
		{"bundle", []scenario.Set{{Path: "faults", Text: "[]"}}, func(s *Summary) bool { return s.Complete == 56 && s.Drops == 0 && s.Again == 0 }},
		{"lacp", nil, func(s *Summary) bool { return s.Complete == 12 && s.Failed == 0 && s.Drops > 0 }},
		{"lacp", []scenario.Set{{Path: "switch", Text: `{"pfc": [3], "xoff": "20KB"}`}}, func(s *Summary) bool { return s.Failed > 0 }},
		{"dcbx", nil, func(s *Summary) bool { return s.Complete == 7 && s.Drops == 0 && s.Pauses > 0 }},
		{"dcbx", []scenario.Set{{Path: "nic.dcbx", Text: "off"}}, func(s *Summary) bool { return s.Drops > 0 && s.Again > 0 }},
		{"dcbx", []scenario.Set{{Path: "switch.dcbx", Text: "off"}}, func(s *Summary) bool { return s.Drops > 0 && s.Again > 0 }},
		{"rcm-set", nil, func(s *Summary) bool { return s.CNPs > 100 && s.Drops == 0 }},
		{"rcm-priority", nil, func(s *Summary) bool { return s.CNPs > 100 && s.Pauses > 100 && s.Drops == 0 }},
		{"rcm-priority", []scenario.Set{{Path: "nic.DcqcnEnablePrio3", Text: "0"}},
			func(s *Summary) bool { return s.CNPs == 0 && s.Pauses > 1000 && s.Drops == 0 }},
		{"rcm-all", nil, func(s *Summary) bool { return s.CNPs > 100 && s.Queue.P50 < 1000 && s.Drops == 0 }},
		{"rcm-untagged", nil, func(s *Summary) bool { return s.CNPs > 100 && s.Drops == 0 }},
		{"rcm-untagged", []scenario.Set{{Path: "switch.priority", Text: "0"}}, func(s *Summary) bool { return s.Pauses == 0 && s.Drops > 0 }},
		{"rcm-lossy", nil, func(s *Summary) bool { return s.Drops > 0 && s.Again > 0 && s.Late > 30 && s.Failed == 0 }},
		{"rcm-lossy", []scenario.Set{{Path: "switch.pfc", Text: "[3]"}, {Path: "nic.pfc", Text: "[3]"}},
			func(s *Summary) bool { return s.Drops == 0 && s.Again == 0 }},
		{"ets-smb", nil, func(s *Summary) bool { return s.Late > 36 }},
		{"ets-dscp", nil, func(s *Summary) bool { return s.Late > 36 && s.Drops == 0 }},
		{"victim-flow", nil, func(s *Summary) bool { return s.Late > 55 }},
		{"victim-flow", []scenario.Set{{Path: "nic.DcqcnEnablePrio3", Text: "0"}},
			func(s *Summary) bool { return s.Late < 55 && s.Pauses > 100 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := scenario.Load(filepath.Join("../../examples/simulate", c.name+".json"), c.set...)
			if err != nil {
				t.Fatal(err)
			}
			r, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			x, err := r.Run(context.Background(), 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !c.ok(&x.Summary) {
				t.Errorf("%+v", x.Summary)
			}
		})
	}
	files, err := filepath.Glob("../../examples/simulate/*.json")
	if err != nil || len(files) != 22 {
		t.Errorf("%d examples, want those above: %v", len(files), err)
	}
}

// TestOrder: in a network of many hosts no packet overtakes another of its flow, so that nothing is sent again where nothing is lost.
func TestOrder(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		x := run(t, fmt.Sprintf(`{"topology": {"kind": "fat-tree", "radix": 8, "rate": "100Gb/s"}, "switch": {"pfc": [3]}, "nic": {"pfc": [3]},
			"workload": {"kind": "permutation", "size": "100KB"}, "lean": %v}`, lean))
		if s := x.Summary; s.Complete != 128 || s.Again > 0 || s.Drops > 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestMTU: packets of a flow are as long as both of its hosts can send them.
func TestMTU(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		x := run(t, fmt.Sprintf(`{"nic": {"mtu": 4096}, "nics": {"sender1": {"mtu": 512}}, "workload": {"size": "1MB"}, "lean": %v}`, lean))
		for i, want := range []uint64{245, 1954} { // of 1,000,000 bytes; a message of 262,144 at a time
			if f := x.Flows[i]; f.Packets != want || f.FCT == nil || f.Failed {
				t.Errorf("flow %d has %d packets, want %d: %+v", i, f.Packets, want, f)
			}
		}
	})
}

// TestRun_Stops: a run of which many flows begin at once says how far it is, and stops when it shall.
func TestRun_Stops(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		pattern := `{"kind": "all-to-all"}`
		r := prepare(t, fmt.Sprintf(`{"topology": {"kind": "star", "hosts": 16}, "workload": [%s%s], "lean": %v, "duration": "10us"}`, pattern,
			strings.Repeat(", "+pattern, 63), lean))
		ctx, stop := context.WithCancel(context.Background())
		asked := 0
		_, err := r.Run(ctx, 1, func(Progress) {
			if asked++; asked == 2 {
				stop()
			}
		})
		if !errors.Is(err, context.Canceled) || asked != 2 || r.samples.at != nil {
			t.Errorf("asked %d times, at %v: %v", asked, r.now, err)
		}
	})
}

// TestRun_Processors: a run gives the same bytes on any number of processors, with flows that begin and end all the time, ECMP, losses,
// pauses and marks.
func TestRun_Processors(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, c := range []string{
			`"topology": {"kind": "fat-tree", "radix": 4}, "switch": {"pfc": [3], "kmin": "5KB", "kmax": "50KB", "pmax": 0.1},
				"nic": {"pfc": [3], "dcqcn": "authors", "DcqcnEnablePrio3": 1}, "workload": {"kind": "poisson", "load": 0.8, "size": "20KB"},
				"duration": "150us"`,
			`"topology": {"kind": "leaf-spine", "leaves": 3, "hosts": 20}, "switch": {"most": "20KB"}, "nic": {"timeout": 5},
				"workload": [{"kind": "incast", "size": "30KB", "to": "host7"}, {"kind": "ring-allreduce", "size": "200KB"}],
				"duration": "150us"`,
			`"topology": {"kind": "star", "hosts": 40}, "workload": [{"kind": "permutation", "size": "100KB"},
				{"kind": "tree-allreduce", "size": "50KB"}], "duration": "300us"`, // in which all complete
		} {
			var first []byte
			for _, processors := range []int{1, 2, 3, 8} {
				r := prepare(t, fmt.Sprintf(`{%s, "lean": %v}`, c, lean))
				x, err := r.Run(context.Background(), processors, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := json.Marshal(x)
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = b
					t.Logf("%d shards: %+v", len(r.n.shards), x.Summary)
				}
				if !bytes.Equal(b, first) {
					t.Errorf("with %d processors the result is another: %+v", processors, x.Summary)
				}
			}
		}
	})
}

// TestLossless_Senders: 2 to 64 RC senders of messages of 64 bytes to 1 MB over switches with PFC, without DCQCN, to a receiver as fast
// as its link or slower: nothing is lost or sent again, every flow completes, and in steady state the senders have equal shares.
func TestLossless_Senders(t *testing.T) {
	for _, senders := range []int{2, 3, 8, 16, 32, 63, 64} {
		if testing.Short() && senders > 8 && senders < 64 {
			continue
		}
		topology := fmt.Sprintf(`"kind": "incast", "senders": %d, "rate": "40Gb/s"`, senders)
		if senders == 64 { // beyond the ports of one switch
			topology = `"kind": "leaf-spine", "leaves": 5, "spines": 2, "hosts": 13, "rate": "40Gb/s"`
		}
		for _, take := range []string{"", `, "take": "5Gb/s"`} {
			for _, size := range []string{"64B", "4KB", "64KB", "1MB"} {
				to, nics := `"receiver"`, fmt.Sprintf(`, "nics": {"receiver": {"pfc": [3]%s}}`, take)
				if senders == 64 {
					to, nics = `"host0"`, strings.ReplaceAll(nics, "receiver", "host0")
				}
				x := run(t, fmt.Sprintf(`{"topology": {%s}, "switch": {"pfc": [3], "xoff": "20KB"}, "nic": {"pfc": [3]}%s, "sample": "1ms",
					"duration": "1s", "workload": {"kind": "incast", "size": %q, "to": %s}}`, topology, nics, size, to))
				s := x.Summary
				if s.Complete != senders || s.Failed > 0 || s.Drops+s.Again > 0 || size == "1MB" && s.Pauses == 0 {
					t.Errorf("%d senders of %s%s: %+v", senders, size, take, s)
				}
			}
		}
	}
	for _, senders := range []int{2, 16, 63} {
		x := run(t, fmt.Sprintf(`{"topology": {"kind": "incast", "senders": %d}, "switch": {"pfc": [3], "xoff": "20KB"}, "nic": {"pfc": [3]},
			"duration": "5ms", "workload": {"kind": "incast"}}`, senders))
		if s := x.Summary; s.Jain < 0.99 || s.Drops+s.Again > 0 || s.Pauses == 0 {
			t.Errorf("%d senders: %+v", senders, s)
		}
	}
}
