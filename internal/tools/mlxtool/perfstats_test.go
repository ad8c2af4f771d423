package mlxtool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
)

// perfstats counts what the rings did; RxReset sets the statistics of the receive rings back, and ResetAll those of
// all rings.
func TestPerfstats(t *testing.T) {
	g := start(t)
	path := "wire" // so that there are packets
	for _, a := range g.adapters {
		if err := g.driver.SetLink(driver.LinkRequest{Adapter: a.Name, Path: &path}); err != nil {
			t.Fatal(err)
		}
	}
	server, client := g.connect()
	go func() { _, _ = client.Write(make([]byte, 1<<20)) }()
	for n, b := 0, make([]byte, 1<<16); n < 1<<20; {
		m, err := server.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	values := func(form string) map[string]float64 {
		t.Helper()
		out := map[string]float64{}
		for _, table := range g.tables("show", "perfstats", "right", form) {
			for _, row := range table.Rows {
				if hits, ok := row["hits"].(float64); ok {
					out["hits"] += hits
				} else if v, ok := row["value"].(float64); ok {
					out[fmt.Sprint(row["counter"])] = v
				}
			}
		}
		return out
	}
	rx, tx := values("RX"), values("tx")
	received := rx["PacketsReceivedDPC"] + rx["PacketsReceivedThread"]
	if received == 0 || rx["hits"] == 0 || rx["hits"] > received || rx["Average Packets Per DPC"]+rx["Average Packets Per Thread"] < 1 {
		t.Errorf("receive statistics are missing or do not fit each other: %v", rx)
	}
	if tx["PacketsSent"] < 256 || tx["Average Packets Per Send"] < 1 { // a megabyte in packets of 4096 bytes at most
		t.Errorf("send statistics do not fit the megabyte that was sent: %v", tx)
	}
	g.ok("show", "perfstats", "right", "RxReset")
	if now := values("ShowAll"); now["PacketsReceivedDPC"]+now["PacketsReceivedThread"] >= received ||
		now["PacketsSent"] < tx["PacketsSent"] || now["RDMA Outbound Packets"] == 0 {
		t.Errorf("after RxReset, want only the receive statistics set back: %v", now)
	}
	g.ok("show", "perfstats", "right", "ResetAll")
	if now := values("ShowAll"); now["PacketsSent"] >= tx["PacketsSent"] || now["RDMA Outbound Packets"] >= tx["PacketsSent"] {
		t.Errorf("after ResetAll, want all statistics set back: %v", now)
	}
	if text := g.ok("show", "perfstats", "right", "RXD", "1"); !strings.Contains(text, "Gb/s") || !strings.Contains(text, "0 - 39") {
		t.Error("want a rate in Gb/s and the first range of the histogram:\n", text)
	}
}

// TestRingTable: perfstats has a row for each ring of an Ethernet function, with its processor and what it has counted, since the
// rings were reset or within the time.
func TestRingTable(t *testing.T) {
	a := &api.AdapterStatus{Name: "port", Ethernet: &api.EthernetStatus{Queues: 2, Rings: []api.RingStatus{{Processor: 1}, {Processor: 0}}}}
	before := map[string]ringValues{"receive_queues0": {"thread_packets": 3}, "receive_queues1": {"thread_packets": 4}}
	after := map[string]ringValues{"receive_queues0": {"thread_packets": 10, "received_packets": 5}, "receive_queues1": {"thread_packets": 40}}
	for within, want := range map[bool][]uint64{false: {10, 40}, true: {7, 36}} {
		r := ringTable(a, "receive_queues", before, after, within)
		at := slices.Index(r.Fields, "Packets in polling mode")
		if at < 0 || len(r.Rows) != 2 || len(r.Rows[0]) != len(r.Fields) {
			t.Fatalf("fields %q, %d rows", r.Fields, len(r.Rows))
		}
		for q, row := range r.Rows {
			if row[0] != q || row[1] != 1-q || row[at] != want[q] {
				t.Errorf("within %v: ring %d is %v, want processor %d and %d packets", within, q, row, 1-q, want[q])
			}
		}
	}
}
