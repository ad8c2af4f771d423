package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// outcome runs a scenario, with hosts and switches of a shard together or by turns, as they would, and returns its result as JSON.
func outcome(t interface{ Fatalf(string, ...any) }, text string, together bool) []byte {
	s, err := scenario.Read("f", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	r, err := New(s)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	turns := 0
	for i := range r.n.shards {
		h := &r.n.shards[i]
		if h.reach > 0 && len(h.hosts) > 0 {
			turns++
		}
		if together {
			h.reach = 0
		}
	}
	if turns == 0 {
		t.Fatalf("%s: no shard goes on by turns", text)
	}
	x, err := r.Run(context.Background(), 2, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b
}

// TestByTurns: hosts and switches of a shard that go on by turns see the same at the same times as those that go on together.
func TestByTurns(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, c := range []string{
			`"topology": {"senders": 6}, "workload": {"kind": "incast", "size": "40KB"}, "switch": {"most": "20KB"}, "nic": {"timeout": 5}`,
			`"topology": {"kind": "star", "hosts": 12}, "workload": [{"kind": "ring-allreduce", "size": "100KB"},
				{"kind": "poisson", "load": 0.5, "size": "3KB"}], "switch": {"pause": true}, "nic": {"pause": true}`,
			`"topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 3, "delay": "300ns"},
				"workload": {"kind": "all-to-all", "size": "20KB"}, "switch": {"pfc": [3]}, "nic": {"pfc": [3], "take": "10Gb/s"}`,
			`"topology": {"kind": "star", "hosts": 5}, "workload": {"kind": "tree-allreduce", "size": "60KB"},
				"switch": {"pfc": [3], "kmin": "5KB", "kmax": "50KB", "pmax": 0.1}, "nic": {"pfc": [3], "DcqcnEnablePrio3": 1}`,
			`"topology": {"kind": "star", "hosts": 4}, "workload": {"kind": "permutation", "size": "100KB"}, "nic": {"timeout": 4},
				"faults": [{"kind": "unlink", "port": "host1", "at": "20us", "until": "60us"},
					{"kind": "take", "port": "host2", "rate": "2Gb/s", "at": "30us", "until": "90us"}]`,
		} {
			text := fmt.Sprintf(`{%s, "lean": %v, "duration": "300us"}`, c, lean)
			if a, b := outcome(t, text, true), outcome(t, text, false); !bytes.Equal(a, b) {
				t.Errorf("%s: the result is another", c)
			}
		}
	})
}

// TestByTurns_AnyStar: so it is at a switch with any number of hosts, whatever the delay, the load, the buffer and the marks. A light
// load may have no flow in so short a time, which no scenario may: the permutation is always there.
func TestByTurns_AnyStar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf(`{"topology": {"kind": "star", "hosts": %d, "delay": "%dns"}, "workload": [{"kind": "poisson", "load": %.1f,
			"size": "%dKB"}, {"kind": "permutation", "size": "1KB"}],
			"switch": {"buffer": "%dKB", "pfc": %s, "kmin": "3KB", "kmax": "30KB", "pmax": 0.2},
			"nic": {"pfc": %[6]s, "timeout": 6, "DcqcnEnablePrio3": 1}, "seed": %d, "lean": %v, "duration": "50us"}`,
			rapid.IntRange(2, 16).Draw(t, "hosts"), rapid.IntRange(200, 3000).Draw(t, "delay"), rapid.Float64Range(0.1, 0.9).Draw(t, "load"),
			rapid.IntRange(1, 20).Draw(t, "size"), rapid.IntRange(800, 4000).Draw(t, "buffer"),
			rapid.SampledFrom([]string{"[]", "[3]"}).Draw(t, "lossless"), rapid.IntRange(1, 1000).Draw(t, "seed"), rapid.Bool().Draw(t, "lean"))
		if a, b := outcome(t, text, true), outcome(t, text, false); !bytes.Equal(a, b) {
			t.Fatalf("%s: the result is another", text)
		}
	})
}
