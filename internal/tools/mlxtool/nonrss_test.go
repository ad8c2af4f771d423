package mlxtool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// A capture is made in the manual's steps: set the key, query, start, collect, stop (WinOF 5.50, 4.9.4.4.1.1).
func TestNonRSSCapture(t *testing.T) {
	g := start(t)
	state := func(line ...string) map[string]any {
		t.Helper()
		return g.tables(append([]string{"dbg", "nonrss-capture", "right"}, line...)...)[0].Rows[0]
	}
	if got := state("query"); got["state"] != "Stopped" {
		t.Errorf("before the start: %v, want Stopped", got)
	}
	if status, _, stderr := g.call("dbg", "nonrss-capture", "right", "start"); status != tool.Failure ||
		!strings.Contains(stderr, "RssMonitoringEnabled is 0") {
		t.Errorf("without the key: status %d, %s; want %d and \"RssMonitoringEnabled is 0\"", status, stderr, tool.Failure)
	}
	client := api.NewClient(g.socket)
	if _, err := client.Set(t.Context(), "right", "RssMonitoringEnabled", "1"); err != nil {
		t.Fatal(err)
	}
	if err := client.RestartAdapter(t.Context(), "right"); err != nil {
		t.Fatal(err)
	}
	if got := state("Start"); got["state"] != "Running" || got["circular_buffer_size"] != 1024.0 || got["bytes_per_packet"] != 128.0 {
		t.Errorf("after the start: %v, want Running with a buffer of 1024 and 128 bytes per packet", got)
	}
	if status, _, stderr := g.call("dbg", "nonrss-capture", "right", "start"); status != tool.Failure ||
		!strings.Contains(stderr, "already") {
		t.Errorf("a second start: status %d, %s; want %d and \"already\"", status, stderr, tool.Failure)
	}
	state("stop")
	state("start", "4", "64")
	server, client2 := g.connect()
	for range 40 { // packets to the adapter, more than the buffer holds
		if _, err := server.Write(make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
		if _, err := client2.Read(make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
	}
	if got := state("query"); got["packets_stored"] != 4.0 || got["packets_seen"].(float64) <= 4 {
		t.Errorf("query: %v, want 4 packets stored and more seen", got)
	}
	file := filepath.Join(t.TempDir(), "x.pcap")
	if got := state("collect", file, "0"); got["packets"] != 4.0 || got["file"] != file {
		t.Errorf("collect: %v, want 4 packets in %s", got, file)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if data, info, err := r.ReadPacketData(); err != nil || len(data) > 64 || info.Length < len(data) || data[0]>>4 != 4 {
			t.Errorf("packet %d: %d bytes of %d, %v; want at most 64 bytes of an IPv4 packet", i, len(data), info.Length, err)
		}
	}
	if got := state("stop"); got["state"] != "Stopped" {
		t.Errorf("after the stop: %v, want Stopped", got)
	}
	if status, _, stderr := g.call("dbg", "nonrss-capture", "right", "collect", file); status != tool.Failure ||
		!strings.Contains(stderr, "no packets are being kept") {
		t.Errorf("collect after the stop: status %d, %s; want %d and \"no packets are kept\"", status, stderr, tool.Failure)
	}
	for line, want := range map[string]string{
		"right": "are needed", "right begin": `"begin" is not one of start`, "right start 0": "above 0", "right start 1 x": "above 0",
		"right start 1 2 3": `"3"`, "right query now": `"now"`, "right start 70000": "packets is 70000; allowed: 1 to 65536",
		"right start 65536 65536": "at most 67108864", "right collect x 1": "VPort 0", "middle query": `"left", "right"`,
	} {
		if status, _, stderr := g.call(append([]string{"dbg", "nonrss-capture"}, strings.Fields(line)...)...); status != tool.Usage ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s; want %d and %q", line, status, stderr, tool.Usage, want)
		}
	}
	if status, _, _ := g.call("dbg", "nonrss-capture", "left", "query"); status != tool.Unsupported {
		t.Errorf("of mlx5: status %d, want %d", status, tool.Unsupported)
	}
}
