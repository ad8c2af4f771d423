package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/setup"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// manager is what systemd is for a service: it opens its sockets, passes them on, and hears what it says.
type manager struct {
	*net.UnixConn
	place
}

// manage makes the processes of a place ones that a manager starts, which watches them for so many microseconds, with sockets at paths.
func manage(t *testing.T, p place, watchdog string, paths ...string) *manager {
	t.Helper()
	m := &manager{place: p}
	notify := filepath.Join(p.dir, "notify")
	var err error
	if m.UnixConn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.UnixConn.Close() })
	var files []*os.File
	for _, path := range paths {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(); f.Close() })
		files = append(files, f)
	}
	m.start = func(c *exec.Cmd) error {
		const script = `LISTEN_PID=$$ WATCHDOG_PID=$$; export LISTEN_PID WATCHDOG_PID; exec "$0" "$@"`
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", script}, c.Args...)
		c.ExtraFiles = files // from descriptor 3 on
		c.Env = append(slices.Clone(c.Env), "NOTIFY_SOCKET="+notify, "WATCHDOG_USEC="+watchdog, "LISTEN_FDS="+string(rune('0'+len(files))))
		return c.Start()
	}
	return m
}

// hears returns the next message that has a state, and those before it.
func (m *manager) hears(t *testing.T, state string) (said, before []string) {
	t.Helper()
	b := make([]byte, 4096)
	if err := m.SetReadDeadline(time.Now().Add(mostWait)); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := m.Read(b)
		if err != nil {
			t.Fatalf("the driver does not say %s: %v; it has said %q", state, err, before)
		}
		if said = strings.Split(string(b[:n]), "\n"); slices.Contains(said, state) {
			return said, before
		}
		before = append(before, said...)
	}
}

// asks asks the driver for its status by a connection made now, whether there is a driver or not, and returns what waits for the answer.
func asks(t *testing.T, socket string) (answer func() string) {
	t.Helper()
	c, err := net.Dial("unix", socket+".admin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte("GET /status HTTP/1.1\r\nHost: driver\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	return func() string {
		if err := c.SetReadDeadline(time.Now().Add(mostWait)); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// TestSupervised: a service manager that has opened the sockets is told when the driver is up and how it is, then again and again that
// its loop answers, and that it stops. Who has connected before is served, and the sockets stay for the next driver.
func TestSupervised(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	socket := filepath.Join(p.dir, "d.sock")
	m := manage(t, p, "4000000", socket, socket+".admin")
	early := asks(t, socket)
	for range 2 {
		d := m.up(t)
		said, before := m.hears(t, "READY=1")
		if all := append(before, said...); !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "STATUS=2 adapters ready") }) {
			t.Errorf("its status is not told: %q", all)
		}
		if out := early(); !strings.Contains(out, "Ethernet 2") {
			t.Errorf("who was there before the driver gets %q", out)
		}
		m.hears(t, "WATCHDOG=1")
		m.hears(t, "WATCHDOG=1")
		p.pair(t, "listening", []string{"nd_rping", "-s", "-a", p.first, "-C", "2"}, []string{"nd_rping", "-c", "-a", p.first, "-C", "2"})
		if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		m.hears(t, "STOPPING=1")
		if code, _, errs := d.wait(t); code != 0 {
			t.Errorf("status %d, %s", code, errs)
		}
		for _, path := range []string{socket, socket + ".admin"} {
			if s, err := os.Stat(path); err != nil || s.Mode().Perm() != 0o600 {
				t.Errorf("the manager's socket: %v, %v", s, err)
			}
		}
		early = asks(t, socket) // the next driver
	}
}

// TestSupervised_WatchdogSeesTheLoop: a driver whose loop stands still does not say that it is alive, though its process runs.
func TestSupervised_WatchdogSeesTheLoop(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	file := filepath.Join(p.dir, "config.json")
	if err := os.WriteFile(file, []byte(`{"fault_injection": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := manage(t, p, "400000")
	m.up(t, "--config", file)
	m.hears(t, "WATCHDOG=1")
	p.spawn(t, "dbg", "fault", "Ethernet 1", "turn")
	live := func() bool { code, _, _ := p.run(t, "health", "--live"); return code == 0 }
	await.Eventually(t, "a loop that stands still", func() bool { return !live() })
	quiet := false // what was said before is in the socket; then there is nothing for longer than the watchdog waits
	b := make([]byte, 4096)
	for range 1000 {
		if err := m.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Read(b); err != nil {
			quiet = true
			break
		}
	}
	if !quiet {
		t.Error("the driver goes on saying that it is alive")
	}
}

// TestSupervised_Refused: what a manager passes that the driver does not serve, or says wrongly, ends it with the status of wrong usage,
// for which it is not started again.
func TestSupervised_Refused(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for _, x := range []struct {
		name, watchdog, path, want string
	}{
		{"another path", "1000000", filepath.Join(p.dir, "other.sock"), "other.sock"},
		{"watchdog", "soon", filepath.Join(p.dir, "d.sock"), "WATCHDOG_USEC"},
	} {
		q := p
		q.dir = t.TempDir()
		m := manage(t, q, x.watchdog, x.path)
		if code, out, errs := m.run(t, "up", "--adapter", "a="+p.first); code != 2 || !strings.Contains(errs, x.want) {
			t.Errorf("%s: status %d, %s%s", x.name, code, out, errs)
		}
	}
}

// TestUnits: the service waits for the driver's word and is watched, longer than the driver watches itself (a minute), and its sockets
// are where programs of the user look for them.
func TestUnits(t *testing.T) {
	unit := setup.Unit("/usr/bin/softvpi")
	for name, want := range map[string]string{"Type": "notify", "WatchdogSec": "90", "ExecStart": "/usr/bin/softvpi up"} {
		if got := strings.Join(settings(unit, name), " "); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	want := []string{"%t/softvpi/driver.sock", "%t/softvpi/driver.sock.admin"}
	if got := settings(setup.Sockets, "ListenStream"); !slices.Equal(got, want) {
		t.Errorf("ListenStream=%q, want %q", got, want)
	}
	// The system's: the service serves the sockets that its socket unit opens, as the user that sysusers makes.
	system := settings(setup.SystemUnit("/usr/bin/softvpi"), "ExecStart")
	at := system[slices.Index(system, "--socket")+1]
	if got := settings(setup.SystemSockets, "ListenStream"); !slices.Equal(got, []string{at, at + ".admin"}) {
		t.Errorf("ListenStream=%q, and the service is at %s", got, at)
	}
	if got := settings(setup.SystemFunctionSocket, "ListenStream"); !slices.Equal(got, []string{paths.Function(at, "%i")}) {
		t.Errorf("ListenStream=%q of a virtual function, and the service is at %s", got, at)
	}
	users := []string{settings(setup.SystemUnit(""), "User")[0], settings(setup.SystemFunctionSocket, "SocketUser")[0],
		settings(setup.SystemSockets, "SocketUser")[0]}
	for _, name := range users {
		if !strings.Contains(setup.SystemUsers, "\nu "+name+" ") {
			t.Errorf("%s is no user of %s", name, setup.SystemUsers)
		}
	}
}
