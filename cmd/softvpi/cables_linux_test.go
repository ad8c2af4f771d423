package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// port returns the InfiniBand port of the place's driver.
func (p place) port(t *testing.T) *driver.InfiniBandStatus {
	t.Helper()
	_, out, errs := p.run(t, "status", "--json")
	var s driver.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	return s.Adapters[0].InfiniBand
}

// reaches waits until the port of the place's driver is in this state.
func (p place) reaches(t *testing.T, state string) {
	t.Helper()
	var is string
	if !await.Until(func() bool { is = p.port(t).State; return is == state }) {
		t.Fatalf("the port is %s and not %s", is, state)
	}
}

// cabled starts a driver with one InfiniBand port on a fabric that another process runs.
func (p place) cabled(t *testing.T, fabric, node, address string) *process {
	t.Helper()
	file := filepath.Join(p.dir, "config")
	config := fmt.Sprintf(`{"fabric": {"connect": %q}, "adapters": [{"name": "ib", "link": "cable", "node": %q, "address": %q}]}`, fabric,
		node, address)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	x := p.spawn(t, "up", "--config", file)
	x.until(t, "listening")
	return x
}

// Two drivers on the fabric of a third process: their programs reach each other through it. A killed driver leaves a
// port that is down, and the next driver gets the port again. When the fabric is killed ports go down, until there is
// a fabric again.
func TestDriversOnAFabric(t *testing.T) {
	systemtest.Mark(t)
	one, two := newPlace(t), newPlace(t)
	file, name := filepath.Join(one.dir, "net"), fmt.Sprintf("test-%d-%x", os.Getpid(), rand.Uint32())
	env := "XDG_RUNTIME_DIR=" + one.dir
	one.env, two.env = append(one.env, env), append(two.env, env)
	_, netlist, _ := call(t, "softvpi", "fabric", "generate", "star", "--hosts", "2")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	fabric := func() *process {
		x := one.spawn(t, "fabric", "run", file, "--name", name, "--sm")
		x.until(t, "cables")
		return x
	}
	host := fabric()
	left := one.cabled(t, name, "node00000", "10.99.0.1")
	two.cabled(t, name, "node00001", "10.99.0.2")
	one.reaches(t, "Active")
	two.reaches(t, "Active")
	ping := func() {
		t.Helper()
		server := one.spawn(t, "nd_rping", "-s", "-a", "10.99.0.1")
		server.until(t, "listening")
		if status, out, errs := two.run(t, "nd_rping", "-c", "-V", "-a", "10.99.0.1", "-C", "20"); status != 0 {
			t.Fatalf("status %d: %s%s", status, out, errs)
		}
		server.cmd.Process.Kill()
		<-server.ended
	}
	ping()
	left.cmd.Process.Kill()
	<-left.ended
	clients := func() string {
		_, out, _ := one.run(t, "fabric", "do", "--name", name, "clients")
		return out
	}
	if !await.Until(func() bool { return !strings.Contains(clients(), "node00000") }) {
		t.Fatal(clients())
	}
	if out := clients(); !strings.Contains(out, "adapter at node00001[1], LID ") {
		t.Errorf("clients: %s", out)
	}
	one.cabled(t, name, "node00000", "10.99.0.1")
	one.reaches(t, "Active")
	ping()
	host.cmd.Process.Kill()
	<-host.ended
	one.reaches(t, "Down")
	fabric()
	one.reaches(t, "Active")
	two.reaches(t, "Active")
	ping()
}

// A driver whose fabric cannot be reached says so in its log, once.
func TestMissingFabricIsLogged(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	at := net.UnixAddr{Name: filepath.Join(p.dir, "nobody"), Net: "unixpacket"}
	d := p.spawn(t, "up", "-v", "--adapter", "ib0=cable", "--fabric", at.Name)
	d.until(t, "waiting      ib0 comes up when the fabric")
	waitFor(t, d, "the fabric cannot be reached")
	looks, err := net.ListenUnix(at.Net, &at) // a server that closes connections is not a fabric either
	if err != nil {
		t.Fatal(err)
	}
	defer looks.Close()
	for range 3 {
		_ = looks.SetDeadline(time.Now().Add(await.Limit))
		c, err := looks.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if n := strings.Count(d.errors(), "the fabric cannot be reached"); n != 1 {
		t.Errorf("it is said %d times: %s", n, d.errors())
	}
}
