package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/paths"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// asProgram makes the test binary be softvpi: the tests run real processes.
const asProgram = "SOFTVPI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

const patience = 60 * time.Second // far above what anything here takes

// place is a directory with a socket and state of its own, and two addresses.
type place struct {
	dir           string
	env           []string
	first, second string
	start         func(*exec.Cmd) error // starts its processes; nil: as all are
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpi") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := [4]byte{127, byte(16 + rand.N(200)), byte(rand.N(256)), 1}
	first := netip.AddrFrom4(b).String()
	b[3] = 2
	return place{dir, append(os.Environ(), asProgram+"=1", paths.SocketVariable+"="+filepath.Join(dir, "d.sock"),
		paths.StateVariable+"="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+dir), first, netip.AddrFrom4(b).String(), nil}
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	x := &process{cmd: exec.CommandContext(ctx, os.Args[0], args...), ended: make(chan struct{}), line: make(chan string, 10000)}
	x.cmd.Env = p.env
	pipe, err := x.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	x.cmd.Stderr = errorsOf{x}
	start := p.start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(x.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(x.ended)
		defer cancel()
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

// errorsOf takes a process's standard error, which others read meanwhile.
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

// said is its output so far.
func (x *process) said() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

// until waits for a line of output that has the text.
func (x *process) until(t *testing.T, text string) string {
	t.Helper()
	for {
		select {
		case line := <-x.line:
			if strings.Contains(line, text) {
				return line
			}
		case <-x.ended:
			t.Fatalf("%q ended with status %d and no line with %q\n%s%s", x.cmd.Args[1:], x.status, text, x.out.String(), x.errs.String())
		}
	}
}

// wait waits for the end and returns the exit status and the output.
func (x *process) wait(t *testing.T) (status int, stdout, stderr string) {
	t.Helper()
	<-x.ended
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

// pair runs a server and a client and expects both to end well.
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

// modes runs a test embedded, without a driver, and attached to one.
func modes(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("embedded", func(t *testing.T) { t.Parallel(); test(t, newPlace(t)) })
	t.Run("attached", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		d := p.up(t, "--skip-self-check")
		test(t, p)
		s := p.status(t)
		for _, a := range s.Adapters {
			if len(a.QPs) > 0 || a.Objects["mr"] > 0 || a.Objects["cq"] > 0 {
				t.Errorf("%s has %v left behind", a.Name, a.Objects)
			}
		}
		d.cmd.Process.Signal(syscall.SIGTERM)
		if code, out, errs := d.wait(t); code != 0 || !strings.Contains(out, "stopping") {
			t.Errorf("driver: status %d, %s%s", code, out, errs)
		}
	})
}

func TestBenchmarksPrintBothSidesResults(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	modes(t, func(t *testing.T, p place) {
		for _, test := range ndperf.Tests {
			name := test.Name()
			server, client := []string{name, "-S", p.first, "-p", "7001", "--json"}, []string{name, "-C", p.first, "-p", "7001", "--json", "-s", "4096", "-n", "50"}
			s := p.spawn(t, server...)
			waitListening(t, s)
			code, out, errs := p.run(t, client...)
			if code != 0 {
				t.Fatalf("%q: status %d, %s%s", client, code, out, errs)
			}
			serverCode, serverOut, errs := s.wait(t)
			if serverCode != 0 {
				t.Fatalf("%q: status %d, %s%s", server, serverCode, serverOut, errs)
			}
			for _, text := range []string{out, serverOut} {
				var r ndperf.Report
				d := json.NewDecoder(strings.NewReader(text))
				d.DisallowUnknownFields()
				if err := d.Decode(&r); err != nil {
					t.Fatalf("%s: %v in %s", name, err, text)
				}
				if _, err := d.Token(); err != io.EOF {
					t.Errorf("%s: something follows the JSON", name)
				}
				if r.Tool != name || len(r.Results) != 1 || r.Results[0].Client.Iterations != 50 || r.Results[0].Server.Iterations != 50 || r.Results[0].Client.Bytes != 4096 {
					t.Errorf("%s: %+v", name, r)
				}
				if r.Results[0].Client.Gbps <= 0 || (test.Measure == ndperf.Latency) != (r.Results[0].Client.Latency != nil) {
					t.Errorf("%s: %+v", name, r.Results[0].Client)
				}
			}
		}
	})
}

// waitListening waits until a server that prints JSON says on standard error
// that it serves.
func waitListening(t *testing.T, x *process) {
	t.Helper()
	waitFor(t, x, "serving at")
}

// waitFor waits until there is a text on standard error.
func waitFor(t *testing.T, x *process, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(x.errors(), text) {
			return
		}
		select {
		case <-x.ended:
			t.Fatalf("%q ended: %s", x.cmd.Args[1:], x.errs.String())
		default:
		}
	}
	t.Fatalf("%q does not say %q", x.cmd.Args[1:], text)
}

func TestBandwidthOptions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	modes(t, func(t *testing.T, p place) {
		for _, c := range []struct{ name, options string }{
			{"all sizes", "-a -n 3"},
			{"queue pairs, lists, moderation, inline", "-s 64 -n 100 -q 4 -l 4 -Q 8 -t 16 -i 64"},
			{"time and events", "-D 0.2 -e -s 1024"},
			{"time and moderation", "-D 0.1 -Q 64 -s 1"},
		} {
			for _, name := range []string{"nd_send_bw", "nd_write_bw"} {
				out, _ := p.pair(t, "#qp", []string{name, "-S", p.first}, append([]string{name, "-C", p.first}, strings.Fields(c.options)...))
				if n, want := strings.Count(out, "%\n"), 1; n < want || c.name == "all sizes" && n != 23 {
					t.Errorf("%s, %s: %d rows in\n%s", name, c.name, n, out)
				}
			}
		}
	})
}

