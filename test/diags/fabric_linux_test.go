package diags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/retry"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/diags"
	"github.com/softvpi/softvpi/internal/tools/opensm"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// toolVariable makes the test binary act as one of the tools.
const toolVariable = "SOFTVPI_TEST_TOOL"

func TestMain(m *testing.M) {
	if name := os.Getenv(toolVariable); name != "" {
		env := tool.Env{Name: name, Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		main := diags.Tools[name]
		if name == "opensm" {
			main = opensm.Main
		}
		status := main(ctx, env)
		stop()
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// fabricOf is a fabric of ibsim, or of a server that speaks its protocol.
type fabricOf struct {
	t       *testing.T
	dir     string
	socket  string
	preload string
	console io.WriteCloser
	ibsim   *exec.Cmd
	log     string
	own     *ibsim.Server // if the fabric is one of this repository
	rack    *live.Rack
}

// newFabric starts the real ibsim with a netlist and, if asked to, the real OpenSM with further options on its first
// adapter.
func newFabric(t *testing.T, netlist string, opensm bool, options ...string) *fabricOf {
	t.Helper()
	systemtest.Programs(t, "ibsim", "opensm", "smpquery")
	preload, _ := filepath.Glob("/usr/lib/*/umad2sim/libumad2sim.so")
	if len(preload) == 0 {
		t.Skip("there is no libumad2sim.so by which Debian's tools reach ibsim")
	}
	netlist, err := filepath.Abs(netlist)
	if err != nil {
		t.Fatal(err)
	}
	f := &fabricOf{t: t, dir: t.TempDir(), socket: fmt.Sprintf("softvpi-test-%d-%x", os.Getpid(), rand.Uint32()), preload: preload[0]}
	f.log = filepath.Join(f.dir, "ibsim.log")
	ibsim := f.command("ibsim", "-s", "-N", "4096", "-S", "1024", "-P", "65536", "-L", "49152", netlist)
	f.console, err = ibsim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	f.start(ibsim, f.log)
	f.ibsim = ibsim
	f.wait(f.log, "Network simulator ready")
	if opensm {
		sm := f.command("opensm", "-f", filepath.Join(f.dir, "opensm.log"), "-d", "2")
		sm.Args = append(sm.Args, options...)
		f.preloaded(sm, "")
		f.start(sm, filepath.Join(f.dir, "opensm.out"))
		f.wait(filepath.Join(f.dir, "opensm.log"), "SUBNET UP")
	}
	return f
}

func (f *fabricOf) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = f.dir
	c.Env = append(os.Environ(), "IBSIM_SOCKNAME="+f.socket, "OSM_CACHE_DIR="+f.dir, "OSM_TMP_DIR="+f.dir)
	return c
}

// preloaded lets one of Debian's programs reach ibsim, as a node.
func (f *fabricOf) preloaded(c *exec.Cmd, node string) {
	c.Env = append(c.Env, "LD_PRELOAD="+f.preload, "SIM_HOST="+node)
}

// start runs a program until the end of the test.
func (f *fabricOf) start(c *exec.Cmd, log string) {
	f.t.Helper()
	out, err := os.Create(log)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { c.Wait(); close(ended) }()
	f.t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			c.Process.Kill()
			<-ended
		}
	})
}

// wait waits until a log contains the text.
func (f *fabricOf) wait(log, text string) {
	f.t.Helper()
	var b []byte
	if !await.Until(func() (said bool) { b, _ = os.ReadFile(log); return bytes.Contains(b, []byte(text)) }) {
		f.t.Fatalf("%s never says %q:\n%s", log, text, b)
	}
}

// say sends a line to ibsim's console, and waits until ibsim has handled all lines up to it.
func (f *fabricOf) say(line string) {
	f.t.Helper()
	b, _ := os.ReadFile(f.log)
	was := bytes.Count(b, []byte("sim> "))
	if _, err := io.WriteString(f.console, line+"\n"); err != nil {
		f.t.Fatal(err)
	}
	await.Eventually(f.t, fmt.Sprintf("ibsim acts on %q", line), func() bool {
		b, _ := os.ReadFile(f.log)
		return bytes.Count(b, []byte("sim> ")) > was
	})
}

// server runs a tool, ours or Debian's, that answers others until the end of the test, at the node with the LID.
func (f *fabricOf) server(node, lid, name string, ours bool) {
	f.t.Helper()
	c := f.command(name, "-S")
	if ours {
		c = f.tool(name, "-S")
	} else {
		f.preloaded(c, node)
	}
	c.Env = append(c.Env, "SIM_HOST="+node, "SIM_SET_ISSM=1")
	f.start(c, filepath.Join(f.dir, name+".out"))
	await.Eventually(f.t, name+" attaches as "+node, func() bool { return strings.Contains(f.attached(), node) })
	// It registers after it has attached.
	if !ours { // where a request that comes before that would be its last
		await.Eventually(f.t, name+" waits for requests", func() bool {
			before, sim, after := sleeps(c), sleeps(f.ibsim), sleeps(c)
			return before != "" && sim != "" && before == after
		})
		return
	}
	ask := []string{"-t", "300", lid}
	if name == "ibping" {
		ask = append(ask, "-c", "1")
	}
	await.Eventually(f.t, name+" answers", func() bool {
		r := f.ours("host-b", name, ask...)
		return strings.Contains(r.out, "Pong from") || strings.Contains(r.out, "succeeded")
	})
}

