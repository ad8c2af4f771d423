package mlx5cmd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestRSSCounters: each queue of an Ethernet function is shown with its processor and what it has carried, and the sums are those of the
// queues; an adapter without a host has none.
func TestRSSCounters(t *testing.T) {
	dir, err := os.MkdirTemp("", "vpi") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	card := filepath.Join(dir, "card")
	cfg := driverbed.Config(t, config.Adapter{Name: "card", Link: config.LinkSwitch, Wire: config.Wire{Switch: "s", MAC: "02:00:00:00:00:01"},
		HostSide: config.HostSide{Host: "datagram:" + card}}, config.Adapter{Name: "bare"})
	machine, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: card + ".peer", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	g := &rig{t, cfg, driverbed.Start(t, cfg)}
	const frames, length = 10, 60
	h := eth.Ethernet{Dst: eth.MAC{2, 5: 2}, Src: eth.MAC{2, 5: 1}, Type: 0x88b5}
	b := make([]byte, length)
	h.Put(b)
	for range frames {
		if _, err := machine.WriteToUnix(b, &net.UnixAddr{Name: card, Net: "unixgram"}); err != nil {
			t.Fatal(err)
		}
	}
	var values map[string]any
	await.Eventually(t, "what the machine has sent is counted", func() bool {
		values = g.blocks("-RssCounters -Name card")[0].Values
		return values["Sent packets"] == float64(frames)
	})
	processors, packets, bytes, n := map[any]bool{}, 0.0, 0.0, 0
	for name, v := range values {
		if strings.HasPrefix(name, "Queue[") {
			q := v.(map[string]any)
			processors[q["processor"]] = true
			packets, bytes, n = packets+q["sent_packets"].(float64), bytes+q["sent_bytes"].(float64), n+1
		}
	}
	want := g.driver.Status().Adapters[0].Ethernet.Queues
	if n != want || len(processors) != n || packets != frames || bytes != frames*length {
		t.Errorf("%d queues on %d processors, of %d; they have sent %v packets, %v bytes: %v", n, len(processors), want, packets, bytes,
			values)
	}
	if text := g.ok("-RssCounters"); !strings.Contains(text, "\tQueue[0]: processor ") ||
		!strings.Contains(text, "\tQueues: none: the adapter has no host\n") {
		t.Error(text)
	}
}
