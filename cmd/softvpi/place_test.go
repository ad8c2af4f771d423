package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// asProgram makes the test binary act as softvpi, so that tests run real processes.
const asProgram = "SOFTVPI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(actAsService) != "" {
		beService()
	}
	if os.Getenv(asProgram) != "" {
		completionPatience = await.Limit // on a busy machine too
		main()
	}
	os.Exit(m.Run())
}

// place is a directory for a socket and state of its own, and two addresses.
type place struct {
	dir           string
	env           []string
	first, second string
	start         func(*exec.Cmd) error // starts the place's processes; nil: in the usual way
	input         *os.File              // their standard input; nil: none
}

func newPlace(t *testing.T) place {
	t.Helper()
	systemtest.Required(t)
	dir, err := os.MkdirTemp("", "vpi") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	addrs := loopback.Pair()
	return place{dir, append(os.Environ(), asProgram+"=1", paths.SocketVariable+"="+filepath.Join(dir, "d.sock"),
		paths.StateVariable+"="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+dir), addrs[0].String(),
		addrs[1].String(), nil, nil}
}

// process is a running softvpi.
type process struct {
	cmd    *exec.Cmd
	mu     sync.Mutex
	out    bytes.Buffer
	errs   bytes.Buffer
	ended  chan struct{}
	status int
	line   chan string // lines of standard output
}

// spawn starts softvpi with the arguments.
func (p place) spawn(t *testing.T, args ...string) *process {
	t.Helper()
	x := &process{cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{}), line: make(chan string, 10000)}
	x.cmd.Env = p.env
	pipe, err := x.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	x.cmd.Stderr = errorsOf{x}
	if p.input != nil {
		x.cmd.Stdin = p.input
	}
	start := p.start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(x.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(x.ended)
		s := bufio.NewScanner(pipe)
		for s.Scan() {
			x.mu.Lock()
			fmt.Fprintln(&x.out, s.Text())
			x.mu.Unlock()
			select {
			case x.line <- s.Text():
			default:
			}
		}
		x.cmd.Wait()
		x.status = x.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		x.cmd.Process.Kill()
		<-x.ended
	})
	return x
}

// errorsOf is a process's standard error, which others may read meanwhile.
type errorsOf struct{ x *process }

func (e errorsOf) Write(b []byte) (int, error) {
	e.x.mu.Lock()
	defer e.x.mu.Unlock()
	return e.x.errs.Write(b)
}

func (x *process) errors() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.errs.String()
}

// said returns its output so far.
func (x *process) said() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

// mostWait is how long a test waits for what a process does. Nothing limits how long a driver or a server runs meanwhile.
var mostWait = 4 * await.Limit

// until waits for a line of output that contains the text.
func (x *process) until(t *testing.T, text string) string {
	t.Helper()
	late := time.NewTimer(mostWait)
	defer late.Stop()
	for {
		select {
		case line := <-x.line:
			if strings.Contains(line, text) {
				return line
			}
		case <-x.ended:
			t.Fatalf("%q ended with status %d and no line with %q\n%s%s", x.cmd.Args[1:], x.status, text, x.out.String(), x.errs.String())
		case <-late.C:
			t.Fatalf("%q says no line with %q\n%s%s", x.cmd.Args[1:], text, x.said(), x.errors())
		}
	}
}

// wait waits until the process ends, and returns exit status and output.
func (x *process) wait(t *testing.T) (status int, stdout, stderr string) {
	t.Helper()
	select {
	case <-x.ended:
	case <-time.After(mostWait):
		t.Fatalf("%q does not end\n%s%s", x.cmd.Args[1:], x.said(), x.errors())
	}
	return x.status, x.out.String(), x.errs.String()
}

func (p place) run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return p.spawn(t, args...).wait(t)
}

// up starts a driver with both addresses.
func (p place) up(t *testing.T, more ...string) *process {
	t.Helper()
	d := p.spawn(t, append([]string{"up", "--adapter", "Ethernet 1=" + p.first, "--adapter", "Ethernet 2=" + p.second}, more...)...)
	if line := d.until(t, "listening"); !strings.Contains(line, p.dir) {
		t.Fatalf("listens elsewhere: %q", line)
	}
	return d
}

func (p place) status(t *testing.T) driver.Status {
	t.Helper()
	code, out, errs := p.run(t, "status", "--json")
	var s driver.Status
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
		t.Fatalf("status: %d, %v, %s%s", code, err, out, errs)
	}
	return s
}

// pair runs a server and a client, and expects both to succeed.
func (p place) pair(t *testing.T, ready string, server, client []string) (serverOut, clientOut string) {
	t.Helper()
	s := p.spawn(t, server...)
	s.until(t, ready)
	code, clientOut, errs := p.run(t, client...)
	if code != 0 {
		t.Fatalf("%q: status %d\n%s%s", client, code, clientOut, errs)
	}
	code, serverOut, errs = s.wait(t)
	if code != 0 {
		t.Fatalf("%q: status %d\n%s%s", server, code, serverOut, errs)
	}
	return serverOut, clientOut
}

// modes runs a test embedded, without a driver, and attached to a driver.
func modes(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("embedded", func(t *testing.T) { t.Parallel(); test(t, newPlace(t)) })
	t.Run("attached", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		d := p.up(t, "--skip-self-check")
		test(t, p)
		var s driver.Status // the driver notices the end of a program a moment after it
		if !await.Until(func() bool {
			s = p.status(t)
			return !slices.ContainsFunc(s.Adapters, func(a driver.AdapterStatus) bool {
				return len(a.QPs) > 0 || a.Objects["mr"] > 0 || a.Objects["cq"] > 0
			})
		}) {
			for _, a := range s.Adapters {
				t.Errorf("%s has %v left behind", a.Name, a.Objects)
			}
		}
		d.cmd.Process.Signal(syscall.SIGTERM)
		if code, out, errs := d.wait(t); code != 0 || !strings.Contains(out, "stopping") {
			t.Errorf("driver: status %d, %s%s", code, out, errs)
		}
	})
}

// waitListening waits until a server that prints JSON says on standard error
// that it serves.
func waitListening(t *testing.T, x *process) {
	t.Helper()
	waitFor(t, x, "serving at")
}

// waitFor waits until a text appears on standard error.
func waitFor(t *testing.T, x *process, text string) {
	t.Helper()
	await.Eventually(t, fmt.Sprintf("%q says %q", x.cmd.Args[1:], text), func() bool {
		if strings.Contains(x.errors(), text) {
			return true
		}
		select {
		case <-x.ended:
			t.Fatalf("%q ended: %s", x.cmd.Args[1:], x.errs.String())
		default:
		}
		return false
	})
}
