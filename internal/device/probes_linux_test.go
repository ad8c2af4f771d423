package device

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestProbes: an adapter that is added with an address which somebody else on the wire has is told so, once, and nothing goes from that
// address; the other's is used as before. Without probes both use it.
func TestProbes(t *testing.T) {
	for _, without := range []bool{false, true} {
		dir, err := os.MkdirTemp("", "pr")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		path := [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
		at := netip.MustParseAddr("10.81.0.1")
		told := make(chan notify.Change, 8)
		var ends [2]*program
		for i := range ends {
			mac := [6]byte{2, 0, 0, 0, 10, byte(i + 1)}
			cfg := datagram.Config{Local: path[i], Remote: path[1-i], MTU: 1500}
			if i == 0 { // which has the address, and is beyond asking for it
				cfg.Stations = []link.Station{{MAC: mac, Prefixes: []netip.Prefix{netip.PrefixFrom(at, 24)}}}
			}
			l, err := datagram.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			h := newHost(t, Config{Seed: uint64(i + 1)})
			if i == 1 {
				defer h.Subscribe(func(c notify.Change) {
					if c.Flags&notify.SameAddress != 0 {
						told <- c
					}
				})()
			}
			ends[i] = newProgram(t, h, h.add(t, AdapterConfig{Addr: at, MAC: mac, Link: l, NoProbes: without,
				Networks: []netip.Prefix{netip.PrefixFrom(at, 24)}}))
		}
		to := command.CreateAH{AV: command.AddressVector{Addr: command.AddrFrom(netip.MustParseAddr("10.81.0.9"))}}
		makes := func(p *program) error {
			r := to
			r.PD = p.pd
			_, err := p.c.CreateAH(bg, r)
			return err
		}
		if !without {
			await.Eventually(t, "the second is told", func() bool {
				ends[1].host.updateGIDs()
				return len(told) > 0
			})
			if c := <-told; c.Addr != at || c.MAC != [6]byte{2, 0, 0, 0, 10, 1} {
				t.Errorf("it is told of %+v", c)
			}
			if err := makes(ends[1]); codeOf(err) != command.AddrNotAvailable {
				t.Errorf("packets from the address that somebody else has: %v", err)
			}
		}
		for i, p := range ends {
			if i == 0 || without {
				p.check(makes(p))
			}
		}
	}
}
