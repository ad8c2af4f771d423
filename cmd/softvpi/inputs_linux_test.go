package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/umad/server"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// onFabric makes the tools of this process run on a fabric of four adapters, which is not managed.
func onFabric(t *testing.T) {
	t.Helper()
	top, err := topology.Star(4, topology.Rate{Width: mad.WidthOf(4), Speed: mad.SpeedQDR})
	if err != nil {
		t.Fatal(err)
	}
	r := live.New(fabric.New(top, rand.Uint64), live.Options{})
	d, err := server.Listen(filepath.Join(t.TempDir(), "s"), r)
	if err != nil {
		t.Fatal(err)
	}
	leave := r.Attend(d)
	t.Cleanup(func() {
		leave()
		d.Close()
		r.Close()
	})
	t.Setenv(socket.Variable, d.Path())
}

// TestInputFiles: what every tool and configuration reads from a file is a regular one of bounded size: a device that never
// ends, a pipe that nobody writes to and a file that is too large are refused at once, by name.
func TestInputFiles(t *testing.T) {
	systemtest.Mark(t)
	onFabric(t)
	dir := t.TempDir()
	t.Setenv("SOFTVPI_STATE", filepath.Join(dir, "state"))
	t.Setenv("IBDIAG_CONFIG_PATH", dir)
	t.Setenv("OSM_CACHE_DIR", dir)
	t.Setenv("OSM_TMP_DIR", dir)
	t.Setenv(paths.SocketVariable, filepath.Join(dir, "none.sock"))
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	config, script := filepath.Join(dir, "driver.json"), filepath.Join(dir, "net")
	if err := unix.Mkfifo(pipe, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 8<<30); err != nil { // without a byte on the disk
		t.Skip(err)
	}
	if err := os.WriteFile(script, []byte("Ca 1 \"H-1\"\n[1] \"S-1\"[1]\nSwitch 4 \"S-1\"\n[1] \"H-1\"[1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config string // of the driver, with FILE
		args   []string
	}{
		{"", []string{"reg", "import", "FILE"}},
		{"", []string{"up", "--config", "FILE"}},
		{`{"fabric": {"netlist": "FILE"}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", config}},
		{`{"fabric": {"connect": "udp://127.0.0.1", "key": "FILE"}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", config}},
		{`{"subnet_manager": {"partitions": "FILE"}, "adapters": [{"link": "cable"}]}`, []string{"up", "--config", config}},
		{"", []string{"fabric", "run", "FILE"}},
		{"", []string{"fabric", "run", "--cables", "127.0.0.1:7069", "--cable-key", "FILE", script}},
		{"", []string{"opensm", "-F", "FILE"}},
		{"", []string{"opensm", "-P", "FILE"}},
		{"", []string{"opensm", "-a", "FILE"}},
		{"", []string{"opensm", "--prefix_routes_file", "FILE"}},
		{"", []string{"opensm", "-Q", "-Y", "FILE"}},
		{"", []string{"counters", "watch", "-cf", "FILE"}},
		{"", []string{"smpquery", "-z", "FILE", "nodeinfo", "1"}},
		{"", []string{"smpquery", "--node-name-map", "FILE", "nodeinfo", "1"}},
		{"", []string{"saquery", "--node-name-map", "FILE"}},
		{"", []string{"ibroute", "--node-name-map", "FILE", "1"}},
		{"", []string{"ibnetdiscover", "--node-name-map", "FILE"}},
		{"", []string{"ibnetdiscover", "--load-cache", "FILE"}},
		{"", []string{"ibnetdiscover", "--diff", "FILE"}},
		{"", []string{"iblinkinfo", "--load-cache", "FILE"}},
		{"", []string{"iblinkinfo", "--diff", "FILE"}},
		{"", []string{"ibqueryerrors", "--threshold-file", "FILE"}},
		{"", []string{"ibqueryerrors", "--load-cache", "FILE"}},
		{"", []string{"ibclearerrors", "FILE"}},
		{"", []string{"ibtracert", "--ports-file", "FILE"}},
		{"", []string{"ibcacheedit", "FILE", filepath.Join(dir, "out")}},
		{"", []string{"ibdiagnet", "-t", "FILE"}},
		{"", []string{"verbs", "doctor", "FILE"}},
	} {
		for _, file := range []string{"/dev/zero", pipe, large} {
			if c.args[0] == "verbs" && file == "/dev/zero" {
				continue // no program: it may not be executed
			}
			var args []string
			for _, a := range c.args {
				args = append(args, strings.ReplaceAll(a, "FILE", file))
			}
			if err := os.WriteFile(config, []byte(strings.ReplaceAll(c.config, "FILE", file)), 0o600); err != nil {
				t.Fatal(err)
			}
			type result struct {
				status         int
				stdout, stderr string
			}
			done := make(chan result, 1)
			go func() {
				status, out, errs := call(t, "softvpi", args...)
				done <- result{status, out, errs}
			}()
			select {
			case r := <-done:
				want := map[string]string{"/dev/zero": "/dev/zero is a device", pipe: pipe + " is a pipe",
					large: large + " has more than "}[file]
				if text := r.stdout + r.stderr; r.status == 0 || !strings.Contains(text, want) || !strings.Contains(text, "allowed: ") {
					t.Errorf("%q with %q: status %d, %q; want another than 0 and %q", args, c.config, r.status, text, want)
				}
			case <-time.After(await.Limit):
				t.Fatalf("%q with %q waits for the file", args, c.config)
			}
		}
	}
}

// TestStateThatIsNoFile: a pipe in place of a file in the state directory holds nobody up.
func TestStateThatIsNoFile(t *testing.T) {
	systemtest.Mark(t)
	for _, name := range []string{"registry.db", "driver.lock"} {
		state := t.TempDir()
		if err := unix.Mkfifo(filepath.Join(state, name), 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan string, 1)
		go func() {
			_, _, errs := call(t, "softvpi", "reg", "query", "RoceMaxFrameSize", "--adapter", "none", "--state", state)
			done <- errs
		}()
		select {
		case <-done:
		case <-time.After(await.Limit):
			t.Fatalf("reg waits for %s", name)
		}
	}
}
