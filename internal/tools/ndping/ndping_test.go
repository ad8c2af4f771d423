package ndping

import (
	"bytes"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

func call(p Program, line string) (o options, status int, done bool, stderr string) {
	var out, errs bytes.Buffer
	o, status, done = p.parse(tool.Env{Name: p.Name(), Args: strings.Fields(line), Stdout: &out, Stderr: &errs})
	return o, status, done, errs.String()
}

func TestArguments(t *testing.T) {
	o, _, done, stderr := call(rping, "-c -r -b -n 3 -q 7 -l file 127.9.0.1:9")
	if done || o.server || !o.read || !o.blocking || o.sge != 3 || o.pipeline != 7 || o.log != "file" || o.at.String() != "127.9.0.1:9" {
		t.Errorf("the client's options are read as %+v (%s)", o, stderr)
	}
	o, _, done, stderr = call(pingPong, "-s -p ::1")
	if done || !o.server || o.blocking || o.pipeline != 1 || o.at.String() != "[::1]:54325" {
		t.Errorf("the server's options are read as %+v (%s)", o, stderr)
	}
	for _, c := range []struct {
		p          Program
		line, want string
	}{
		{ping, "127.9.0.1", "allowed: one of -s (server) and -c (client)"},
		{ping, "-s -c 127.9.0.1", "allowed: one of -s (server) and -c (client)"},
		{ping, "-s -b -p 127.9.0.1", "-b and -p exclude each other"},
		{ping, "-s", "0 arguments; allowed: one"},
		{ping, "-s host", "allowed: an address with an optional port"},
		{ping, "-s 127.9.0.1 127.9.0.2", "2 arguments; allowed: one"},
		{ping, "-s -n 17 127.9.0.1", "allowed: a number from 1 to 16"},
		{ping, "-s -q 0 127.9.0.1", "allowed: a number from 1 to 1024"},
		{pingPong, "-s -q 2 127.9.0.1", "not defined: -q"},
		{rping, "-c 127.9.0.1", "allowed: one of -w (write) and -r (read)"},
		{rping, "-c -w -r 127.9.0.1", "allowed: one of -w (write) and -r (read)"},
		{rping, "-s -w 127.9.0.1", "-w and -r are the client's"},
	} {
		_, status, done, stderr := call(c.p, c.line)
		if !done || status != tool.Usage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s %s: status %d, %q, want %q", c.p.Name(), c.line, status, stderr, c.want)
		}
	}
}

func TestHello(t *testing.T) {
	for _, p := range Programs {
		h := hello{p, 0x0102030405060708, 0x11121314, maxSize}
		got, err := p.decode(append(h.encode(), make([]byte, 32)...))
		if err != nil || got != h {
			t.Errorf("%s: got %+v, %v; want %+v", p.Name(), got, err, h)
		}
		for _, other := range Programs {
			if _, err := other.decode(h.encode()); (err == nil) != (other == p) {
				t.Errorf("%s reads the hello of %s: %v, want an error unless they are the same", other.Name(), p.Name(), err)
			}
		}
	}
	if _, err := ping.decode(hello{ping, 1, 2, 100}.encode()); err == nil {
		t.Error("too little memory was accepted")
	}
}

func FuzzHello(f *testing.F) {
	f.Add(hello{ping, 1, 2, maxSize}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := ping.decode(b); err == nil && (h.program != ping || h.length < maxSize) {
			t.Errorf("a hello is accepted with another program or too little memory: %+v", h)
		}
	})
}
