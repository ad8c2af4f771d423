package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
)

// TestFewDescriptors: a driver that may open 64 files serves eight programs. Those connections for which it has too few
// descriptors stay on its path, and it says so. Nobody loses it.
func TestFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	p := newPlace(t)
	few := p
	few.start = func(c *exec.Cmd) error {
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 64 && exec "$0" "$@"`}, c.Args...)
		return c.Start()
	}
	d := few.spawn(t, "up", "--skip-self-check", "--adapter", "Ethernet 1="+p.first, "--adapter", "Ethernet 2="+p.second)
	d.until(t, "listening")
	server := p.spawn(t, "nd_rping", "-s", "-P", "-a", p.first)
	server.until(t, p.first)
	var clients []*process
	for range 7 {
		clients = append(clients, p.spawn(t, "nd_rping", "-c", "-V", "-a", p.first, "-C", "20000"))
	}
	for i, c := range clients {
		if code, out, errs := c.wait(t); code != 0 {
			t.Errorf("client %d: status %d, %s%s", i, code, out, errs)
		}
	}
	_, out, errs := p.run(t, "status", "--json")
	var s driver.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err, errs)
	}
	if len(s.Programs) != 1 || s.Held.Descriptors.Used == 0 || s.Held.Descriptors.Used != s.Programs[0].Descriptors || s.Held.Descriptors.PerProgram != 16 {
		t.Errorf("programs %+v, held %+v", s.Programs, s.Held)
	}
	_ = server.cmd.Process.Signal(syscall.SIGTERM)
	if code, _, errs := server.wait(t); code != 0 || errs != "" {
		t.Errorf("the server: status %d, %s", code, errs)
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_, _, errs = d.wait(t)
	if !strings.Contains(errs, "driver's path") && !strings.Contains(errs, "no direct path") || strings.Contains(errs, "program disconnected") {
		t.Errorf("the driver says %s", errs)
	}
}
