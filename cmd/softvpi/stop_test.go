package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// A server that is stopped while it waits for a client exits with status 0 and prints nothing.
func TestStoppedServersEndQuietly(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for _, args := range [][]string{
		{"nd_send_bw", "-S", p.first}, {"nd_rping", "-s", "-a", p.first}, {"nd_rping", "-s", "-P", "-a", p.first},
		{"ndping", "-s", p.first}, {"ndcat", "-s", p.first, "--mode", "embedded"},
	} {
		s := p.spawn(t, args...)
		if args[0] == "ndcat" {
			waitFor(t, s, "waiting")
		} else {
			s.until(t, p.first)
		}
		s.cmd.Process.Signal(syscall.SIGTERM)
		code, _, errs := s.wait(t)
		if errs = strings.TrimPrefix(errs, "ndcat: waiting"); code != 0 || strings.Contains(errs, "ndcat: ") || args[0] != "ndcat" &&
			errs != "" {
			t.Errorf("%q: status %d, %q", args, code, errs)
		}
	}
}

// A command that the user stops while it waits prints nothing else.
func TestStoppedCommandsSaySo(t *testing.T) {
	t.Setenv(paths.SocketVariable, filepath.Join(t.TempDir(), "none.sock"))
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs bytes.Buffer
	status := run(ctx, tool.Env{Name: "softvpi", Args: []string{"wait"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if status != tool.Failure || out.String() != "" || errs.String() != "softvpi: stopped\n" {
		t.Errorf("status %d, %q, %q", status, out.String(), errs.String())
	}
}

// A run that the user stops prints the results up to then.
func TestStoppedRunsReportWhatTheyHave(t *testing.T) {
	systemtest.Mark(t)
	modes(t, func(t *testing.T, p place) {
		for _, name := range []string{"nd_send_bw", "nd_write_lat"} {
			s := p.spawn(t, name, "-S", p.first, "--json")
			waitListening(t, s)
			c := p.spawn(t, name, "-C", p.first, "-D", "50", "-s", "64")
			c.until(t, "CPU Util.") // the tools are connected
			c.cmd.Process.Signal(syscall.SIGTERM)
			if code, out, errs := c.wait(t); code != 0 || strings.Count(out, "%\n") != 1 ||
				!strings.Contains(errs, "stopped; the results") {
				t.Errorf("%s: client: status %d, %s%s", name, code, out, errs)
			}
			code, out, errs := s.wait(t)
			var r ndperf.Report
			if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Results) != 1 || r.Results[0].Server.Seconds > 40 {
				t.Errorf("%s: server: status %d, %v, %s%s", name, code, err, out, errs)
			}
		}
	})
}

// Without a driver, a side that only waits is not told that its peer has gone.
func TestAPeerThatIsKilledIsMissed(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for _, c := range []struct {
		ready          string
		server, client []string
		killed         string
	}{
		{"#qp", []string{"nd_write_bw", "-S", p.first}, []string{"nd_write_bw", "-C", p.first, "-D", "50"}, "client"},
		{"listening", []string{"nd_rping", "-s", "-a", p.first, "-v"}, []string{"nd_rping", "-c", "-a", p.first, "-v"}, "server"},
	} {
		s := p.spawn(t, c.server...)
		s.until(t, c.ready)
		x := p.spawn(t, c.client...)
		if c.killed == "client" {
			x.until(t, "#qp")
			s, x = x, s
		} else {
			x.until(t, "ping")
		}
		s.cmd.Process.Kill()
		if code, _, errs := x.wait(t); code != 1 || !strings.Contains(errs, "ND_IO_TIMEOUT") {
			t.Errorf("%q, %s killed: status %d, %q", c.client, c.killed, code, errs)
		}
	}
}

func TestWrongNamesAreBadArguments(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	p.up(t, "--skip-self-check")
	for _, args := range [][]string{
		{"link", "set", "Ethernet 7", "loss=1%"}, {"link", "show", "Ethernet 7"}, {"adapter", "disable", "Ethernet 7"},
		{"link", "set", "Ethernet 1", "path=there"},
	} {
		code, _, errs := p.run(t, args...)
		if code != 2 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "allowed: ") {
			t.Errorf("%q: status %d, %q", args, code, errs)
		}
	}
}
