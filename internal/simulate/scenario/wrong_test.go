package scenario

import (
	"slices"
	"strings"
	"testing"
)

// kinds are a scenario for each kind of topology and workload, so that together they ask for every field that there is.
var kinds = []string{
	`{"topology": {"kind": "incast"}, "workload": {"kind": "incast"}}`,
	`{"topology": {"kind": "star"}, "workload": {"kind": "permutation"}}`,
	`{"topology": {"kind": "leaf-spine"}, "workload": {"kind": "shift"}}`,
	`{"topology": {"kind": "fat-tree"}, "workload": {"kind": "all-to-all"}}`,
	`{"topology": {"kind": "ring"}, "workload": {"kind": "ring-allreduce"}}`,
	`{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [{"from": "a", "to": "s"}, {"from": "b", "to": "s"}]},
		"workload": {"kind": "tree-allreduce"}}`,
	`{"topology": {"kind": "star"}, "workload": [{"kind": "poisson", "size": "1KB"}], "duration": "100us",
		"switch": {"priorities": {"3": {}}, "weights": [1, 1, 1, 1, 1, 1, 1, 1]}, "switches": {"switch": {}}, "nics": {"host0": {}}}`,
	`{"workload": {"kind": "csv", "file": "none"}}`,
	`{"learning": true, "ports": {"receiver": {"pvid": 1, "trunk": "2", "pfc": [3], "trust": "pcp"}},
		"faults": [{"kind": "unlink", "port": "receiver"}, {"kind": "loss", "port": "receiver"},
		{"kind": "take", "port": "receiver", "rate": "1Gb/s"}, {"kind": "storm", "port": "receiver", "until": "1s"}]}`,
	`{"topology": {"kind": "netlist", "file": "none"}}`,
}

// TestRead_WrongFields: each field refuses values of another kind, beyond its range and of an unknown unit, and names itself and what
// is allowed. What it does not refuse is a value of its kind.
func TestRead_WrongFields(t *testing.T) {
	values := []string{`null`, `true`, `"x"`, `""`, `[]`, `{}`, `[[]]`, `[null]`, `{"x": 1}`, `-1`, `1e300`, `"1e300"`, `"NaN"`, `"-Inf"`, `"Inf"`,
		`"1 parsec"`, `"-5KB"`, `0.5`, `1e-300`, `12345678901234567890123`}
	refused, fields := map[string]int{}, map[string]bool{}
	for _, text := range kinds {
		root := func() *node {
			n, err := parse("f", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		r := &reading{file: "f", known: map[string]bool{}}
		r.scenario(r.root(root()))
		for field := range r.known {
			if fields[field] {
				continue
			}
			fields[field] = true
			for _, v := range values {
				_, err := Read("f", []byte(text), Set{Path: field, Text: v, By: "--set"})
				if err == nil {
					continue
				}
				if e, ok := err.(*Error); !ok || e.Allowed == "" {
					t.Errorf("%s: %s=%s: %v", text, field, v, err)
				}
				if strings.Contains(err.Error(), field) {
					refused[field]++
				}
			}
		}
	}
	var all []string
	for field := range fields {
		all = append(all, field)
	}
	slices.Sort(all)
	for _, field := range all {
		if n := refused[field]; n < 8 {
			t.Errorf("%s refuses %d values", field, n)
		}
	}
	t.Logf("%d fields", len(all))
}
