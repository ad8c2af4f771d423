package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// manager starts opensm at a node of a fabric. It polls the master often, so that a takeover does not take a minute; but a master that
// has no processor for a while is not taken for one that has died.
func (p place) manager(t *testing.T, fabric, node, priority string) *process {
	t.Helper()
	status, out, errs := p.run(t, "fabric", "env", "--name", fabric, "--node", node, "--json")
	var env map[string]string
	if err := json.Unmarshal([]byte(out), &env); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errs)
	}
	file := filepath.Join(p.dir, node)
	if err := os.WriteFile(file, []byte("sminfo_polling_timeout 1000\npolling_retry_number 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range env {
		p.env = append(p.env[:len(p.env):len(p.env)], name+"="+value)
	}
	p.env = append(p.env, "OSM_CACHE_DIR="+p.dir)
	return p.spawn(t, "opensm", "-p", priority, "-F", file, "-f", "stdout")
}

// Two subnet managers on the fabric of a third process: when the master is killed while programs of two drivers talk,
// the standby takes over; ports keep their LIDs and the programs their connection.
func TestManagerDiesUnderTraffic(t *testing.T) {
	systemtest.Mark(t)
	one, two := newPlace(t), newPlace(t)
	file, name := filepath.Join(one.dir, "net"), fmt.Sprintf("test-%d-%x", os.Getpid(), rand.Uint32())
	env := "XDG_RUNTIME_DIR=" + one.dir
	one.env, two.env = append(one.env, env), append(two.env, env)
	_, netlist, _ := call(t, "softvpi", "fabric", "generate", "fat-tree", "--radix", "4", "--hosts", "8")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	one.spawn(t, "fabric", "run", file, "--name", name).until(t, "cables")
	master := one.manager(t, name, "node00002", "14")
	master.until(t, "SUBNET UP")
	standby := one.manager(t, name, "node00005", "3")
	standby.until(t, "STANDBY")

	one.cabled(t, name, "node00000", "10.99.0.1")
	two.cabled(t, name, "node00007", "10.99.0.2")
	one.reaches(t, "Active")
	two.reaches(t, "Active")
	before := [2]uint16{one.port(t).LID, two.port(t).LID}
	was := one.port(t).SMLID

	one.spawn(t, "nd_rping", "-s", "-a", "10.99.0.1").until(t, "listening")
	client := two.spawn(t, "nd_rping", "-c", "-v", "-V", "-a", "10.99.0.1")
	client.until(t, "ping data")
	master.cmd.Process.Kill()
	<-master.ended
	standby.until(t, "MASTER")
	if !await.Until(func() bool { return one.port(t).SMLID != was && two.port(t).SMLID != was }) {
		t.Fatalf("the ports' subnet manager is at %d and %d; it was at %d", one.port(t).SMLID, two.port(t).SMLID, was)
	}
	for stale := len(client.line); stale > 0; stale-- {
		<-client.line
	}
	for range 100 {
		client.until(t, "ping data")
	}
	if after := [2]uint16{one.port(t).LID, two.port(t).LID}; after != before {
		t.Errorf("the LIDs are %v; they were %v", after, before)
	}
}
