package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// stopLimit is how long a tool may take to stop, and processes that it started to close its output.
const stopLimit = 5 * time.Second

// tool is a running softvpi program on this machine.
type tool struct {
	cmd  *exec.Cmd
	name string
	mu   sync.Mutex
	out  bytes.Buffer
	done chan struct{}
	err  error
}

// softvpi starts a tool. It attaches to the driver if one runs; otherwise it has an adapter of its own.
func (g *guest) softvpi(t testing.TB, args ...string) *tool {
	t.Helper()
	if g.driver == "" {
		args = append(args, "--mode", "embedded")
	} else {
		args = append(args, "--mode", "attached")
	}
	return g.softvpiAs(t, args...)
}

// drive runs a driver with the adapters of the segment until the test ends.
func (g *guest) drive(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	g.driver = filepath.Join(dir, "driver.sock")
	t.Cleanup(func() { g.driver = "" })
	p := g.softvpiAs(t, "up", "--state", dir, "--skip-self-check", "--adapter", "Ethernet 1="+ours.v4.String(), "--adapter",
		"Ethernet 2="+ours.v6.String())
	p.says(t, "listening")
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.succeeds(t, programLimit)
	})
}

// softvpiAs starts the program with exactly these arguments.
func (g *guest) softvpiAs(t testing.TB, args ...string) *tool {
	t.Helper()
	return begin(t, g.dir, []string{"SOFTVPI_SOCKET=" + g.driver}, args...)
}

// begin starts the program that a directory has, with these arguments, and with variables beside those of the environment.
func begin(t testing.TB, dir string, variables []string, args ...string) *tool {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "softvpi"), args...)
	cmd.Env = append(os.Environ(), variables...)
	return started(t, strings.Join(args, " "), cmd)
}

// started starts a program on this machine, until the test ends.
func started(t testing.TB, name string, cmd *exec.Cmd) *tool {
	t.Helper()
	p := &tool{name: name, cmd: cmd, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = stopLimit // a process that it left behind may keep its output open
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	return p
}

func (p *tool) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *tool) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// says waits until the tool has printed this.
func (p *tool) says(t testing.TB, what string) {
	t.Helper()
	said := await.Until(func() bool {
		if strings.Contains(p.text(), what) {
			return true
		}
		select {
		case <-p.done:
			t.Fatalf("%s has ended (%v) without saying %q:\n%s", p.name, p.err, what, p.text())
		default:
		}
		return false
	})
	if !said {
		t.Fatalf("%s does not say %q:\n%s", p.name, what, p.text())
	}
}

// ends waits until the tool ends, and returns its error; nil for status 0.
func (p *tool) ends(t testing.TB, limit time.Duration) error {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.done:
		case <-time.After(2 * time.Second):
		}
		t.Fatalf("%s has not ended after %v:\n%s", p.name, limit, p.text())
	}
	return p.err
}

func (p *tool) succeeds(t testing.TB, limit time.Duration) {
	t.Helper()
	if err := p.ends(t, limit); err != nil {
		t.Fatalf("%s: %v\n%s", p.name, err, p.text())
	}
}

// listens waits until a program of the guest listens at the connection manager.
func (g *guest) listens(t testing.TB) {
	t.Helper()
	g.sh(t, `until [[ $(rdma res show cm_id) == *LISTEN* ]]; do sleep 0.05; done`)
}

// count fails the test unless text contains what so many times.
func count(t testing.TB, name, text, what string, want int) {
	t.Helper()
	if n := strings.Count(text, what); n != want {
		t.Errorf("%s says %q %d times, want %d:\n%s", name, what, n, want, tail(text))
	}
}

func tail(s string) string {
	if len(s) > 2000 {
		return fmt.Sprintf("[%d bytes]...%s", len(s)-2000, s[len(s)-2000:])
	}
	return s
}
