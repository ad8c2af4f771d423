package scenario

import (
	"fmt"
	"strings"
)

// mostRuns is how many runs a sweep may have.
const mostRuns = 1024

// Labelled is a scenario of a sweep, with what makes it differ from the others.
type Labelled struct {
	*Scenario
	Label string // such as "kmin=5 kmax=200"; "": there is no other
}

// Assign returns the value for a field that a user names on the command line, by its path or, if there is no other, its last part.
// The error is an *Error.
func (s *Scenario) Assign(by, name, value string) (Set, error) {
	path, all, ok := s.Resolve(name)
	if ok {
		return Set{Path: path, Text: value, By: by}, nil
	}
	x := &Error{File: by, Field: name, Value: "no field of the scenario",
		Allowed: "the path of one, such as switch.kmin, seed or nic.DcqcnRpgAiRate"}
	if len(all) > 1 {
		x.Value, x.Allowed = "the name of several fields", strings.Join(all, ", ")
	}
	return Set{}, x
}

// Combine returns the scenarios of a sweep: base with each combination of the values, FIELD=VALUE,VALUE..., of sweeps, and the values
// of set in each. The error is an *Error.
func Combine(base *Scenario, set []Set, sweeps []string) ([]Labelled, error) {
	if len(sweeps) == 0 {
		return []Labelled{{Scenario: base}}, nil
	}
	type variant struct {
		label  []string
		values []Set
	}
	all := []variant{{values: set}}
	for _, text := range sweeps {
		by := "--sweep " + text
		name, list, ok := strings.Cut(text, "=")
		if !ok || name == "" || list == "" {
			return nil, &Error{File: by, Value: "not understood", Allowed: "FIELD=VALUE,VALUE..., such as kmin=5,40,160"}
		}
		var next []variant
		for _, x := range all {
			for value := range strings.SplitSeq(list, ",") {
				v, err := base.Assign(by, name, strings.TrimSpace(value))
				if err != nil {
					return nil, err
				}
				next = append(next, variant{append(x.label[:len(x.label):len(x.label)], name+"="+v.Text),
					append(x.values[:len(x.values):len(x.values)], v)})
			}
		}
		if all = next; len(all) > mostRuns {
			return nil, &Error{File: by, Value: fmt.Sprintf("%d runs", len(all)), Allowed: fmt.Sprintf("%d runs", mostRuns)}
		}
	}
	runs := make([]Labelled, len(all))
	for i, x := range all {
		s, err := Load(base.File, x.values...)
		if err != nil {
			return nil, err
		}
		runs[i] = Labelled{s, strings.Join(x.label, " ")}
	}
	return runs, nil
}
