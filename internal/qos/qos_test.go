package qos

import (
	"errors"
	"testing"
)

// TestETS_Check: the bandwidths of the classes that share add up to 100, strict ones have none, and there are eight classes.
func TestETS_Check(t *testing.T) {
	for _, c := range []struct {
		name  string
		ets   ETS
		field string
	}{
		{"the default", DefaultETS(), ""},
		{"all strict", ETS{}, ""},
		{"two classes", ETS{Algorithm: [8]Algorithm{Enhanced, Enhanced}, Bandwidth: [8]uint8{30, 70}}, ""},
		{"less than all", ETS{Algorithm: [8]Algorithm{Enhanced, Enhanced}, Bandwidth: [8]uint8{30, 60}}, "bandwidths of all classes"},
		{"nothing", ETS{Algorithm: [8]Algorithm{Enhanced}}, "bandwidths of all classes"},
		{"strict with a share", ETS{Bandwidth: [8]uint8{2: 10}}, "bandwidth of class 2, which is strict,"},
		{"a ninth class", ETS{Class: [8]uint8{5: 8}}, "class of priority 5"},
		{"another algorithm", ETS{Algorithm: [8]Algorithm{3: 2}}, "algorithm"},
	} {
		if got := field(c.ets.Check()); got != c.field {
			t.Errorf("%s: %q is wrong, want %q", c.name, got, c.field)
		}
	}
}

func field(err error) string {
	var f *FieldError
	if errors.As(err, &f) {
		return f.Field
	}
	return ""
}

// TestCheckApplications: an entry has a selector that is known, a priority, and a DSCP that there is.
func TestCheckApplications(t *testing.T) {
	for _, c := range []struct {
		a     Application
		field string
	}{
		{Application{Port, 4791, 3}, ""},
		{Application{EtherType, 0, 7}, ""},
		{Application{0, 1, 1}, "selector"},
		{Application{6, 1, 1}, "selector"},
		{Application{UDP, 1, 8}, "priority of udp:1=8"},
		{Application{DSCP, 64, 1}, "DSCP"},
	} {
		if got := field(CheckApplications([]Application{c.a})); got != c.field {
			t.Errorf("%v: %q is wrong, want %q", c.a, got, c.field)
		}
	}
	if got := field(CheckApplications(make([]Application, MostApplications+1))); got != "applications" {
		t.Errorf("too many: %q is wrong", got)
	}
}

// TestStrings: what is configured is shown as it is written.
func TestStrings(t *testing.T) {
	for got, want := range map[string]string{
		FormatPriorities(0): "none", FormatPriorities(0x28): "3,5", Application{Port, 4791, 3}.String(): "port:4791=3",
		Application{EtherType, 0x8915, 5}.String(): "ethertype:0x8915=5", FromPeer.String(): "peer", Enhanced.String(): "ets",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for s, name := range selectorNames {
		if got, err := ParseSelector(name); got != s || err != nil {
			t.Errorf("%q is %v, %v", name, got, err)
		}
	}
	if _, err := ParseSelector("sctp"); field(err) != "selector" {
		t.Error(err)
	}
	table := []Application{{Port, 2, 1}, {EtherType, 9, 1}, {Port, 1, 2}, {Port, 1, 1}}
	if Sort(table); table[0].Selector != EtherType || table[1] != (Application{Port, 1, 1}) || table[3].Protocol != 2 {
		t.Errorf("%v", table)
	}
}
