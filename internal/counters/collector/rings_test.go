package collector

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/function/ethernet"
)

// rings returns an Ethernet function with two queues, for processors 1 and 0, that have received n packets each in polling mode.
func rings(n uint64) *device.EthernetStatus {
	e := &device.EthernetStatus{Config: ethernet.Config{RssMonitoringEnabled: 1}, Processors: []int{1, 0}}
	for range e.Processors {
		e.Queues = append(e.Queues, ethernet.QueueCounters{
			Receive: ethernet.ReceiveCounters{Packets: n, Bytes: 100 * n, PacketsThread: n, IndicationsThread: n / 2, Skipped: n},
			Send:    ethernet.SendCounters{Packets: 2 * n, Bytes: 10 * n, Bursts: 1},
		})
		e.RSS = append(e.RSS, ethernet.RSSCounters{13: n, 27: 3 * n}) // the last of those in tunnels, and of the others
	}
	e.RSS[1][27] = 0
	return e
}

// TestRingsOfEthernet: the sets of rings read those of an adapter's Ethernet function, by queue and in all, since the adapter was
// restarted or the set was reset; RSS monitoring's by processor, with a total (WinOF 5.50, 4.9.4.4.2).
func TestRingsOfEthernet(t *testing.T) {
	b := newBench(t, "port")
	a := &b.adapters[0]
	a.Generation, a.Ethernet = catalogue.MLX4, rings(10)
	a.Rings.InterruptPackets, a.Link.SentPackets = 1000, 1000 // the link's, which is another ring
	var r counters.Reader
	look := func(want map[string]string) {
		t.Helper()
		if d := cmp.Diff(want, b.values(&r, "datapath.thread_received_packets", "datapath.dpc_received_packets", "send_path.ring_sent_packets",
			"datapath.packets_per_thread", "datapath.packets_per_dpc", "datapath.skipped_receives", "send_path.sent_packets_per_batch",
			"receive_queues(port, Queue 1).received_bytes", "adapter_rss.encapsulated_rss_misc_packets", "adapter_rss.rss_misc_packets")); d != "" {
			t.Error("(-want +got):\n", d)
		}
	}
	all := func(n, last string) map[string]string {
		return map[string]string{
			"port: PacketsReceivedThread": n, "port: PacketsReceivedDPC": "0", "port: PacketsSent": "40", "port: Average Packets Per Thread": "2",
			"port: Average Packets Per DPC": "0", "port: SkipReceiveDueToControlChanges": n, "port: Average Packets Per Send": "20", "port, Queue 1: Received bytes": "1000",
			"port, CPU 0: Encapsulated Rss Misc": "10", "port, CPU 1: Encapsulated Rss Misc": "10", "port, Total: Encapsulated Rss Misc": "20",
			"port, CPU 0: Rss Misc": "30", "port, CPU 1: Rss Misc": "0", "port, Total: Rss Misc": last,
		}
	}
	look(all("20", "30"))
	if err := b.c.Reset(counters.ResetRequest{Set: "datapath"}); err != nil {
		t.Fatal(err)
	}
	look(all("0", "30"))
	b.restart(0)
	a.Ethernet = rings(15)
	want := all("10", "15")
	want["port: Average Packets Per Send"] = "30" // a level: a restart does not reset it
	want["port: PacketsSent"], want["port, Queue 1: Received bytes"], want["port, CPU 0: Rss Misc"] = "20", "500", "15"
	for _, k := range []string{"port, CPU 0: Encapsulated Rss Misc", "port, CPU 1: Encapsulated Rss Misc"} {
		want[k] = "5"
	}
	want["port, Total: Encapsulated Rss Misc"] = "10"
	look(want)
}

// TestWatched: who reads the Adapter RSS set by its name watches it, and who reads all sets does not.
func TestWatched(t *testing.T) {
	for path, want := range map[string]int{"adapter_rss": 1, `\Mellanox Adapter Rss Counters(*)\Rss Misc`: 1, "datapath": 0, `\*(*)\*`: 0, "": 0} {
		b := newBench(t, "port")
		b.adapters[0].Generation, b.adapters[0].Ethernet = catalogue.MLX4, rings(1)
		watched := 0
		b.c.cfg.Watched = func(uint32) { watched++ }
		var paths []string
		if path != "" {
			paths = append(paths, path)
		}
		if _, err := b.c.Snapshot(paths...); err != nil {
			t.Fatal(path, err)
		}
		if watched != want {
			t.Errorf("%q: watched %d times, want %d", path, watched, want)
		}
	}
}