func TestThresholdsSetTheExitStatus(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct {
		tool, option string
		status       int
	}{
		{"nd_write_bw", "--min-bw=0.000001", 0}, {"nd_write_bw", "--min-bw=1000000", 1},
		{"nd_send_lat", "--max-lat=10000000", 0}, {"nd_send_lat", "--max-lat=0.000001", 1},
	} {
		s := p.spawn(t, c.tool, "-S", p.first)
		s.until(t, "#")
		code, _, errs := p.run(t, c.tool, "-C", p.first, "-n", "20", c.option)
		if code != c.status || (code != 0) != strings.Contains(errs, "missed") {
			t.Errorf("%s %s: status %d, want %d; %s", c.tool, c.option, code, c.status, errs)
		}
		s.wait(t)
	}
}

func TestPingRunsWithCheckedData(t *testing.T) {
	modes(t, func(t *testing.T, p place) {
		s, c := p.pair(t, "listening", []string{"nd_rping", "-s", "-a", p.first, "-v", "-V", "-C", "4"},
			[]string{"nd_rping", "-c", "-a", p.first, "-v", "-V", "-C", "4", "-S", "2000"})
		if strings.Count(c, "\nping data: rdma-ping-")+1 != 4 || strings.Count(s, "server ping data: rdma-ping-") != 4 {
			t.Errorf("client:\n%s\nserver:\n%s", c, s)
		}
	})
}

