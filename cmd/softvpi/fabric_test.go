package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
)

func TestFabricGenerate(t *testing.T) {
	for _, c := range []struct {
		args            string
		hosts, switches int
		rate            string
	}{
		{"star --hosts 3", 3, 1, "4xQDR"},
		{"fat-tree --radix 4 --levels 3", 16, 20, "4xQDR"},
		{"fat-tree --radix 8 --hosts 5 --host-ports 2", 5, 7, "4xQDR"},
		{"torus --size 3,2 --hosts 2 --width 12x --speed hdr", 12, 6, "12xHDR"},
		{"dragonfly", 72, 36, "4xQDR"},
	} {
		status, out, errs := call(t, "softvpi", append([]string{"fabric", "generate"}, strings.Fields(c.args)...)...)
		if status != 0 || errs != "" {
			t.Errorf("%s: status %d, %s", c.args, status, errs)
			continue
		}
		top, err := topology.ReadNetlist(strings.NewReader(out))
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if hosts, switches, _, _ := top.Counts(); hosts != c.hosts || switches != c.switches || !strings.Contains(out, c.rate+"\n") {
			t.Errorf("%s: %d hosts, %d switches", c.args, hosts, switches)
		}
	}
}

func TestFabricRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.net")
	if err := os.WriteFile(bad, []byte("Switch 2 \"s\"\n[3] \"s\"[1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.net")
	if err := os.WriteFile(good, []byte("Switch 2 \"s\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"run", bad}, tool.Usage, bad + `: netlist line 2: port is "3", want 1 to 2 of "s"`},
		{[]string{"run", filepath.Join(dir, "none")}, tool.Usage, "no such file"},
		{[]string{"run", good, "--udp", "here"}, tool.Usage, `--udp is "here"; allowed: an address and a port`},
		{[]string{"run", good, "--cables", "here"}, tool.Usage,
			`--cables is "here"; allowed: an address of this machine and a port, such as 192.0.2.1:7069`},
		{[]string{"run", good, "--cable-key", good}, tool.Usage, "--cable-key without --cables; allowed: both"},
		{[]string{"run", good, "--cables", "127.0.0.1:7069", "--cable-key", empty}, tool.Usage, "has a key of 0 bytes; allowed: 8 to 1024"},
		{[]string{"run", good, "--name", "a b"}, tool.Usage, `--name is "a b"; allowed: 1 to 64 characters`},
		{[]string{"run", "-", "--console"}, tool.Usage, "--console with the netlist on the standard input; allowed:"},
		{[]string{"do", "--name", "nobody-has-this", "help"}, tool.Failure,
			"nobody-has-this: no fabric is served under this name; start one with: softvpi fabric run --name nobody-has-this NETLIST"},
		{[]string{"do"}, tool.Usage, "expected \"<command> ...\""},
		{[]string{"generate", "star", "--hosts", "0"}, tool.Usage, "hosts is 0; allowed: 1 to 254"},
		{[]string{"generate", "star", "--width", "3x"}, tool.Usage, `--width is "3x"; allowed: 1x`},
		{[]string{"generate", "star", "--speed", "fast"}, tool.Usage, `--speed is "fast"; allowed: SDR`},
		{[]string{"generate", "torus", "--size", "1"}, tool.Usage, "size of a dimension is 1; allowed: 2 to 1024"},
	} {
		status, out, errs := call(t, "softvpi", append([]string{"fabric"}, c.args...)...)
		if status != c.status || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q, %q; want %d, %s", c.args, status, out, errs, c.status, c.want)
		}
	}
}

// A fabric without --name has the name of IBSIM_SOCKNAME, or else that of ibsim: an empty variable is none.
func TestFabricNameFromTheEnvironment(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("fabric env is for Linux")
	}
	for value, want := range map[string]string{"": "fabric-sim.sock", "other": "fabric-other.sock"} {
		t.Setenv("IBSIM_SOCKNAME", value)
		if status, out, errs := call(t, "softvpi", "fabric", "env"); status != 0 || !strings.Contains(out, want) {
			t.Errorf("IBSIM_SOCKNAME=%s: status %d, %q, %q; want %s", value, status, out, errs, want)
		}
	}
}

// A fabric as a process: programs attach, and it ends with status 0 when it is told to.
func TestFabricRun(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	file := filepath.Join(p.dir, "net")
	_, netlist, _ := call(t, "softvpi", "fabric", "generate", "star", "--hosts", "2")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	port := int(loopback.Port())
	x := p.spawn(t, "fabric", "run", file, "--udp", fmt.Sprintf("%s:%d", p.first, port))
	x.until(t, "2 channel adapters, 1 switches, 0 routers, 2 links")
	x.until(t, fmt.Sprintf("IBSIM_SERVER_NAME=%s IBSIM_SERVER_PORT=%d", p.first, port))
	c, err := umad.OpenIbsim(umad.IbsimOptions{Server: p.first, Port: port, Host: "node00001"})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Device().Node.NodeGUID; got != 0x100002 {
		t.Errorf("attached to %#x", got)
	}
	c.Close()
	if err := x.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip(err) // not on this system
	}
	if status, _, errs := x.wait(t); status != 0 || errs != "" {
		t.Errorf("ended with %d, %s", status, errs)
	}
}

// Commands come in on the standard input; a wrong one is told and the next is done.
func TestFabricConsole(t *testing.T) {
	top, err := topology.Star(2, topology.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	r := live.New(fabric.New(top, rand.Uint64), live.Options{})
	defer r.Close()
	var out, errs bytes.Buffer
	console(&session{context.Background(), tool.Env{Name: "softvpi", Stdin: strings.NewReader("unlink\nunlink node00000[1]\nhelp\n"),
		Stdout: &out, Stderr: &errs}}, ibsim.NewServer(r))
	if !strings.Contains(errs.String(), "unlink has 0 arguments") || !strings.Contains(out.String(), "pull a cable") {
		t.Errorf("%s%s", out.String(), errs.String())
	}
	r.Do(func(_ clock.Time, f *fabric.Fabric) {
		if i := f.PortInfo(fabric.Place{Node: 0, Port: 1}); i.PortState.String() != "Down" {
			t.Errorf("%v", i.PortState)
		}
	})
}

// Two fabrics of one name would share their programs: the second says so and ends.
func TestTwoFabricsOfOneName(t *testing.T) {
	systemtest.Mark(t)
	if runtime.GOOS != "linux" {
		t.Skip("names are those of Linux's abstract sockets")
	}
	p := newPlace(t)
	file, name := filepath.Join(p.dir, "net"), filepath.Base(p.dir)
	_, netlist, _ := call(t, "softvpi", "fabric", "generate", "star", "--hosts", "2")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	p.spawn(t, "fabric", "run", file, "--name", name).until(t, "listening")
	if status, _, errs := p.run(t, "fabric", "run", file, "--name", name); status != tool.Failure ||
		!strings.Contains(errs, "another process serves a fabric under the name "+name) {
		t.Errorf("status %d, %s", status, errs)
	}
}
