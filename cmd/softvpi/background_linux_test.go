package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// A driver in the background is up when its command returns, serves until it is told to stop, and has ended when that
// command returns. Its log contains what it printed.
func TestDriverInTheBackground(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	up := []string{"up", "--background", "--adapter", "Ethernet 1=" + p.first, "--adapter", "Ethernet 2=" + p.second}
	status, out, errs := p.run(t, up...)
	t.Cleanup(func() { p.run(t, "down") })
	log := filepath.Join(p.dir, "state", "driver.log")
	if status != tool.Success || errs != "" || !strings.Contains(out, "listening") || !strings.Contains(out,
		"log "+log+"; softvpi down stops it") {
		t.Fatalf("status %d, %s%s", status, out, errs)
	}
	if status, _, errs := p.run(t, "wait", "--active", "--timeout", "0s"); status != tool.Success {
		t.Errorf("wait: status %d, %s", status, errs)
	}
	before := p.status(t).PID
	status, out, errs = p.run(t, up...)
	if status != tool.Failure || out != "" || !strings.Contains(errs, "another driver is running") {
		t.Errorf("a second one: status %d, %s%s", status, out, errs)
	}
	if now := p.status(t).PID; now != before {
		t.Errorf("process %d serves, it was %d", now, before)
	}
	if status, out, errs = p.run(t, "down"); status != tool.Success || out+errs != "" {
		t.Errorf("down: status %d, %s%s", status, out, errs)
	}
	if b, err := os.ReadFile(log); err != nil || !strings.HasSuffix(string(b), "stopping\n") {
		t.Errorf("the log ends otherwise than with its stop: %v\n%s", err, b)
	}
	if status, _, errs = p.run(t, "down"); status != tool.Failure || !strings.Contains(errs, "no driver is running") {
		t.Errorf("down again: status %d, %s", status, errs)
	}
}

// If a driver cannot start in the background, the starting command prints the reason and exits with the driver's own
// status.
func TestBackgroundTellsWhy(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--adapter", "Ethernet 1=192.0.2.77"}, tool.Failure, "address not available"},
		{[]string{"--adapter", "Ethernet 1"}, tool.Usage, `--adapter is "Ethernet 1"`},
		{[]string{"--readers", "all"}, tool.Usage, `readers is "all"`},
		{[]string{"--programs", "all"}, tool.Usage, `programs is "all"`},
		{[]string{"--system-log", "foo"}, tool.Usage, `system log is "foo"`},
	} {
		status, out, errs := p.run(t, append([]string{"up", "--background"}, c.args...)...)
		if status != c.status || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q, %q; want %d, %s", c.args, status, out, errs, c.status, c.want)
		}
	}
}

// A driver that has no disk space for its log still starts, and the starting command exits and says so, as it does when
// the driver fails to start.
func TestBackgroundOnAFullDisk(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	p.env = append(p.env, "TMPDIR="+p.dir)
	p = p.within(t, "--mount", "mount -t tmpfs -o size=64k none "+p.dir+" && { head -c 1M /dev/zero >"+p.dir+"/fill 2>/dev/null; cd "+p.dir+
		` && "$@"; s=$?; [ $s != 0 ] || "$0" down; exit $s; }`)
	status, out, errs := p.run(t, "up", "--background", "--skip-self-check", "--adapter", "Ethernet 1="+p.first)
	if status != tool.Success || errs != "" || !strings.Contains(out, "running ") || !strings.Contains(out, "the disk is full") {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	status, out, errs = p.run(t, "up", "--background", "--adapter", "Ethernet 1=192.0.2.77")
	if status != tool.Failure || out != "" || !strings.Contains(errs, "could not say why") {
		t.Errorf("that does not come up: status %d, %q, %q", status, out, errs)
	}
}

// within makes the place's processes run in a new user namespace and one other namespace of unshare, by a script in
// which "$0" is the program and "$@" its command line.
func (p place) within(t *testing.T, namespace, script string) place {
	t.Helper()
	in := []string{"unshare", "--user", "--map-root-user", namespace, "sh", "-c", script}
	if out, err := exec.Command(in[0], append(in[1:], "true", "true")...).CombinedOutput(); err != nil {
		t.Skipf("needs namespaces: %v %s", err, out)
	}
	p.start = func(c *exec.Cmd) error {
		c.Args = append(append(slices.Clone(in), c.Args[0]), c.Args...)
		c.Path, c.Err = exec.LookPath("unshare")
		return c.Start()
	}
	return p
}

// The loopback interface of a new network namespace is down: the driver says so, and what to do.
func TestLoopbackThatIsDown(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t).within(t, "--net", `"$@"`)
	status, out, errs := p.run(t, "up", "--adapter", "Ethernet 1="+p.first, "--adapter", "Ethernet 2="+p.second)
	if status != tool.Failure || out != "" || !strings.Contains(errs,
		"network unreachable: the loopback interface is down; as root: ip link set lo up\n") {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
}

// softvpi wait returns when the driver is up, or when the time is over.
func TestWait(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	status, out, errs := p.run(t, "wait", "--timeout", "50ms")
	if status != tool.Failure || out != "" || !strings.Contains(errs, "after 50ms: no driver is running at") {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	if status, _, errs := p.run(t, "wait", "--timeout", "soon"); status != tool.Usage || !strings.Contains(errs, "--timeout") {
		t.Errorf("status %d, %q", status, errs)
	}
	w := p.spawn(t, "wait")
	time.Sleep(100 * time.Millisecond) // softvpi wait may or may not have begun: both must succeed
	d := p.spawn(t, "up", "--skip-self-check", "--adapter", "ib0=cable", "--fabric", filepath.Join(p.dir, "nobody"))
	if status, out, errs := w.wait(t); status != tool.Success || out+errs != "" {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	if status, _, errs = p.run(t, "wait", "--active", "--timeout", "50ms"); status != tool.Failure ||
		!strings.Contains(errs, "the port of ib0 is Down") {
		t.Errorf("with a port that is down: status %d, %q", status, errs)
	}
	if status, _, errs = p.run(t, "down"); status != tool.Success {
		t.Errorf("down: status %d, %q", status, errs)
	}
	if status, _, errs := d.wait(t); status != tool.Success {
		t.Errorf("the driver: status %d, %q", status, errs)
	}
}
