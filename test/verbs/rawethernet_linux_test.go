package verbs

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// framesBench returns a bench with two adapters at one Ethernet switch.
func framesBench(t *testing.T) *bench {
	t.Helper()
	needLibraries(t)
	station := func(n int) config.Adapter {
		return config.Adapter{Name: fmt.Sprint("station", n), Address: address(n), Link: config.LinkSwitch,
			Wire: config.Wire{Switch: "frames", Prefix: 24, MAC: fmt.Sprintf("02:00:00:00:00:0%d", n+1), LinkMTU: 9000}}
	}
	cfg := driverbed.Config(t, station(0), station(1))
	if d := driverbed.Start(t, cfg); d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	return benchOf(t, cfg)
}

// frames is a pair of perftest that exchanges Ethernet frames. The server has posted its receives when it prints the head of its
// table.
func frames(command string, size, n int) pair {
	const to = " -F -d softvpi%d -B 02:00:00:00:00:0%d -E 02:00:00:00:00:0%d"
	command += fmt.Sprintf(" -s %d -n %d", size, n)
	return pair{name: command, server: "stdbuf -oL " + command + " --server" + fmt.Sprintf(to, 0, 1, 2), client: command + " --client" + fmt.Sprintf(to, 1, 2, 1),
		ready: "#bytes", says: fmt.Sprintf(`(?m)^ *%d +%d +[0-9.]+`, size, n)}
}

// TestRawEthernet: unmodified programs exchange whole Ethernet frames. No more are sent than receives are posted, as nothing holds
// a sender back.
func TestRawEthernet(t *testing.T) {
	b := framesBench(t)
	b.talkAll(t, []pair{
		frames("raw_ethernet_bw", 64, 500),
		frames("raw_ethernet_bw", 1500, 500),
		frames("raw_ethernet_bw -J 10.0.0.1 -j 10.0.0.2 -K 5 -k 6", 512, 500),
		frames("raw_ethernet_lat", 64, 200),
	})
	t.Run("rdma-core", func(t *testing.T) { b.under(t).rawPackets() })
}

// rawPackets runs those of rdma-core's tests that are skipped on other wires.
func (b *bench) rawPackets() {
	b.t.Helper()
	ran := b.runSuite("-k", "FlowTest", "-k", "raw_qp", "-k", "rss_traffic")
	if failed := ran.failed(); len(failed) > 0 {
		b.t.Errorf("failed: %v", failed)
	}
	became := map[string]outcome{}
	for _, r := range ran {
		became[r.Test] = r
	}
	n := 0
	for test, x := range readSkips(b.t).tests {
		if x.class == "raw-packet" {
			if r := became[test]; r.Result != "passed" && !(x.sometimes && r.Result == "skipped") {
				b.t.Errorf("%s: %q (%s), want it passed", test, r.Result, r.Why)
			} else if r.Result == "passed" {
				n++
			}
		}
	}
	b.figures("rdma-core's tests (raw packets): %d passed, %d failed", n, len(ran.failed()))
}