// sleeping matches how often a process of one thread has gone to sleep, while it sleeps.
var sleeping = regexp.MustCompile(`(?s)State:\tS .*\nvoluntary_ctxt_switches:\t(\d+)`)

// sleeps returns how often a process has gone to sleep, and nothing while it runs. Where a program and what it talks to both sleep, and the
// program has not run in between, none waits for the other.
func sleeps(c *exec.Cmd) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if m := sleeping.FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}

// attached returns ibsim's list of clients.
func (f *fabricOf) attached() string {
	b, _ := os.ReadFile(f.log)
	f.say("Attached")
	all, _ := os.ReadFile(f.log)
	return string(all[min(len(b), len(all)):])
}

// result is what a tool printed, and its status.
type result struct {
	out, errs string
	status    int
}

// debian runs the distribution's tool at a node.
func (f *fabricOf) debian(node, name string, args ...string) result {
	f.t.Helper()
	once := func() (result, bool) {
		c := f.command(name, args...)
		f.preloaded(c, node)
		return f.run(c)
	}
	r, ended := once()
	// The library by which it reaches ibsim waits for each answer without end, 20 s for one that was stopped for 20 s.
	if !ended {
		retry.Count(f.t, name, "it waited for ibsim without end")
		r, _ = once()
	}
	return r
}

// ours runs this repository's tool at a node.
func (f *fabricOf) ours(node, name string, args ...string) result {
	f.t.Helper()
	c := f.tool(name, args...)
	c.Env = append(c.Env, "SIM_HOST="+node)
	r, _ := f.run(c)
	return r
}

// tool returns the command for a tool of this repository: the test binary, acting as that tool.
func (f *fabricOf) tool(name string, args ...string) *exec.Cmd {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	c := f.command(self, args...)
	c.Env = append(c.Env, toolVariable+"="+name)
	return c
}

// run returns what a program did, and whether it ended by itself.
func (f *fabricOf) run(c *exec.Cmd) (result, bool) {
	f.t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	timer := time.AfterFunc(await.Limit, func() { c.Process.Kill() })
	err := c.Wait()
	ended := timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	return result{mask(out.String()), mask(errs.String()), c.ProcessState.ExitCode()}, ended
}

// masks match what may differ between two runs: times, process numbers, traffic, and the count by which a subnet
// manager shows that it is alive.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`ibwarn: \[\d+\]`), "ibwarn: [PID]"},
	{regexp.MustCompile(`(?m)generated on .*$`), "generated on DATE"},
	{regexp.MustCompile(`Run time was \d+ seconds`), "Run time was N seconds"},
	{regexp.MustCompile(`activity count \d+`), "activity count N"},
	{regexp.MustCompile(`(ActCount\.+)\d+`), "${1}N"},
	// Traffic of the tools and the subnet manager is counted while they run.
	{regexp.MustCompile(`(Port(?:Xmit|Rcv)(?:Data|Pkts):\.+)\d+`), "${1}N"},
	{regexp.MustCompile(`(Port(?:Xmit|Rcv)(?:Data|Pkts) == )\d+ \([^)]*\)`), "${1}N"},
}

func mask(text string) string {
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.with)
	}
	return text
}

// unanswered is what Debian's tools say when they have tried in vain.
const unanswered = "recv failed: Connection timed out"

// compare runs both variants of a command line and compares output, standard error and status.
func (f *fabricOf) compare(t *testing.T, node, line string) {
	t.Helper()
	words := strings.Fields(line)
	want := f.debian(node, words[0], words[1:]...)
	got := f.ours(node, words[0], words[1:]...)
	// Rarely, on a loaded machine, Debian's program gets no answer from Debian's ibsim, to none of its tries; ours has just got them all.
	if want != got && strings.Contains(want.errs, unanswered) && !strings.Contains(got.errs, unanswered) {
		retry.Count(t, words[0], "it got no answer from ibsim")
		want = f.debian(node, words[0], words[1:]...)
	}
	if want.status != got.status {
		t.Errorf("%s: exit status %d, Debian's %d", line, got.status, want.status)
	}
	if want.out != got.out {
		t.Errorf("%s:\n%s", line, difference(want.out, got.out))
	}
	if want.errs != got.errs {
		t.Errorf("%s, standard error:\n%s", line, difference(want.errs, got.errs))
	}
}

// difference returns the first line that differs.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d of %d and %d\n  Debian: %s\n  ours:   %s", i+1, len(w), len(g), a, b)
		}
	}
	return "no difference"
}
