package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/bench"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestBench_Hosts: the parts that measure Ethernet functions have a figure in every row asked for, beside its peer where there is one.
func TestBench_Hosts(t *testing.T) {
	systemtest.Mark(t, systemtest.Alone)
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	p := newPlace(t)
	for part, want := range map[string]struct {
		row         string
		rows, peers int
	}{"hosts": {"MTU 1500", 8, 8}, "packetdirect": {"programs of one driver", 1, 0}, "qos": {"write of 4 KB", 1, 1}, "tunnels": {"", 6, 6},
		"functions": {"write of 64 KB", 2, 2}, "trace": {"write of 4 KB", 1, 1}} {
		file := filepath.Join(p.dir, part)
		status, out, errs := p.run(t, "bench", "--part", part, "--row", want.row, "--rounds", "1", "--seconds", "0.05", "--json", file)
		if status != 0 {
			t.Errorf("%s: status %d\n%s%s", part, status, out, errs)
			continue
		}
		var r bench.Report
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if part == "tunnels" && len(r.Skipped) > 0 && len(r.Rows) == 0 {
			continue // Linux has offloads for tunnels from 6.17 on
		}
		peers := 0
		for _, x := range r.Rows {
			idle := part == "trace" // its turns are of 20 ms: on a busy machine more than half of them may see no write end
			if x.Part != part || x.Value <= 0 && !idle || x.Peer != "" && x.PeerValue <= 0 && !idle {
				t.Errorf("%+v", x)
			}
			if x.Peer != "" {
				peers++
			}
		}
		if len(r.Rows) != want.rows || peers != want.peers {
			t.Errorf("%s: %d rows, %d with a peer, want %d and %d: %s", part, len(r.Rows), peers, want.rows, want.peers, b)
		}
	}
}