func TestPersistentPingServerServesSeveralAndStops(t *testing.T) {
	p := newPlace(t)
	s := p.spawn(t, "nd_rping", "-s", "-P", "-a", p.first)
	s.until(t, "listening")
	clients := []*process{}
	for range 3 {
		clients = append(clients, p.spawn(t, "nd_rping", "-c", "-V", "-a", p.first, "-C", "20"))
	}
	for _, c := range clients {
		if code, out, errs := c.wait(t); code != 0 {
			t.Errorf("client: status %d, %s%s", code, out, errs)
		}
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if code, out, errs := s.wait(t); code != 0 {
		t.Errorf("server: status %d, %s%s", code, out, errs)
	}
}

func TestExamplePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("moves much data")
	}
	p := newPlace(t)
	for _, c := range [][2]string{
		{"ndping", "-c -q 8"}, {"ndpingpong", "-c -n 3"}, {"ndrping", "-c -w"}, {"ndrping", "-c -r -b"}, {"ndrpingpong", "-c"},
	} {
		_, out := p.pair(t, "serving", []string{c[0], "-s", p.first}, append(append([]string{c[0]}, strings.Fields(c[1])...), p.first))
		if rows := strings.Count(out, "\n"); rows != 25 {
			t.Errorf("%s %s: %d lines\n%s", c[0], c[1], rows, out)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	p := newPlace(t)
	start := time.Now()
	for _, args := range [][]string{
		{"nd_send_bw", "-C", p.first}, {"nd_rping", "-c", "-a", p.first}, {"ndping", "-c", p.first}, {"ndcat", p.first},
	} {
		code, _, errs := p.run(t, args...)
		if code != 1 || !strings.Contains(errs, "ND_CONNECTION_REFUSED") || !strings.Contains(errs, p.first+":") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q", args, code, errs)
		}
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("took %v", took)
	}
	s := p.spawn(t, "nd_rping", "-s", "-a", p.first) // an adapter, and nobody at the other port
	s.until(t, "listening")
	code, _, errs := p.run(t, "nd_send_bw", "-C", p.first)
	if code != 1 || !strings.Contains(errs, "ND_CONNECTION_REFUSED") || !strings.Contains(errs, "nobody listens") {
		t.Errorf("wrong port: status %d, %q", code, errs)
	}
}

func TestTheServerTellsAnotherProgramWhyItRefuses(t *testing.T) {
	p := newPlace(t)
	s := p.spawn(t, "nd_send_bw", "-S", p.first)
	s.until(t, "#qp")
	code, _, errs := p.run(t, "nd_write_bw", "-C", p.first)
	if code != 1 || !strings.Contains(errs, "the server runs nd_send_bw, the client nd_write_bw") {
		t.Errorf("status %d, %q", code, errs)
	}
	if code, _, errs := p.run(t, "nd_send_bw", "-C", p.first, "-n", "10"); code != 0 { // it still serves
		t.Errorf("status %d, %q", code, errs)
	}
}

func TestKilledClientLeavesNothingBehind(t *testing.T) {
	p := newPlace(t)
	p.up(t, "--skip-self-check")
	s := p.spawn(t, "nd_write_bw", "-S", p.first)
	s.until(t, "#qp")
	c := p.spawn(t, "nd_write_bw", "-C", p.first, "-D", "60")
	deadline := time.Now().Add(patience)
	for connected := false; !connected && time.Now().Before(deadline); {
		st := p.status(t)
		connected = len(st.Adapters[0].QPs) == 2 && len(st.Programs) == 2
	}
	c.cmd.Process.Kill()
	if code, _, errs := s.wait(t); code != 1 || !strings.Contains(errs, "nd_write_bw: ") {
		t.Errorf("server: status %d, %q", code, errs)
	}
	for left := true; left && time.Now().Before(deadline); {
		st := p.status(t)
		left = len(st.Programs) > 0 || len(st.Adapters[0].QPs)+len(st.Adapters[1].QPs) > 0
	}
	if st := p.status(t); len(st.Programs) > 0 || st.Adapters[1].Objects["mr"] > 0 {
		t.Errorf("left behind: %+v %v", st.Programs, st.Adapters[1].Objects)
	}
}

func TestCrashedDriverIsClearedUp(t *testing.T) {
	p := newPlace(t)
	d := p.up(t, "--skip-self-check")
	d.cmd.Process.Kill()
	d.wait(t)
	again := p.spawn(t, "up", "--adapter", "Ethernet 1="+p.first)
	again.until(t, "did not stop cleanly")
	again.until(t, "listening")
	again.cmd.Process.Signal(os.Interrupt)
	if code, out, errs := again.wait(t); code != 0 {
		t.Errorf("status %d, %s%s", code, out, errs)
	}
}

