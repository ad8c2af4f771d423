package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestFewDescriptors: a driver that may open 64 files serves five programs, and one that may open 128 eight. Those
// connections for which it has too few descriptors stay on its path, and it says so. Programs beyond that are turned away
// with the reason, and nobody who is attached loses the driver.
func TestFewDescriptors(t *testing.T) {
	systemtest.Mark(t)
	for _, c := range []struct {
		files, clients int
		turnsAway      bool
	}{{64, 4, false}, {128, 7, false}, {64, 12, true}} {
		t.Run(fmt.Sprintf("%d files, %d clients", c.files, c.clients),
			func(t *testing.T) { fewDescriptors(t, c.files, c.clients, c.turnsAway) })
	}
}

func fewDescriptors(t *testing.T, files, clients int, turnsAway bool) {
	p := newPlace(t)
	few := p
	few.start = func(c *exec.Cmd) error {
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)}, c.Args...)
		return c.Start()
	}
	d := few.spawn(t, "up", "--skip-self-check", "--adapter", "Ethernet 1="+p.first, "--adapter", "Ethernet 2="+p.second)
	d.until(t, "listening")
	server := p.spawn(t, "nd_rping", "-s", "-P", "-a", p.first)
	server.until(t, p.first)
	var all []*process
	for range clients {
		all = append(all, p.spawn(t, "nd_rping", "-c", "-V", "-a", p.first, "-C", "5000"))
	}
	served := 0
	for i, c := range all {
		switch code, out, errs := c.wait(t); {
		case code == 0:
			served++
		case !turnsAway || !strings.Contains(errs, "INSUFFICIENT_RESOURCES") || strings.Contains(errs, "the driver ended"):
			t.Errorf("client %d: status %d, %s%s", i, code, out, errs)
		}
	}
	if served == 0 {
		t.Error("no client was served")
	}
	var s driver.Status // the driver may notice the end of the last client later than the test
	if !await.Until(func() bool {
		s = p.status(t)
		return len(s.Programs) == 1 && s.Held.Descriptors.Used != 0 && s.Held.Descriptors.Used == s.Programs[0].Descriptors &&
			s.Held.Descriptors.PerProgram == uint64(max(16, files/4))
	}) {
		t.Errorf("programs %+v, held %+v", s.Programs, s.Held)
	}
	_ = server.cmd.Process.Signal(syscall.SIGTERM)
	if code, _, errs := server.wait(t); code != 0 || errs != "" {
		t.Errorf("the server: status %d, %s", code, errs)
	}
	await.Eventually(t, "the driver notices that the server has ended", func() bool { return len(p.status(t).Programs) == 0 })
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_, _, errs := d.wait(t)
	if scarce := strings.Contains(errs, "driver's path") || strings.Contains(errs, "no direct path"); files == 64 && !scarce {
		t.Errorf("the driver does not say that connections stay on its path: %s", errs)
	}
	if !turnsAway && strings.Contains(errs, "program disconnected") {
		t.Errorf("the driver says %s", errs)
	}
}
