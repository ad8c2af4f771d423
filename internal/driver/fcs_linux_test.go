package driver

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestIgnoreFCS: a frame that its wire has corrupted has a wrong FCS: the function that receives it from a switch counts it as an
// error and drops it, or passes it on with IgnoreFCS 1 (WinOF 5.50, 4.1.14).
func TestIgnoreFCS(t *testing.T) {
	cfg := onWire(t, config.Adapter{Name: "a"})
	a := withGuest(t, &cfg, "02:00:00:00:00:01")
	other := config.Config{Adapters: []config.Adapter{{Name: "b", Generation: "mlx4"}}}
	b := withGuest(t, &other, "02:00:00:00:00:02")
	cfg.Adapters = append(cfg.Adapters, other.Adapters[0])
	for i := range cfg.Adapters {
		x := &cfg.Adapters[i]
		x.Link, x.Switch, x.Prefix, x.Address = config.LinkSwitch, "s", 24, netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
		x.NoProbes = true // which would be counted, too
	}
	d := start(t, cfg)
	defer stop(t, d)
	b.gets(t, "sound", func() { a.send(t, a.frame(b.mac, "sound")) })
	if err := d.host.SetImpairment(0, impair.Impairment{Corrupt: 1, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	received := func() (frames, errors uint64) {
		c := d.Status().Adapters[1].Ethernet.Counters
		return c["received_packets"], c["received_error_packets"]
	}
	for ignore := range uint64(2) {
		set(t, d, "b", "IgnoreFCS", fmt.Sprint(ignore))
		frames, errors := received()
		for n := range uint64(10) { // one by one: each is corrupted in another bit, some in the MACs
			a.send(t, a.frame(b.mac, fmt.Sprint("corrupt ", n)))
		}
		await.Eventually(t, "the frames are counted", func() bool {
			f, e := received()
			return e >= errors+8 && (f >= frames+7) == (ignore == 1)
		})
		if f, _ := received(); ignore == 0 && f != frames {
			t.Errorf("%d corrupt frames are passed on", f-frames)
		}
	}
}
