package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/setup"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// settings returns the values of a unit's setting.
func settings(unit, name string) (values []string) {
	for line := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			values = append(values, strings.Fields(value)...)
		}
	}
	return values
}

// startsAgain reports whether systemd starts a service of the unit again that has ended so: systemd.service(5), Restart= and
// RestartPreventExitStatus=, whose names of signals are without SIG or with it.
func startsAgain(unit string, ended syscall.WaitStatus) bool {
	if !slices.Equal(settings(unit, "Restart"), []string{"on-failure"}) {
		return false
	}
	prevented := settings(unit, "RestartPreventExitStatus")
	if ended.Signaled() {
		switch ended.Signal() {
		case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE: // a clean end
			return false
		case syscall.SIGABRT:
			return !slices.Contains(prevented, "SIGABRT") && !slices.Contains(prevented, "ABRT")
		}
		return true
	}
	return ended.ExitStatus() != 0 && !slices.Contains(prevented, strconv.Itoa(ended.ExitStatus()))
}

// TestCrash_IsNoWrongUsage: systemd starts a driver again that a panic has ended, wherever it was, and none whose command line or
// configuration is wrong. The next driver reports the panic, has the traceback in a folder, and keeps the registry; counters begin anew,
// as they do at every start (WinOF 5.50, 4.9.4).
func TestCrash_IsNoWrongUsage(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	file := filepath.Join(p.dir, "config.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unit := setup.Unit("/usr/bin/softvpi")
	for text, args := range map[string][]string{
		`{"fault_injection": "perhaps"}`:    {"up", "--config", file},
		`{"adapters": [{"address": "no"}]}`: {"up", "--config", file},
		`{}`:                                {"up", "--config", file, "--never"},
	} {
		write(text)
		x := p.spawn(t, args...)
		x.wait(t)
		if s := x.cmd.ProcessState.Sys().(syscall.WaitStatus); x.status != 2 || startsAgain(unit, s) {
			t.Errorf("%q with %s: status %d, which systemd starts again: %v", args, text, x.status, startsAgain(unit, s))
		}
	}
	write(`{"fault_injection": true}`)
	d := p.up(t, "--config", file)
	if code, out, errs := p.run(t, "reg", "add", jumboKey, "/v", "*JumboPacket", "/t", "REG_SZ", "/d", "4000", "/f"); code != 0 {
		t.Fatal(code, out, errs)
	}
	for range 3 {
		p.pair(t, "listening", []string{"nd_rping", "-s", "-a", p.first, "-C", "2"}, []string{"nd_rping", "-c", "-a", p.first, "-C", "2"})
	}
	before, made := p.status(t), p.accepted(t)
	asked := p.spawn(t, "dbg", "fault", "Ethernet 1", "crash")
	d.wait(t)
	asked.wait(t) // whether it got an answer is open
	s := d.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !s.Signaled() || s.Signal() != syscall.SIGABRT || !startsAgain(unit, s) {
		t.Fatalf("the driver ends with %v, want SIGABRT, after which systemd starts it again; it says %s", d.cmd.ProcessState, d.errors())
	}
	d = p.up(t, "--config", file)
	const cause = `panic: a fault that was asked for at the adapter "Ethernet 1"`
	if !strings.Contains(d.said(), cause) {
		t.Errorf("the next driver does not report it:\n%s", d.said())
	}
	after := p.status(t)
	if after.Died == nil || after.Died.Cause != cause || after.PID == before.PID {
		t.Fatalf("the status says %+v", after.Died)
	}
	b, err := os.ReadFile(filepath.Join(after.Died.Folder, "traceback_0.log"))
	for _, part := range []string{cause, "driver.(*Driver).InjectFault", "driver.(*healer).run("} {
		if err != nil || !strings.Contains(string(b), part) {
			t.Errorf("the traceback does not have %s: %v\n%s", part, err, b)
		}
	}
	if code, out, errs := p.run(t, "reg", "query", jumboKey, "/v", "*JumboPacket"); code != 0 || !strings.Contains(out, "4000") {
		t.Errorf("the registry: status %d, %s%s", code, out, errs)
	}
	if again := p.accepted(t); again >= made {
		t.Errorf("%d connections of the self-check were accepted, %d with those of programs by the driver before", again, made)
	}
	if code, out, errs := p.run(t, "events", "list"); code != 0 || !strings.Contains(out, cause) || !strings.Contains(out, after.Died.Folder) {
		t.Errorf("the events: status %d, %s%s", code, out, errs)
	}
}

// accepted returns how many connections the driver's adapters have accepted.
func (p place) accepted(t *testing.T) (n int) {
	t.Helper()
	code, out, errs := p.run(t, "counters", "get", "-json", "rdma_activity.accepted_connections")
	var sample struct{ Readings []struct{ Value int } }
	if err := json.Unmarshal([]byte(out), &sample); code != 0 || err != nil || len(sample.Readings) == 0 {
		t.Fatalf("status %d, %v, %s%s", code, err, out, errs)
	}
	for _, c := range sample.Readings {
		n += c.Value
	}
	return n
}

// jumboKey is the registry key of the first adapter.
const jumboKey = `HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\0001`
