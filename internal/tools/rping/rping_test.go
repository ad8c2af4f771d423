package rping

import (
	"bytes"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

func TestPatternIsRpings(t *testing.T) {
	for _, c := range []struct {
		n, size int
		want    string
	}{
		{0, 26, "rdma-ping-0: ABCDEFGHIJKL\x00"},
		{1, 26, "rdma-ping-1: BCDEFGHIJKLM\x00"},
		{57, 27, "rdma-ping-57: zABCDEFGHIJK\x00"},
		{58, 27, "rdma-ping-58: ABCDEFGHIJKL\x00"},
	} {
		b := make([]byte, c.size)
		pattern(b, c.n)
		if string(b) != c.want {
			t.Errorf("ping %d: %q, want %q", c.n, b, c.want)
		}
		if err := checkPattern(b); err != nil {
			t.Errorf("ping %d is refused: %v", c.n, err)
		}
	}
	b := make([]byte, 100) // letters run from A to z and start again
	pattern(b, 0)
	if !strings.Contains(string(b), "XYZ[\\]^_`abc") || !strings.Contains(string(b), "xyzABC") {
		t.Errorf("%q, want the letters from A to z, again and again", b)
	}
}

func TestPatternsThatAreNone(t *testing.T) {
	for _, b := range []string{"", "hello", "rdma-ping-x: ABC\x00", "rdma-ping-0: ABD\x00", "rdma-ping--1: ABC\x00"} {
		if err := checkPattern([]byte(b)); err == nil {
			t.Errorf("%q passes the check", b)
		}
	}
}

func TestInfoIsBigEndian16Bytes(t *testing.T) {
	b := make([]byte, infoSize)
	info{address: 0x0102030405060708, token: 0x11121314, size: 100}.put(b)
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 100}
	if !bytes.Equal(b, want) {
		t.Errorf("% x, want % x", b, want)
	}
	got, err := parseInfo(b)
	if err != nil || got != (info{0x0102030405060708, 0x11121314, 100}) {
		t.Errorf("the info comes back as %+v, %v", got, err)
	}
	for _, n := range []int{0, 15, 17} {
		if _, err := parseInfo(make([]byte, n)); err == nil {
			t.Errorf("%d bytes were accepted", n)
		}
	}
}

func TestArguments(t *testing.T) {
	call := func(line string) (options, int, bool, string) {
		var out, errs bytes.Buffer
		o, status, done := parse(tool.Env{Name: "nd_rping", Args: strings.Fields(line), Stdout: &out, Stderr: &errs})
		return o, status, done, errs.String()
	}
	o, _, done, stderr := call("-v -c -a 127.9.0.1 -C 10")
	if done || !o.client || !o.verbose || o.addr.String() != "127.9.0.1" || o.count != 10 || o.port != 7174 || o.size != 100 {
		t.Errorf("the client's options are read as %+v (%s)", o, stderr)
	}
	o, _, done, stderr = call("-s -P -V -d -S 65535 -p 9")
	if done || !o.server || !o.persistent || !o.validate || !o.debug || o.size != 65535 || o.port != 9 || o.addr.IsValid() {
		t.Errorf("the server's options are read as %+v (%s)", o, stderr)
	}
	for line, want := range map[string]string{
		"":                     "allowed: one of -s (server) and -c (client)",
		"-s -c":                "allowed: one of -s (server) and -c (client)",
		"-c":                   "-a is missing",
		"-c -a host":           "allowed: an IPv4 or IPv6 address",
		"-c -a 127.9.0.1 -P":   "-P is not for a client",
		"-s -S 65536":          "allowed: a number from 26 to 65535",
		"-s -S 25":             "allowed: a number from 26 to 65535",
		"-s -C 0":              "allowed: a number from 1 to 2147483647",
		"-s -p 0":              "allowed: a port from 1 to 65535",
		"-s --mode remote":     "allowed: auto, attached, embedded",
		"-s stray":             "unexpected argument \"stray\"",
		"-s -x":                "not defined: -x; allowed: --mode -C -I -P",
		"-c -a 127.9.0.1 -C":   "flag needs an argument: -C",
		"-c -a 127.9.0.1 -v=7": "invalid boolean value",
	} {
		_, status, done, stderr := call(line)
		if !done || status != tool.Usage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q, want %q", line, status, stderr, want)
		}
	}
}

func FuzzCheckPattern(f *testing.F) {
	b := make([]byte, 64)
	pattern(b, 7)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkPattern(b) == nil && b[len(b)-1] != 0 {
			t.Errorf("%q passes the check without a zero at its end", b)
		}
	})
}
