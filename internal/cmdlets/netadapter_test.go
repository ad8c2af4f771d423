package cmdlets

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// TestLinkSpeed: Get-NetAdapter shows the speed of each kind of port, 0 for one that is down, and does not take one whose wire has no
// speed for one that is down.
func TestLinkSpeed(t *testing.T) {
	f := newFake(t, "up", "down", "disabled", "loopback", "fabric", "polling")
	f.adapters[0].Speed = 25e9
	f.adapters[1].Up, f.adapters[1].Speed = false, 0
	f.adapters[2].Enabled, f.adapters[2].Up, f.adapters[2].Speed = false, false, 0
	f.adapters[3].Speed = 0
	f.adapters[4].Speed, f.adapters[4].InfiniBand = 0, &api.InfiniBandStatus{Mbps: 100_000}
	f.adapters[5].Up, f.adapters[5].Speed, f.adapters[5].InfiniBand = false, 0, &api.InfiniBandStatus{}
	out, said, failures := play(t, f, `Get-NetAdapter | ForEach-Object { "$($_.Name) $($_.LinkSpeed) $($_.Speed)" }`)
	want := "up 25 Gbps 25000000000\ndown 0 bps 0\ndisabled 0 bps 0\nloopback Unknown 0\nfabric 100 Gbps 100000000000\npolling 0 bps 0"
	if got := strings.TrimSpace(out); failures > 0 || got != want {
		t.Errorf("%d %s\n%s\nwant\n%s", failures, said, got, want)
	}
}
