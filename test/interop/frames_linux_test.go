package interop

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/link/ethernet"
	"github.com/softvpi/softvpi/internal/testbed"
)

// framePings are the runs of rping over links of whole frames.
var framePings = []struct{ size, count int }{{64, 5}, {4097, 5}, {65535, 10}}

// tagged are the addresses of both ends in VLAN 100.
var tagged = []family{
	{"vlan/ipv4", netip.MustParseAddr("10.100.0.1"), netip.MustParseAddr("10.100.0.2")},
	{"vlan/ipv6", netip.MustParseAddr("fd64::1"), netip.MustParseAddr("fd64::2")},
}

// TestWholeFrames: an adapter that is a station of its own, on links of whole Ethernet frames behind QEMU's unix datagram sockets, against
// rxe, over IPv4 and IPv6, untagged and in a VLAN.
func TestWholeFrames(t *testing.T) {
	site(t)
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprintf("mtu%d/datagram", mtu), func(t *testing.T) {
			dir, err := os.MkdirTemp("", "dg") // t.TempDir may be too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			here, there := filepath.Join(dir, "here"), filepath.Join(dir, "there")
			g := bootOn(t, mtu, fmt.Sprintf("dgram,id=n0,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s", there, here))
			g.stations(t, func(s link.Station) (link.Link, error) {
				return datagram.Open(datagram.Config{Local: here, Remote: there, MTU: mtu, Stations: []link.Station{s}})
			})
			g.stop()
			t.Run("capture", func(t *testing.T) { g.checkCapture(t, fmt.Sprintf("datagram%d", mtu)) })
		})
	}
}

// testWholeFrames is that on the TAP interface of the segment: with addresses of the link's own, as those of tap0 belong to the system,
// and with the system's.
func testWholeFrames(t *testing.T, g *guest) {
	open := func(s link.Station) (link.Link, error) {
		return ethernet.Open(ethernet.Config{Interface: "tap0", Stations: []link.Station{s}})
	}
	g.stations(t, open)
	t.Run("the system's addresses", func(t *testing.T) {
		i, err := net.InterfaceByName("tap0")
		if err != nil {
			t.Fatal(err)
		}
		g.overLinks(t, families, 0, [6]byte(i.HardwareAddr), open)
	})
}

// stations runs rping with an adapter whose addresses the system does not have, untagged and in a VLAN.
func (g *guest) stations(t *testing.T, open func(link.Station) (link.Link, error)) {
	g.sh(t, "ip link add link eth0 name tagged type vlan id 100 && echo 0 >/proc/sys/net/ipv6/conf/tagged/accept_dad && "+
		"ip link set tagged up && ip addr add 10.100.0.2/24 dev tagged && ip addr add fd64::2/64 dev tagged") // rxe0 serves the VLANs of eth0 too
	own := []family{
		{"ipv4", netip.MustParseAddr("10.99.0.7"), theirs.v4}, {"ipv6", netip.MustParseAddr("fd99::7"), theirs.v6},
	}
	g.overLinks(t, own, 0, [6]byte{2, 0, 0, 0, 0x99, 7}, open)
	g.overLinks(t, tagged, 100, [6]byte{2, 0, 0, 0, 0x99, 8}, open)
}

// overLinks runs rping over each of families, with an adapter on a link that has one station.
func (g *guest) overLinks(t *testing.T, families []family, vlan uint16, mac [6]byte, open func(link.Station) (link.Link, error)) {
	for _, f := range families {
		g.stationsOfOurs = append(g.stationsOfOurs, f.ours)
		t.Run(f.name, func(t *testing.T) {
			bits := 24
			if f.ours.Is6() {
				bits = 64
			}
			l, err := open(link.Station{MAC: mac, VLAN: vlan, Prefixes: []netip.Prefix{netip.PrefixFrom(f.ours, bits)}})
			if err != nil {
				t.Fatal(err)
			}
			g.driver = testbed.DriverOf(t, device.AdapterConfig{Link: l, Addr: f.ours, MAC: mac})
			t.Cleanup(func() { g.driver = "" })
			g.pings(t, f, framePings)
		})
	}
}
