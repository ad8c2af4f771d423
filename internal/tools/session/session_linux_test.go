package session

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// ownLoopback puts the test in a network namespace whose loopback interface has these IPv6 addresses.
func ownLoopback(t *testing.T, addrs ...string) {
	t.Helper()
	namespace.Own(t)
	lo, err := netlink.LinkByName("lo")
	for _, a := range addrs {
		if err == nil {
			// IFA_F_NODAD
			err = netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(a), Mask: net.CIDRMask(128, 128)}, Flags: 2})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecondAddressIsSaidForEverySystem(t *testing.T) {
	for system, want := range map[string]string{"linux": "softvpi up --adapter", "darwin": "ifconfig lo0", "windows": "add one"} {
		for _, a := range []string{"127.0.0.1", "::1"} {
			if got := second(system, netip.MustParseAddr(a)); !strings.Contains(got, want) {
				t.Errorf("%s, %s: %q, want %q", system, a, got, want)
			}
		}
	}
}

// Where the mode is left open and a driver runs that cannot serve the request, the tool says that it embeds an
// adapter. It says nothing where the user asked for that or no driver runs.
func TestEmbeddingBesideADriverIsSaid(t *testing.T) {
	ctx := testbed.Context(t)
	addrs := testbed.Addrs()
	driver, own := addrs[0], addrs[1]
	socket := testbed.DriverAt(t, driver)
	for _, c := range []struct {
		name, socket string
		mode         verbs.Mode
		dial         netip.Addr // zero: the tool is the server
		at           netip.Addr
		says         string
	}{
		{"serve at the driver's", socket, 0, netip.Addr{}, driver, ""},
		{"serve elsewhere", socket, 0, netip.Addr{}, own, "the driver has no adapter at " + own.String()},
		{"serve elsewhere, as asked for", socket, verbs.Embedded, netip.Addr{}, own, ""},
		{"serve without a driver", filepath.Join(t.TempDir(), "none"), 0, netip.Addr{}, own, ""},
		{"dial what the driver reaches", socket, 0, driver, netip.Addr{}, ""},
		{"dial from elsewhere", socket, 0, driver, own, "the driver has no adapter at " + own.String()},
	} {
		t.Setenv("SOFTVPI_SOCKET", c.socket)
		said := ""
		m := Mode{mode: c.mode, local: c.at, say: func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" }}
		var s *Session
		var err error
		if c.dial.IsValid() {
			s, err = Dial(ctx, m, netip.AddrPortFrom(c.dial, 7))
		} else {
			s, err = Serve(ctx, m, c.at)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(said, c.says) || c.says == "" && said != "" || strings.Count(said, "\n") > 1 {
			t.Errorf("%s: said %q, want %q once", c.name, said, c.says)
		}
	}
}

// To reach an address of this machine, Dial takes one of the driver's adapters where the driver serves that address
// and the mode allows it. An embedded adapter takes an address of the same network that is not the driver's. Dial
// fails where there is no such address or no route.
func TestDialAddressesOfThisMachine(t *testing.T) {
	systemtest.Mark(t)
	ownLoopback(t, "fd79::1", "fd79::2")
	ctx := testbed.Context(t)
	one, other, own := netip.IPv6Loopback(), netip.MustParseAddr("fd79::1"), netip.MustParseAddr("fd79::2")
	t.Setenv("SOFTVPI_SOCKET", testbed.DriverAt(t, one, other))
	for _, c := range []struct {
		name   string
		mode   Mode
		remote netip.Addr
		local  netip.Addr
		as     string
		want   error
	}{
		{"the driver's, on another network", Mode{}, one, other, "attached", nil},
		{"the driver's, embedded", Mode{mode: verbs.Embedded}, other, own, "embedded", nil},
		{"no other of the kind", Mode{mode: verbs.Embedded}, one, netip.Addr{}, "", nd.ErrInvalidAddress},
		{"the driver's, by name", Mode{local: one}, one, one, "attached", nil},
		{"embedded, by name", Mode{mode: verbs.Embedded, local: own}, one, own, "embedded", nil},
		{"no route, embedded", Mode{mode: verbs.Embedded}, netip.MustParseAddr("192.0.2.1"), netip.Addr{}, "", nd.ErrNetworkUnreachable},
		{"no route, attached", Mode{mode: verbs.Attached}, netip.MustParseAddr("192.0.2.1"), netip.Addr{}, "", nd.ErrNetworkUnreachable},
		// Dial only chooses the adapter; connecting there would be refused
		{"nobody's", Mode{mode: verbs.Embedded}, own, own, "embedded", nil},
	} {
		s, err := Dial(ctx, c.mode, netip.AddrPortFrom(c.remote, 7))
		if c.want != nil || err != nil {
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), netip.AddrPortFrom(c.remote, 7).String()) {
				t.Errorf("%s: %v, want %v with the server's address", c.name, err, c.want)
			}
			continue
		}
		if s.Local != c.local || s.Mode() != c.as {
			t.Errorf("%s: %s from %v, want %s from %v", c.name, s.Mode(), s.Local, c.as, c.local)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDialFromTheAdapterThatReaches: a client whose driver has Ethernet and InfiniBand adapters dials from the one
// that reaches the server, whatever their order, be the server's port of the same driver or of another one.
func TestDialFromTheAdapterThatReaches(t *testing.T) {
	ctx := testbed.Context(t)
	eth, ib := testbed.Addrs(), netip.MustParseAddr("10.98.0.1")
	far, nobody := netip.MustParseAddr("10.98.0.3"), netip.MustParseAddr("10.98.0.99")
	rack := driverbed.Config(t, config.Adapter{Name: "far", Link: config.LinkCable, Address: far})
	rack.Fabric = &config.Fabric{Name: filepath.Base(filepath.Dir(rack.Socket)), Netlist: filepath.Join(t.TempDir(), "net")}
	const netlist = "Switch\t3 \"sw\"\n[1]\t\"h1\"[1]\n[2]\t\"h2\"[1]\n[3]\t\"h3\"[1]\n\n" +
		"Ca\t1 \"h1\"\n[1]\t\"sw\"[1]\n\nCa\t1 \"h2\"\n[1]\t\"sw\"[2]\n\nCa\t1 \"h3\"\n[1]\t\"sw\"[3]\n"
	if err := os.WriteFile(rack.Fabric.Netlist, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	driverbed.Start(t, rack)
	cable := func(name string, at netip.Addr) config.Adapter {
		return config.Adapter{Name: name, Link: config.LinkCable, Address: at}
	}
	ports := []config.Adapter{{Name: "e", Address: eth[0]}, {Name: "f", Address: eth[1]}, cable("i", ib), cable("j", ib.Next())}
	for name, order := range map[string][]int{"Ethernet first": {0, 1, 2, 3}, "InfiniBand first": {2, 3, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			var adapters []config.Adapter
			for _, i := range order {
				adapters = append(adapters, ports[i])
			}
			cfg := driverbed.Config(t, adapters...)
			cfg.Fabric = &config.Fabric{Connect: rack.Fabric.Name}
			d := driverbed.Start(t, cfg)
			await.Eventually(t, "the ports come up", func() bool {
				up := 0
				for _, a := range d.Status().Adapters {
					if a.Up {
						up++
					}
				}
				return up == len(adapters)
			})
			t.Setenv("SOFTVPI_SOCKET", cfg.Socket)
			for _, c := range []struct {
				remote netip.Addr
				want   []netip.Addr
			}{
				{eth[1], []netip.Addr{eth[1]}}, // its owner, as Linux routes local addresses
				{ib.Next(), []netip.Addr{ib, ib.Next()}}, {far, []netip.Addr{ib, ib.Next()}},
				{nobody, eth[:]},
			} {
				p, err := Open(ctx, Mode{mode: verbs.Attached})
				if err != nil {
					t.Fatal(err)
				}
				got, err := p.LocalAddress(c.remote)
				if err != nil || !slices.Contains(c.want, got) {
					t.Errorf("towards %v: %v (%v), want one of %v", c.remote, got, err, c.want)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
