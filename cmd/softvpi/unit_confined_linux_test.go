package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/setup"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestSystemUnit_Runs: the driver of the system's unit, with its options, does what it does by UDP sockets without a capability and without
// the system calls that the unit refuses, which fail here as they do there.
func TestSystemUnit_Runs(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "strace", "setpriv", "systemd-analyze")
	if os.Geteuid() != 0 {
		t.Skip("needs root, without whose capabilities the driver is to run")
	}
	unit := setup.SystemUnit("/usr/bin/softvpi")
	p := newPlace(t)
	confine := func(c *exec.Cmd) {
		refused := "!" + strings.Join(allowedCalls(t, unit), ",")
		c.Args = append([]string{"setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "strace", "-D", "-f", "--seccomp-bpf",
			"-o", filepath.Join(p.dir, "refused"), "-e", "trace=" + refused, "-e", "inject=" + refused + ":error=EPERM", "--", c.Path}, c.Args[1:]...)
		c.Path, c.Err = exec.LookPath("setpriv")
	}
	if out, err := exec.Command("strace", "-D", "true").CombinedOutput(); err != nil {
		t.Skipf("strace cannot trace here: %v, %s", err, out)
	}
	probe := exec.Command("chroot", "/", "true")
	confine(probe)
	if out, err := probe.CombinedOutput(); err == nil || !strings.Contains(string(out), "Operation not permitted") {
		t.Fatalf("a call that the unit refuses is carried out: %v, %s", err, out)
	}
	p.start = func(c *exec.Cmd) error {
		if slices.Contains(c.Args, "up") {
			confine(c)
		}
		return c.Start()
	}
	var options []string // those that say nothing of places
	for words := settings(unit, "ExecStart")[2:]; len(words) > 0; {
		if words[0] == "--socket" || words[0] == "--state" {
			words = words[2:]
			continue
		}
		options, words = append(options, words[0]), words[1:]
	}
	if !slices.Contains(options, "--trace-file") || !slices.Contains(options, "group") {
		t.Fatalf("the options of the unit are %q", options)
	}
	p.up(t, options...)
	p.pair(t, "listening", []string{"nd_rping", "-s", "-a", p.first, "-C", "2"}, []string{"nd_rping", "-c", "-V", "-a", p.first, "-C", "2"})
	for _, command := range [][]string{{"status"}, {"health"}, {"mlx5cmd", "-Dmn", "-Name", "Ethernet 1"}, {"mlxtool", "dbg", "trace", "collect"},
		{"adapter", "restart", "Ethernet 1"}, {"web", "--json"}} {
		if code, out, errs := p.run(t, command...); code != 0 {
			t.Errorf("%q: status %d, %s%s", command, code, out, errs)
		}
	}
}

// allowedCalls returns the system calls that a unit leaves to its processes, as SystemCallFilter= says (systemd.exec(5)): it begins
// as a list of what is allowed, from which those behind ~ are taken. Names that strace does not know are ones that this system has not.
func allowedCalls(t *testing.T, unit string) []string {
	t.Helper()
	out, err := exec.Command("systemd-analyze", "--no-pager", "syscall-filter").Output()
	if err != nil {
		t.Fatal(err)
	}
	sets, set := map[string][]string{}, ""
	for line := range strings.Lines(string(out)) {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "@"):
			set = word
		case word != "" && !strings.HasPrefix(word, "#"):
			sets[set] = append(sets[set], word)
		}
	}
	var each func(name string, do func(call string))
	each = func(name string, do func(call string)) {
		if name[0] != '@' {
			do(name)
			return
		}
		if len(sets[name]) == 0 {
			t.Fatalf("systemd knows no calls of %s", name)
		}
		for _, x := range sets[name] {
			each(x, do)
		}
	}
	allowed := map[string]bool{}
	for line := range strings.Lines(unit) {
		list, ok := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter=")
		if !ok {
			continue
		}
		list, not := strings.CutPrefix(list, "~")
		for _, name := range strings.Fields(list) {
			each(name, func(call string) { allowed["?"+call] = !not })
		}
	}
	maps.DeleteFunc(allowed, func(_ string, in bool) bool { return !in })
	if len(allowed) < 100 {
		t.Fatalf("the unit allows %d calls", len(allowed))
	}
	return slices.Sorted(maps.Keys(allowed))
}
