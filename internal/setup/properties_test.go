package setup

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestParse_LinesOfTheManuals: what the manuals' command lines have behind the installer's name means what they say (WinOF 5.50, 3.3 and
// 3.4; WinOF-2 1.21, 2.3).
func TestParse_LinesOfTheManuals(t *testing.T) {
	with := func(change func(*Properties)) Properties {
		p := Defaults()
		if change != nil {
			change(&p)
		}
		return p
	}
	for _, c := range []struct {
		line  []string // as a shell hands it over
		want  Properties
		words Words
	}{
		{[]string{"/S", "/v/qn"}, with(nil), Words{}},
		{[]string{"/v/l*vx setup.log"}, with(nil), Words{Log: "setup.log"}},
		{[]string{"/S", "/v”/qn”", "/v/l*vx setup.log"}, with(nil), Words{Log: "setup.log"}},
		{[]string{"/v MT_SKIPFWUPGRD=1"}, with(func(p *Properties) { p.SkipFirmware = true }), Words{}},
		{[]string{"/v MT_WMI=1"}, with(nil), Words{}},
		{[]string{"/v /MT_WMI=1"}, with(nil), Words{}},
		{[]string{"/v MT_RESTORECONF=1"}, with(nil), Words{}},
		{[]string{"/v /MMT_DRIVER_LOAD_TIMEOUT=30"}, with(func(p *Properties) { p.LoadTimeout, p.LoadDriver = 30*time.Second, true }), Words{}},
		{[]string{"/vPERFCHECK=0", "/vPERFCHECK=0"}, with(nil), Words{}},
		{[]string{"/vMT_NDPROPERTY=1"}, with(nil), Words{}},
		{[]string{"/x", "/v/qn"}, with(nil), Words{Remove: true}},
		{[]string{"MT_WMI=False", "MT_DRIVERS_ONLY=TRUE"}, with(func(p *Properties) { p.WMI, p.DriversOnly = false, true }), Words{}},
		{[]string{"PERFCHECK=1"}, with(func(p *Properties) { p.PerfCheck, p.LoadDriver = true, true }), Words{}},
	} {
		p := Defaults()
		words, err := p.Parse(c.line)
		if err != nil || p != c.want || words != c.words {
			t.Errorf("%q: %+v %+v, %v; want %+v %+v", c.line, p, words, err, c.want, c.words)
		}
	}
}

// TestParse_Refusals: a word or a value that has no meaning here is refused by its name, with what is allowed.
func TestParse_Refusals(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"/a", "tar extracts"}, {"/forcerestart", "nothing here needs that"}, {"/h", "softvpi setup --help"}, {"/qb", `"/qb"; allowed: /S`},
		{"/l*vx", "/l*vx FILE"}, {"MT_WMI=2", `MT_WMI is "2"; allowed: 0 1 False True`}, {"MT_WMI=", `MT_WMI is " "`},
		{"MT_NDPROPERTY=0", "part of every program"}, {"MT_DRIVER_LOAD_TIMEOUT=0", "seconds from 1 to 3600"},
		{"MT_DRIVER_LOAD_TIMEOUT=99999999999999999999", "seconds from 1 to 3600"}, {"ADDLOCAL=ALL", "no property ADDLOCAL; allowed: MT_SKIPFWUPGRD"},
	} {
		p := Defaults()
		if _, err := p.Parse([]string{c.line}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.line, err, c.want)
		}
	}
}

// TestFromEnvironment: every property is read, and a wrong one is an error.
func TestFromEnvironment(t *testing.T) {
	for _, n := range Names {
		p := Defaults()
		err := p.FromEnvironment(func(name string) (string, bool) { return "none", name == n })
		var wrong *PropertyError
		if !errors.As(err, &wrong) || wrong.Name != n {
			t.Errorf("%s: %v", n, err)
		}
	}
	p := Defaults()
	if err := p.FromEnvironment(func(string) (string, bool) { return "", false }); err != nil || p != Defaults() {
		t.Errorf("%+v, %v", p, err)
	}
}