func TestAddressInUseNamesItsOwner(t *testing.T) {
	p := newPlace(t)
	d := p.up(t, "--skip-self-check")
	other := newPlace(t)
	code, _, errs := other.run(t, "up", "--adapter", "a="+p.first)
	if code != 1 || !strings.Contains(errs, p.first) || !strings.Contains(errs, fmt.Sprint("process ", d.cmd.Process.Pid)) {
		t.Errorf("status %d, %q; want process %d", code, errs, d.cmd.Process.Pid)
	}
}

func TestDisabledAdapterIsReportedAndOthersServe(t *testing.T) {
	p := newPlace(t)
	p.up(t, "--skip-self-check")
	if code, _, errs := p.run(t, "adapter", "disable", "Ethernet 2"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := p.run(t, "nd_send_bw", "-C", p.first, "-L", p.second); code != 1 || !strings.Contains(errs, "ND_DEVICE_REMOVED") {
		t.Errorf("from the disabled adapter: status %d, %q; want ND_DEVICE_REMOVED", code, errs)
	}
	p.pair(t, "#qp", []string{"nd_send_bw", "-S", p.first}, []string{"nd_send_bw", "-C", p.first, "-n", "10"})
	if code, _, errs := p.run(t, "adapter", "enable", "Ethernet 2"); code != 0 {
		t.Fatal(errs)
	}
	p.pair(t, "#qp", []string{"nd_send_bw", "-S", p.first}, []string{"nd_send_bw", "-C", p.first, "-L", p.second, "-n", "10"})
}

func TestCatCopiesBothWays(t *testing.T) {
	p := newPlace(t)
	there, back := make([]byte, 3<<20), make([]byte, 1<<20)
	for i := range there {
		there[i] = byte(rand.Uint32())
	}
	for i := range back {
		back[i] = byte(rand.Uint32())
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	make := func(in []byte, args ...string) (*exec.Cmd, *bytes.Buffer) {
		out := new(bytes.Buffer)
		c := exec.CommandContext(ctx, os.Args[0], append([]string{"ndcat"}, args...)...)
		c.Env, c.Stdin, c.Stdout = p.env, bytes.NewReader(in), out
		return c, out
	}
	s, atServer := make(back, "-s", p.first)
	ready, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || !strings.Contains(line, "waiting") {
		t.Fatal(line, err)
	}
	c, atClient := make(there, p.first)
	if err := c.Run(); err != nil {
		t.Error(err)
	}
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(atServer.Bytes(), there) || !bytes.Equal(atClient.Bytes(), back) {
		t.Errorf("%d of %d bytes there, %d of %d back, or not the same", atServer.Len(), len(there), atClient.Len(), len(back))
	}
}

func TestDemonstrationRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	p := newPlace(t)
	code, out, errs := p.run(t, "run-demo")
	if code != 0 || !strings.Contains(out, "ping data: rdma-ping-2") || !strings.Contains(out, "#qp") || !strings.Contains(out, "stopping") {
		t.Errorf("status %d\n%s%s", code, out, errs)
	}
}

// Where programs cannot attach, the tools run without the driver, and where there
// is one address only, the demonstration says what is missing.
func TestDemonstrationWhereProgramsCannotAttach(t *testing.T) {
	p := newPlace(t)
	t.Setenv(asProgram, "1")
	for _, second := range []netip.Addr{netip.MustParseAddr(p.second), {}} {
		var out, errs bytes.Buffer
		d, err := newDemo(t.Context(), &out, &errs)
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		d.first, d.second, d.attaches, d.each = netip.MustParseAddr(p.first), second, false, "0.002"
		if err := d.show(); err != nil {
			t.Errorf("%v: %s%s", err, out.String(), errs.String())
		}
		if ran := strings.Contains(out.String(), "(embedded)"); ran != second.IsValid() || ran == strings.Contains(out.String(), "a second address") {
			t.Errorf("second address %v:\n%s", second, out.String())
		}
	}
}
