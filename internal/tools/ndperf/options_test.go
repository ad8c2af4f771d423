package ndperf

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

func parseLine(test Test, line string) (o options, status int, done bool, stdout, stderr string) {
	var out, errs bytes.Buffer
	o, status, done = test.parse(tool.Env{Name: test.Name(), Args: strings.Fields(line), Stdout: &out, Stderr: &errs})
	return o, status, done, out.String(), errs.String()
}

func TestArguments(t *testing.T) {
	bw, lat := Test{Send, Bandwidth}, Test{Write, Latency}
	for _, c := range []struct {
		test  Test
		line  string
		check func(o options) bool
	}{
		{bw, "-S 127.9.0.1", func(o options) bool {
			return o.Server && o.Addr.String() == "127.9.0.1" && o.Port == 6830 && o.Size == 65536 && o.Iterations == 1000 && o.QPs == 1 &&
				o.Depth == 128
		}},
		{bw, "-C fd00::1 -p 7 -s 64 -n 5 -q 3", func(o options) bool {
			return !o.Server && o.Addr.String() == "fd00::1" && o.Port == 7 && o.Size == 64 && o.Iterations == 5 && o.QPs == 3
		}},
		{bw, "-C 127.9.0.1 -D 1.5 -e", func(o options) bool {
			return o.Duration == 1500*time.Millisecond && o.Iterations == 0 &&
				o.Events
		}},
		{bw, "-C 127.9.0.1 -a", func(o options) bool { return len(o.sizes()) == 23 && o.sizes()[22] == 4<<20 }},
		{bw, "-C 127.9.0.1", func(o options) bool { return o.Cycle == 16<<20 && o.words() == "-s 65536 -n 1000 -q 1" }},
		{bw, "-C 127.9.0.1 -s 1048576 --cycle 1048576", func(o options) bool {
			return o.Cycle == 1<<20 && o.words() == "-s 1048576 -n 1000 -q 1 --cycle 1048576"
		}},
		{bw, "-S 127.9.0.1 --cycle 4096", func(o options) bool { return o.asked() == "-s 65536 -n 1000 -q 1 --cycle 4096" }},
		{lat, "-C 127.9.0.1", func(o options) bool { return o.Cycle == 0 && o.words() == "-s 8 -n 1000 -q 1" }},
		{bw, "-C 127.9.0.1 -Q 200", func(o options) bool { return o.Depth == 200 }},
		{bw, "-C 127.9.0.1 -i 64 -l 8 -t 16 --json --min-bw 2.5 -L 127.9.0.2", func(o options) bool {
			return o.Inline == 64 && o.List == 8 && o.Depth == 16 && o.JSON && o.MinBW == 2.5 && o.mode.Local().String() == "127.9.0.2"
		}},
		{lat, "-C [::1] --max-lat 20", func(o options) bool { return o.Size == 8 && o.MaxLat == 20 && o.Depth == 16 && o.Addr.Is6() }},
	} {
		o, status, done, _, stderr := parseLine(c.test, c.line)
		if done || status != tool.Success || !c.check(o) {
			t.Errorf("%s %s: status %d, %q, options %+v", c.test.Name(), c.line, status, stderr, o)
		}
	}
}

func TestWrongArgumentsGetOneLineAndStatus2(t *testing.T) {
	bw, lat, read := Test{Send, Bandwidth}, Test{Send, Latency}, Test{Read, Bandwidth}
	for _, c := range []struct {
		test       Test
		line, want string
	}{
		{bw, "", "-S or -C is missing"},
		{bw, "-C", "flag needs an argument: -C"},
		{bw, "-C server", "-C: \"server\": allowed: an IPv4 or IPv6 address"},
		{bw, "-C 0.0.0.0", "allowed: an IPv4 or IPv6 address"},
		{bw, "-C 127.9.0.1 -S 127.9.0.1", "allowed: one of -S and -C"},
		{bw, "-C 127.9.0.1 -s 0", "-s: allowed: a number from 1 to 4194304"},
		{bw, "-C 127.9.0.1 -s 4194305", "-s: allowed"},
		{bw, "-C 127.9.0.1 -s 1k", "-s: allowed"},
		{bw, "-C 127.9.0.1 -n -1", "-n: allowed: a number from 1 to 1000000000"},
		{bw, "-C 127.9.0.1 -n 12x", "-n: allowed"},
		{bw, "-C 127.9.0.1 -n 99999999999999999999", "-n: allowed"},
		{bw, "-C 127.9.0.1 -D 0", "-D: allowed: seconds from 0.001 to 86400"},
		{bw, "-C 127.9.0.1 -q 0", "-q: allowed: a number from 1 to 16384"},
		{bw, "-C 127.9.0.1 -p 65536", "-p: allowed: a port from 1 to 65535"},
		{bw, "-C 127.9.0.1 -a -s 5", "-a and -s exclude each other"},
		{bw, "-C 127.9.0.1 -n 5 -D 5", "-n and -D exclude each other"},
		{bw, "-C 127.9.0.1 -e", "-e needs -D"},
		{bw, "-S 127.9.0.1 -e -D 1", "-e is not for a server"},
		{bw, "-S 127.9.0.1 -L 127.9.0.2", "-L is not for a server"},
		{bw, "-C 127.9.0.1 -L ::1", "both IPv4 or both IPv6"},
		{bw, "-C 127.9.0.1 -t 4 -Q 5", "-Q 5 is more than -t 4"},
		{bw, "-C 127.9.0.1 --min-bw -1", "--min-bw: allowed: a number above 0"},
		{bw, "-C 127.9.0.1 --min-bw NaN", "--min-bw: allowed"},
		{bw, "-C 127.9.0.1 --max-lat 5", "not defined: --max-lat; allowed: --cycle --json --memory --min-bw"},
		{bw, "-C 127.9.0.1 --memory gpu", "-memory: allowed: api, own"},
		{bw, "-C 127.9.0.1 --mode remote", "-mode: allowed: auto, attached, embedded"},
		{bw, "-C 127.9.0.1 -z", "not defined: -z; allowed: "},
		{bw, "-C 127.9.0.1 extra", "unexpected argument \"extra\""},
		{bw, "-C 127.9.0.1 --cycle 0", "-cycle: allowed: a number from 1 to 268435456"},
		{bw, "-C 127.9.0.1 --cycle 268435457", "-cycle: allowed"},
		{bw, "-C 127.9.0.1 --cycle 1M", "-cycle: allowed"},
		{lat, "-C 127.9.0.1 --cycle 4096", "not defined: --cycle"},
		{lat, "-C 127.9.0.1 -q 2", "not defined: -q"},
		{read, "-C 127.9.0.1 -i 8", "-i 8: reads carry no data"},
	} {
		_, status, done, stdout, stderr := parseLine(c.test, c.line)
		want := strings.ReplaceAll(c.want, "--min-bw: ", "-min-bw: ")
		if !done || status != tool.Usage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s %s: status %d, %q; want one line with %q", c.test.Name(), c.line, status, stderr, want)
		}
	}
}

func TestHelpIsNoError(t *testing.T) {
	for _, test := range Tests {
		for _, line := range []string{"-h", "--help"} {
			_, status, done, stdout, stderr := parseLine(test, line)
			if !done || status != tool.Success || stderr != "" || !strings.Contains(stdout, "usage: "+test.Name()) ||
				!strings.Contains(stdout, "-D seconds") {
				t.Errorf("%s %s: status %d, %q, %q; want the usage and no error", test.Name(), line, status, stdout, stderr)
			}
		}
	}
}
