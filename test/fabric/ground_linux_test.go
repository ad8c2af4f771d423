package fabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// ground is a named fabric, to which programs attach.
type ground struct {
	t                    *testing.T
	dir, socket, preload string
	server               *ibsim.Server // nil: the real ibsim
}

func newGround(t *testing.T, programs ...string) *ground {
	t.Helper()
	systemtest.Programs(t, append(programs, "opensm", "smpquery")...)
	preload, _ := filepath.Glob("/usr/lib/*/umad2sim/libumad2sim.so")
	if len(preload) == 0 {
		t.Skip("there is no libumad2sim.so by which Debian's programs attach (test/diags/packages.sh installs it)")
	}
	return &ground{t: t, dir: t.TempDir(), socket: fmt.Sprintf("softvpi-fabric-%d-%x", os.Getpid(), rand.Uint32()), preload: preload[0]}
}

// ours serves a netlist as a fabric of this repository.
func ours(t *testing.T, netlist string) *ground {
	t.Helper()
	g := newGround(t)
	file, err := os.Open(netlist)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	top, err := topology.ReadNetlist(file)
	if err != nil {
		t.Fatal(err)
	}
	g.serve(top)
	return g
}

func (g *ground) serve(top *topology.Topology) {
	g.t.Helper()
	l, err := ibsim.ListenLocal(g.socket)
	if err != nil {
		g.t.Fatal(err)
	}
	r := live.New(fabric.New(top, rand.Uint64), live.Options{})
	g.server = ibsim.NewServer(r)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.server.Serve(ctx, l) }()
	g.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			g.t.Errorf("the server ended with %v", err)
		}
		r.Close()
	})
}

// theirs runs the real ibsim with a netlist.
func theirs(t *testing.T, netlist string) *ground {
	t.Helper()
	g := newGround(t, "ibsim")
	path, err := filepath.Abs(netlist)
	if err != nil {
		t.Fatal(err)
	}
	c := g.command("", "ibsim", "-s", "-L", "49152", path)
	if _, err := c.StdinPipe(); err != nil { // at the end of its input it would spin
		t.Fatal(err)
	}
	g.start(c, "ibsim.log")
	g.log("ibsim.log", "Network simulator ready")
	return g
}

// command returns the command for a program that attaches to a node.
func (g *ground) command(node, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = g.dir
	c.Env = append(os.Environ(), "IBSIM_SOCKNAME="+g.socket, "OSM_CACHE_DIR="+g.dir, "OSM_TMP_DIR="+g.dir)
	if node != "" {
		c.Env = append(c.Env, "LD_PRELOAD="+g.preload, "SIM_HOST="+node)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// start runs a program until the end of the test, with its output in a file.
func (g *ground) start(c *exec.Cmd, log string) {
	g.t.Helper()
	out, err := os.Create(filepath.Join(g.dir, log))
	if err != nil {
		g.t.Fatal(err)
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		g.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	g.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = c.Process.Kill()
			<-ended
		}
	})
}

// opensm starts the real OpenSM at a node. Its log is the file NODE.log.
func (g *ground) opensm(node string, args ...string) *exec.Cmd {
	g.t.Helper()
	log := filepath.Join(g.dir, node+".log")
	c := g.command(node, "opensm", append([]string{"-f", log, "-d", "2"}, args...)...)
	g.start(c, node+".out")
	return c
}

// log waits until a file of the directory contains the text.
func (g *ground) log(file, text string) {
	g.t.Helper()
	g.wait(fmt.Sprintf("%s says %q", file, text), func() bool {
		b, err := os.ReadFile(filepath.Join(g.dir, file))
		return err == nil && bytes.Contains(b, []byte(text))
	})
}

func (g *ground) wait(what string, is func() bool) {
	g.t.Helper()
	if await.Until(is) {
		return
	}
	files, _ := filepath.Glob(filepath.Join(g.dir, "*.log"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		g.t.Logf("%s:\n%s", f, b[max(0, len(b)-2000):])
	}
	g.t.Fatalf("%s: not so after %v", what, await.Limit)
}

// tool runs a program at a node and returns both its output streams as one text, and its exit status.
func (g *ground) tool(node, name string, args ...string) (string, int) {
	g.t.Helper()
	systemtest.Programs(g.t, name)
	c := g.command(node, name, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		g.t.Fatal(err)
	}
	timer := time.AfterFunc(2*await.Limit, func() { _ = c.Process.Kill() })
	err := c.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	return out.String(), c.ProcessState.ExitCode()
}

// must returns the output of a program, which has to exit with 0.
func (g *ground) must(node, name string, args ...string) string {
	g.t.Helper()
	out, status := g.tool(node, name, args...)
	if status != 0 {
		g.t.Fatalf("%s %q: status %d\n%s", name, args, status, out)
	}
	return out
}

func (g *ground) do(command string) {
	g.t.Helper()
	if _, err := g.server.Command(command); err != nil {
		g.t.Fatal(err)
	}
}
