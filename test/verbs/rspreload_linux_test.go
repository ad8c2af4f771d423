package verbs

import (
	"path/filepath"
	"strings"
	"testing"
)

// A Python program under librspreload: its sockets have SOCK_CLOEXEC, which rsocket refuses, and are the system's; those
// that it makes without are rsockets.
func TestPreloadedSockets(t *testing.T) {
	b := newBench(t)
	b.need("python3")
	found, err := filepath.Glob("/usr/lib/*/rsocket/librspreload.so")
	if err != nil || len(found) == 0 {
		t.Skip("librspreload is not installed")
	}
	var preload []string
	for _, e := range b.env {
		if rest, ok := strings.CutPrefix(e, "LD_PRELOAD="); ok {
			preload = append(preload, rest)
		}
	}
	env := []string{"LD_PRELOAD=" + strings.Join(append(preload, found[0]), ":")}
	echo, err := filepath.Abs("testdata/echo.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind string
		tcp  bool // the system's sockets carry it
	}{{"socket", true}, {"libc", false}} {
		t.Run(c.kind, func(t *testing.T) {
			b := b.under(t)
			at := port()
			args := func(role string) []string {
				return []string{"python3", echo, c.kind, role, b.addrs[0].String(), at}
			}
			server := b.start(env, args("server")...)
			waitFor(t, server, "listening")
			if tcp := server.listens(at); tcp != c.tcp {
				t.Errorf("the server listens at a TCP port of the system: %t, want %t", tcp, c.tcp)
			}
			if out := b.run(env, args("client")...); !strings.Contains(out, "echoed 200") {
				t.Errorf("%s", out)
			}
			b.succeeded(server)
		})
	}
}
