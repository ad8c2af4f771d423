package driver

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
)

// TestVXLAN_TwoPorts: of two ports of a device that have different UDP ports for VXLAN only the first handles it, until they have the same
// or the first does without (WinOF 5.50, 4.1.15); also from the start.
func TestVXLAN_TwoPorts(t *testing.T) {
	cfg := overSockets(t)[0]
	second := cfg.Adapters[0]
	second.Name, second.Address = "second", netip.MustParseAddr("192.0.2.3")
	second.Datagram, second.Peer = second.Datagram+"2", second.Peer+"2"
	cfg.Adapters = append(cfg.Adapters, second)
	for i := range cfg.Adapters {
		one := config.Config{Adapters: cfg.Adapters[i : i+1]}
		withGuest(t, &one, []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}[i])
		cfg.Adapters[i].Device = "card"
	}
	const number, offload = "*VxlanUDPPortNumber", "*EncapsulatedPacketTaskOffloadVxlan"
	d := start(t, cfg)
	check := func(when string, first, second int, why string) {
		t.Helper()
		for i, want := range []int{first, second} {
			if got := d.host.Ethernet(uint32(i)).Config.TunnelVXLAN; got != want {
				t.Errorf("%s: port %d has the offload %d, want %d", when, i+1, got, want)
			}
		}
		if got := d.Status().Adapters[1].Ethernet.VXLANOff; got != why {
			t.Errorf("%s: %q, want %q", when, got, why)
		}
	}
	check("as it is", 1, 1, "")
	for _, c := range []struct {
		name, key, value string
		first, second    int
		why              string
	}{
		{"second", number, "8472", 1, 0, `"port", the other port of the device, has UDP port 4789`},
		{"port", number, "8472", 1, 1, ""},
		{"port", number, "4790", 1, 0, `"port", the other port of the device, has UDP port 4790`},
		{"port", offload, "0", 0, 1, ""},
		{"second", offload, "0", 0, 0, ""},
		{"second", offload, "1", 0, 1, ""},
		{"port", offload, "1", 1, 0, `"port", the other port of the device, has UDP port 4790`},
	} {
		if _, err := d.Set(c.name, c.key, &c.value); err != nil {
			t.Fatal(err)
		}
		check(c.name+" "+c.key+" "+c.value, c.first, c.second, c.why)
	}
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	check("started anew", 1, 0, `"port", the other port of the device, has UDP port 4790`)
}
