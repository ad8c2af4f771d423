package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestStaticRates: packets of an address handle leave at most at its static rate, unless the port is no faster; a code that names no
// rate is refused.
func TestStaticRates(t *testing.T) {
	for _, x := range []struct {
		speed uint64
		code  uint8
		kbps  uint32
		bad   bool
	}{
		{10e9, 0, 0, false}, {10e9, 2, 2_500_000, false}, {10e9, 5, 5_000_000, false}, {10e9, 3, 0, false}, {10e9, 16, 0, false},
		{100e9, 3, 10_000_000, false}, {10e9, 1, 0, true}, {10e9, 27, 0, true}, {10e9, 255, 0, true},
	} {
		a, b := whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{Speed: x.speed})
		av := command.AddressVector{Addr: command.AddrFrom(b.addr), StaticRate: x.code}
		h, err := a.c.CreateAH(bg, command.CreateAH{PD: a.pd, AV: av})
		if (err != nil) != x.bad {
			t.Errorf("code %d: %v", x.code, err)
		}
		if err != nil {
			continue
		}
		a.host.lock()
		if r := a.c.ahs.Get(h).route; r.Rate != x.kbps || (r.Pace != nil) != (x.kbps != 0) {
			t.Errorf("code %d at a port of %d b/s: %d kbit/s, want %d", x.code, x.speed, r.Rate, x.kbps)
		}
		a.host.unlock()
	}
}
