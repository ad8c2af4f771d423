package device

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/link/tap"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// whole is a kind of link of whole frames: open opens the two ends of one, each with a station.
type whole struct {
	name string
	open func(t *testing.T, stations [2]link.Station) [2]link.Link
}

// on returns a network of adapters on two such links, with the stations' first addresses.
func (w whole) on(stations [2]link.Station) network {
	return network{w.name, func(t testing.TB, cfg AdapterConfig) (a, b *program) {
		links := w.open(t.(*testing.T), stations)
		var p [2]*program
		for i, l := range links {
			h := newHost(t, Config{Seed: uint64(i + 1)})
			c := cfg
			c.Link, c.Addr, c.MAC = l, stations[i].Prefixes[0].Addr(), stations[i].MAC
			p[i] = newProgram(t, h, h.add(t, c))
		}
		return p[0], p[1]
	}}
}

// stationsOf are two stations on an Ethernet, in a VLAN unless vlan is 0.
func stationsOf(vlan uint16, v6 bool) (s [2]link.Station) {
	for i := range s {
		s[i] = link.Station{MAC: [6]byte{2, 0, 0, 0, 7, byte(i + 1)}, VLAN: vlan,
			Prefixes: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.78.0.%d/24", i+1))}}
		if v6 {
			s[i].Prefixes[0] = netip.MustParsePrefix(fmt.Sprintf("fd78::%d/64", i+1))
		}
	}
	return s
}

// eachStation runs a test with stations of both families, untagged and in a VLAN.
func eachStation(t *testing.T, test func(t *testing.T, stations [2]link.Station)) {
	for _, vlan := range []uint16{0, 100} {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("vlan %d, ipv6 %v", vlan, v6), func(t *testing.T) { test(t, stationsOf(vlan, v6)) })
		}
	}
}

// overDatagrams joins two links by their sockets.
func overDatagrams(t *testing.T, stations [2]link.Station) (l [2]link.Link) {
	dir, err := os.MkdirTemp("", "dg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for i := range l {
		l[i], err = datagram.Open(datagram.Config{Local: path[i], Remote: path[1-i], MTU: 4200, Stations: stations[i : i+1]})
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// TestWholeFrames_Datagrams: every operation of two adapters over links of whole frames: unix datagram sockets.
func TestWholeFrames_Datagrams(t *testing.T) {
	eachStation(t, func(t *testing.T, stations [2]link.Station) {
		operations(t, pairs(t, whole{"datagrams", overDatagrams}.on(stations), AdapterConfig{}))
	})
}

// must ends a test if something that it needs has failed.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// bridged makes a bridge in the test's namespace, and TAPs that are its ports.
func bridged(t *testing.T, stations ...[]link.Station) (l []link.Link) {
	t.Helper()
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "switch", MTU: 4200}}
	must(t, netlink.LinkAdd(bridge), netlink.LinkSetUp(bridge))
	for i, s := range stations {
		cfg := tap.Config{Name: fmt.Sprintf("port%d", i), MTU: 4200, Up: true, Stations: s}
		p, err := tap.Open(cfg)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
			t.Skip("needs /dev/net/tun")
		}
		must(t, err)
		t.Cleanup(func() { _ = p.Close() })
		port, err := netlink.LinkByName(cfg.Name)
		must(t, err, netlink.LinkSetMaster(port, bridge))
		l = append(l, p)
	}
	return l
}

// overTAPs joins two links by a bridge of the system.
func overTAPs(t *testing.T, stations [2]link.Station) [2]link.Link {
	namespace.Own(t)
	return [2]link.Link(bridged(t, stations[:1], stations[1:]))
}

// TestWholeFrames_BridgedTAPs: every operation of two adapters over TAPs that a bridge joins.
func TestWholeFrames_BridgedTAPs(t *testing.T) {
	systemtest.Mark(t)
	eachStation(t, func(t *testing.T, stations [2]link.Station) {
		operations(t, pairs(t, whole{"bridged TAPs", overTAPs}.on(stations), AdapterConfig{}))
	})
}
