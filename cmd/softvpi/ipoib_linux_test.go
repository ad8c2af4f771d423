package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// The tour of docs/ipoib.md works as written: each of its lines is run, with names that nothing else on the machine
// has. A line that fails is tried again for a while, as a reader would, because ports need a moment to come up.
func TestTourOfIPoIB(t *testing.T) {
	systemtest.Mark(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	systemtest.Programs(t, "ip", "ping", "iperf3")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs /dev/net/tun")
	}
	p := newPlace(t)
	bin := t.TempDir()
	for _, name := range []string{"softvpi", "nd_rping", "mlxtool", "part_man"} {
		if err := os.Symlink(os.Args[0], filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append(p.env, "PATH="+bin+":"+os.Getenv("PATH"))
	mark := fmt.Sprintf("t%05x", rand.N(1<<20))
	names := strings.NewReplacer("left", mark+"left", "right", mark+"right", "ib0", mark+"ib0", "ib1", mark+"ib1")
	if err := exec.Command("ip", "netns", "add", mark).Run(); err != nil {
		t.Skip("needs the right to make network namespaces: ", err)
	}
	t.Cleanup(func() {
		for _, name := range []string{"", "left", "right"} {
			_ = exec.Command("ip", "netns", "del", mark+name).Run()
		}
	})
	for _, line := range tour(t) {
		line = names.Replace(line)
		if command, ok := strings.CutSuffix(line, " &"); ok {
			x := p.background(t, command)
			if strings.HasPrefix(command, "softvpi up") {
				x.until(t, "listening")
			}
			continue
		}
		p.shell(t, line)
	}
}

// tour returns the lines of the tour that a reader types.
func tour(t *testing.T) (lines []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/ipoib.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## A tour\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, line := range strings.Split(text, "\n") {
		if line, ok := strings.CutPrefix(line, "    # "); ok {
			lines = append(lines, line)
		}
	}
	if len(lines) < 10 {
		t.Fatalf("the tour has %d lines", len(lines))
	}
	return lines
}

// background runs a line until the end of the test.
func (p place) background(t *testing.T, line string) *process {
	t.Helper()
	words := strings.Fields(line)
	if words[0] == "softvpi" {
		words = words[1:]
	}
	return p.spawn(t, words...)
}

// shell runs a line until it succeeds.
func (p place) shell(t *testing.T, line string) {
	t.Helper()
	var out []byte
	var err error
	if !await.Until(func() bool {
		c := exec.Command("sh", "-c", line)
		c.Env, c.SysProcAttr = p.env, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err = c.CombinedOutput()
		return err == nil
	}) {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	t.Logf("%s\n%s", line, out)
}

// Two drivers on the fabric of a third process find each other's ports by IP address, through ARP and neighbour
// discovery, and list what they have learned of each other among their endpoints.
func TestDriversResolveAddresses(t *testing.T) {
	systemtest.Mark(t)
	for _, c := range []struct{ left, right string }{{"10.97.0.1", "10.97.0.2"}, {"fd97::1", "fd97::2"}} {
		t.Run(c.left, func(t *testing.T) {
			one, two := newPlace(t), newPlace(t)
			env := "XDG_RUNTIME_DIR=" + one.dir
			one.env, two.env = append(one.env, env), append(two.env, env)
			file, name := filepath.Join(one.dir, "net"), fmt.Sprintf("test-%d-%x", os.Getpid(), rand.Uint32())
			_, netlist, _ := call(t, "softvpi", "fabric", "generate", "star", "--hosts", "2")
			if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
				t.Fatal(err)
			}
			one.spawn(t, "fabric", "run", file, "--name", name, "--sm").until(t, "cables")
			one.cabled(t, name, "node00000", c.left)
			two.cabled(t, name, "node00001", c.right)
			one.reaches(t, "Active")
			two.reaches(t, "Active")
			one.spawn(t, "nd_rping", "-s", "-a", c.left).until(t, "listening")
			if status, out, errs := two.run(t, "nd_rping", "-c", "-V", "-a", c.left, "-C", "20"); status != 0 {
				t.Fatalf("status %d: %s%s", status, out, errs)
			}
			if _, out, errs := two.run(t, "mlxtool", "dbg", "ipoib-ep", "-r"); !strings.Contains(out, c.left) {
				t.Errorf("%s%s", out, errs)
			}
		})
	}
}
