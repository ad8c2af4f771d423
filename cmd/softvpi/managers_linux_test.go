package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// There are two subnet managers, each a program of its own. When the master is killed while a connection between two
// drivers carries data, the other takes over, ports keep their LIDs and are told of the new master, and the
// connection continues without an error.
func TestMasterIsKilledUnderTraffic(t *testing.T) {
	systemtest.Mark(t)
	one, two := newPlace(t), newPlace(t)
	file, name := filepath.Join(one.dir, "net"), fmt.Sprintf("test-%d-%x", os.Getpid(), rand.Uint32())
	shared := []string{"XDG_RUNTIME_DIR=" + one.dir, "IBSIM_SOCKNAME=" + name, "IBSIM_SERVER_NAME=", "IBSIM_SERVER_PORT=",
		"OSM_CACHE_DIR=" + one.dir}
	one.env, two.env = append(one.env, shared...), append(two.env, shared...)
	_, netlist, _ := call(t, "softvpi", "fabric", "generate", "fat-tree", "--radix", "4", "--hosts", "8")
	for path, text := range map[string]string{file: netlist, file +
		".conf": "sminfo_polling_timeout 1000\npolling_retry_number 3\nsweep_interval 1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := one.spawn(t, "fabric", "run", file, "--name", name)
	host.until(t, "cables")
	manager := func(node, priority string) *process {
		p := one
		p.env = append(append([]string{}, one.env...), "SIM_HOST="+node)
		return p.spawn(t, "opensm", "-F", file+".conf", "-p", priority, "-f", filepath.Join(one.dir, node+".log"))
	}
	master := manager("node00002", "9")
	master.until(t, "SUBNET UP")
	standby := manager("node00005", "3")
	standby.until(t, "Entering STANDBY state")
	one.cabled(t, name, "node00000", "10.98.0.1")
	two.cabled(t, name, "node00007", "10.98.0.2")
	one.reaches(t, "Active")
	two.reaches(t, "Active")
	before := two.port(t)

	server := one.spawn(t, "nd_rping", "-s", "-a", "10.98.0.1")
	server.until(t, "listening")
	client := two.spawn(t, "nd_rping", "-c", "-v", "-V", "-a", "10.98.0.1")
	client.until(t, "ping")
	var pings atomic.Int64
	go func() { // unread output would block it
		for {
			select {
			case <-client.line:
				pings.Add(1)
			case <-client.ended:
				return
			}
		}
	}()
	if err := master.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-master.ended
	standby.until(t, "Entering MASTER state")
	await.Eventually(t, "the port knows the new subnet manager", func() bool { return two.port(t).SMLID != before.SMLID })
	if after := two.port(t); after.LID != before.LID || after.State != "Active" {
		t.Errorf("the port was %+v and is %+v", before, after)
	}
	then := pings.Load()
	await.Eventually(t, "1000 pings after the takeover", func() bool {
		select {
		case <-client.ended:
			t.Fatalf("the connection ended with status %d: %s", client.status, client.errors())
		default:
		}
		return pings.Load() >= then+1000
	})
	if text := client.errors() + server.errors(); text != "" {
		t.Errorf("the programs say %s", text)
	}
}
