package qos

import "testing"

// TestParse: settings read as they are written, and what cannot be names the field.
func TestParse(t *testing.T) {
	for _, text := range []string{"none", "0", "3,5", "0,1,2,3,4,5,6,7"} {
		if set, err := ParsePriorities(text); err != nil || FormatPriorities(set) != text {
			t.Errorf("%q: %q, %v", text, FormatPriorities(set), err)
		}
	}
	for _, text := range []string{"", "8", "3,", "a", "-1", "3;5"} {
		if _, err := ParsePriorities(text); field(err) != "priority" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, c := range [][2]string{{"none", "0:100"}, {"3:1,5:7", "0:40,1:60"}, {"none", "none"}} {
		e, err := ParseClasses(c[0], c[1])
		if a, b := FormatClasses(&e); err != nil || a != c[0] || b != c[1] {
			t.Errorf("%q: %q %q, %v", c, a, b, err)
		}
	}
	for _, c := range [][3]string{
		{"3:8", "0:100", "class of a priority"}, {"8:1", "0:100", "class of a priority"}, {"3:1,3:2", "0:100", "class of a priority"},
		{"3", "0:100", "class of a priority"}, {"none", "0:101", "bandwidth of a class"}, {"none", "0:50", "bandwidths of all classes"},
	} {
		if _, err := ParseClasses(c[0], c[1]); field(err) != c[2] {
			t.Errorf("%q: %v", c, err)
		}
	}
	for _, text := range []string{"none", "3:100,5:300", "0:1000000"} {
		if r, err := ParseRates(text); err != nil || r.String() != text {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "8:1", "3:1000001", "3", "3:-1", "3:1,3:2"} {
		if _, err := ParseRates(text); field(err) != "rate of a class" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"none", "ethertype:0x8915=5,port:4791=3,dscp:46=5"} {
		if table, err := ParseApplications(text); err != nil || FormatApplications(table) != text {
			t.Errorf("%q: %q, %v", text, FormatApplications(table), err)
		}
	}
	for text, want := range map[string]string{
		"": "selector", "sctp:1=1": "selector", "port:70000=1": "application", "port:1": "application", "port:1=9": "priority of port:1=9",
		"dscp:64=1": "DSCP",
	} {
		if _, err := ParseApplications(text); field(err) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
