package tool

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

type values struct {
	n    int
	f    float64
	d    time.Duration
	addr netip.Addr
	port uint16
	on   bool
}

func parse(line string) (v values, status int, done bool, stdout, stderr string) {
	var out, errs bytes.Buffer
	f := NewFlags(Env{Name: "tester", Args: strings.Fields(line), Stdout: &out, Stderr: &errs}, "usage: tester [options]")
	f.Int(&v.n, "n", 5, 1, 10, "of things")
	f.Positive(&v.f, "limit", "of Gb/s")
	f.Seconds(&v.d, "D", "to run")
	f.Addr(&v.addr, "a", "of the server")
	f.Port(&v.port, "p", 77, "of the server")
	f.BoolVar(&v.on, "v", false, "say more")
	f.String("file", "", "`name` of a file")
	status, done = f.Parse()
	if !done {
		if err := f.NoArguments(); err != nil {
			return v, f.Refuse(err), true, out.String(), errs.String()
		}
	}
	return v, status, done, out.String(), errs.String()
}

func TestOptions(t *testing.T) {
	for line, want := range map[string]values{
		"": {n: 5, port: 77},
		"-n 10 -limit 2.5 --D 0.25 -a [fd00::1] -p 65535 -v": {10, 2.5, 250 * time.Millisecond, netip.MustParseAddr("fd00::1"), 65535,
			true},
		"--limit=1 -- ":       {n: 5, port: 77, f: 1},
		"-a ::ffff:127.9.0.1": {n: 5, port: 77, addr: netip.MustParseAddr("127.9.0.1")},
	} {
		v, _, done, _, stderr := parse(line)
		if done || v != want {
			t.Errorf("%q is read as %+v (%s), want %+v", line, v, stderr, want)
		}
	}
}

func TestOptionsMayStandBehindOtherArguments(t *testing.T) {
	for line, want := range map[string]struct {
		n    int
		rest []string
	}{
		"-n 2 here":         {2, []string{"here"}},
		"here -n 2":         {2, []string{"here"}},
		"here -n 2 there":   {2, []string{"here", "there"}},
		"here -- -n 2":      {5, []string{"here", "-n", "2"}},
		"-n 3 -- -n -- 2 -": {3, []string{"-n", "--", "2", "-"}},
	} {
		f := NewFlags(Env{Name: "tester", Args: strings.Fields(line)}, "")
		var n int
		f.Int(&n, "n", 5, 1, 10, "of things")
		if _, done := f.Parse(); done || n != want.n || f.NArg() != len(want.rest) || f.Arg(-1)+f.Arg(f.NArg()) != "" {
			t.Errorf("%q: n is %d with %d arguments, want %+v", line, n, f.NArg(), want)
			continue
		}
		for i, s := range want.rest {
			if f.Arg(i) != s {
				t.Errorf("%q: argument %d is %q, want %q", line, i, f.Arg(i), s)
			}
		}
	}
}

func TestEnd(t *testing.T) {
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for _, c := range []struct {
		ctx    context.Context
		err    error
		status int
		says   string
	}{
		{stopped, nil, Success, ""},
		{stopped, errors.Join(ErrIdle), Success, ""},
		{stopped, errors.New("canceled"), Failure, "tester: stopped\n"},
		{context.Background(), errors.Join(errors.New("one"), errors.New("two")), Failure, "tester: one; two\n"},
	} {
		var errs bytes.Buffer
		if got := (Env{Name: "tester", Stderr: &errs}).End(c.ctx, c.err); got != c.status || errs.String() != c.says {
			t.Errorf("%v: status %d and %q, want %d and %q", c.err, got, errs.String(), c.status, c.says)
		}
	}
}

func TestWrongOptionsNameWhatIsAllowed(t *testing.T) {
	for line, want := range map[string]string{
		"-n 0":         `invalid value "0" for flag -n: allowed: a number from 1 to 10`,
		"-n 1e3":       "allowed: a number from 1 to 10",
		"-limit 0":     "for flag --limit: allowed: a number above 0",
		"-limit Inf":   "allowed: a number above 0",
		"-D 86401":     "allowed: seconds from 0.001 to 86400",
		"-D NaN":       "allowed: seconds",
		"-a host":      "allowed: an IPv4 or IPv6 address",
		"-a ::":        "allowed: an IPv4 or IPv6 address",
		"-a ff02::1":   "allowed: an IPv4 or IPv6 address",
		"-p -1":        "allowed: a port from 1 to 65535",
		"-x":           "not defined: -x; allowed: --file --limit -D -a -n -p -v",
		"-n":           "needs an argument: -n; it is the number of things (1 to 10, default 5)",
		"-v=perhaps":   "invalid boolean value",
		"---n 3":       "bad flag syntax",
		"-file=":       `--file is ""; it is the name of a file`,
		"something -v": `unexpected argument "something"; allowed: --file --limit -D`,
	} {
		_, status, done, stdout, stderr := parse(line)
		if !done || status != Usage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "tester: ") ||
			!strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, %q; want %q", line, status, stderr, want)
		}
	}
}

func TestHelp(t *testing.T) {
	_, status, done, stdout, stderr := parse("-h")
	if !done || status != Success || stderr != "" || !strings.Contains(stdout, "usage: tester") || !strings.Contains(stdout, "-n number") {
		t.Errorf("status %d, %q, %q; want 0 with the usage and the options", status, stdout, stderr)
	}
}

func TestEndpoints(t *testing.T) {
	for in, want := range map[string]string{
		"127.9.0.1": "127.9.0.1:54325", "127.9.0.1:7": "127.9.0.1:7", "fd00::1": "[fd00::1]:54325", "[fd00::1]": "[fd00::1]:54325",
		"[fd00::1]:9": "[fd00::1]:9",
	} {
		if got, err := ParseEndpoint(in, 54325); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "host", "host:7", "127.9.0.1:0", "127.9.0.1:70000", "0.0.0.0", "0.0.0.0:7", "[::]:7", "224.0.0.1:7",
		"127.9.0.1:"} {
		if got, err := ParseEndpoint(bad, 54325); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%q is read as %v, %v; want an error with \"allowed\"", bad, got, err)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	f.Add("127.9.0.1:7")
	f.Add("[fd00::1%eth0]:9")
	f.Fuzz(func(t *testing.T, s string) {
		if at, err := ParseEndpoint(s, 1); err == nil && (!at.IsValid() || at.Port() == 0 || at.Addr().IsUnspecified()) {
			t.Errorf("%q is read as %v, which is no endpoint", s, at)
		}
	})
}
