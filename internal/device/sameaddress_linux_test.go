package device

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestSameAddress: two adapters with one IP address on a wire are told of each other, by ARP and by neighbour discovery, once.
func TestSameAddress(t *testing.T) {
	for _, addr := range []string{"10.81.0.1", "fd81::1"} {
		t.Run(addr, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "sa")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			path := [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
			told := make(chan notify.Change, 8)
			at := netip.MustParseAddr(addr)
			var hosts [2]*Host
			for i := range hosts {
				s := link.Station{MAC: [6]byte{2, 0, 0, 0, 10, byte(i)}, Prefixes: []netip.Prefix{netip.PrefixFrom(at, at.BitLen()-8)}}
				l, err := datagram.Open(datagram.Config{Local: path[i], Remote: path[1-i], MTU: 1500, Stations: []link.Station{s}})
				if err != nil {
					t.Fatal(err)
				}
				hosts[i] = newHost(t, Config{Seed: uint64(i + 1)})
				hosts[i].add(t, AdapterConfig{Addr: at, MAC: s.MAC, Link: l})
				defer hosts[i].Subscribe(func(c notify.Change) {
					if c.Flags&notify.SameAddress != 0 {
						c.Adapter = uint32(i)
						told <- c
					}
				})()
			}
			seen := map[uint32]notify.Change{}
			await.Eventually(t, "both are told", func() bool {
				for _, h := range hosts {
					h.updateGIDs()
				}
				select {
				case c := <-told:
					if _, twice := seen[c.Adapter]; twice {
						t.Errorf("adapter %d is told twice", c.Adapter)
					}
					seen[c.Adapter] = c
				default:
				}
				return len(seen) == 2
			})
			for i, c := range seen {
				if c.Addr != at || c.MAC != [6]byte{2, 0, 0, 0, 10, byte(1 - i)} {
					t.Errorf("adapter %d is told of %+v", i, c)
				}
			}
		})
	}
}
