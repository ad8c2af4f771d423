package program

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
)

// Values are checked in the table itself, those of options that a program adds too, and a wrong line prints nothing but the error.
func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"": "", "-data /d -interval 1h": "", "-man": "",
		"extra":          `unexpected argument "extra"`,
		"-data d":        `-data is "d"; allowed: an absolute path`,
		"-cdi c":         `-cdi is "c"; allowed: an absolute path`,
		"-libraries l":   `-libraries is "l"; allowed: an absolute path`,
		"-socket s":      `-socket is "s"; allowed: an absolute path`,
		"-interval 1ms":  "-interval is 1ms; allowed: 10ms to 1h",
		"-interval 61m":  "-interval is 1h1m0s; allowed: 10ms to 1h",
		"-interval soon": "invalid value",
		"-qps 7":         "flag provided but not defined: -qps",
	} {
		var o Options
		f := o.Flags("p")
		var out bytes.Buffer
		f.SetOutput(&out)
		f.String("data", "/data", "`directory` of it")
		f.String("name", "", "`name` of it")
		err := o.Parse(f, strings.Fields(line))
		if want == "" && (err != nil || o.Log == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) || out.Len() > 0 {
			t.Errorf("%s: %v, %q; want %q", line, err, &out, want)
		}
	}
	var o Options
	f := o.Flags("p")
	var out bytes.Buffer
	f.SetOutput(&out)
	if err := o.Parse(f, []string{"-h"}); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-interval time") {
		t.Errorf("%v, %q", err, &out)
	}
}
