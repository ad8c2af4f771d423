package device

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/link/ethernet"
	"github.com/softvpi/softvpi/internal/link/tap"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/testbed/await"
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
			s := &stations[i]
			c.Link, c.Addr, c.MAC, c.VLAN, c.Networks = l, s.Prefixes[0].Addr(), s.MAC, s.VLAN, s.Prefixes
			p[i] = newProgram(t, h, h.add(t, c))
		}
		return p[0], p[1]
	}}
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
		l[i], err = datagram.Open(datagram.Config{Local: path[i], Remote: path[1-i], MTU: 4200, Stations: stations[i : i+1],
			Patience: await.Limit}) // a busy machine is no machine that has stopped
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

// cabled are two network namespaces, joined by a veth pair whose ends are called wire.
type cabled struct {
	t    *testing.T
	side [2]netns.NsHandle
}

func newCabled(t *testing.T, mtu int) *cabled {
	t.Helper()
	systemtest.Required(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	c := &cabled{t: t}
	done := make(chan error)
	// A thread that has changed its namespace must not run other goroutines: this one ends with its goroutine.
	go func() {
		runtime.LockOSThread()
		done <- c.make(mtu)
	}()
	if err := <-done; err != nil {
		t.Skipf("needs network namespaces and veth: %v", err)
	}
	t.Cleanup(func() { must(t, c.side[0].Close(), c.side[1].Close()) })
	return c
}

func (c *cabled) make(mtu int) (err error) {
	for i := range c.side {
		if c.side[i], err = netns.New(); err != nil {
			return err
		}
	}
	// The thread is in the second namespace now.
	return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "wire", MTU: mtu}, PeerName: "wire", PeerMTU: uint32(mtu),
		PeerNamespace: netlink.NsFd(c.side[0])})
}

// in runs do in one of the namespaces. Sockets that it opens stay there.
func (c *cabled) in(side int, do func() error) {
	c.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := netns.Set(c.side[side])
		if err == nil {
			err = do()
		}
		done <- err
	}()
	if err := <-done; errors.Is(err, errNoVLAN) {
		c.t.Skip(err)
	} else if err != nil {
		c.t.Fatal(err)
	}
}

// up brings the interface of a side up, and its loopback. If the station is the system's, the interface gets its MAC and
// addresses, in its VLAN.
func (c *cabled) up(side int, s *link.Station) {
	c.t.Helper()
	c.in(side, func() error {
		l, err := netlink.LinkByName("wire")
		if err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err = errors.Join(err, netlink.LinkSetUp(lo)); err != nil || s == nil {
			return errors.Join(err, netlink.LinkSetUp(l))
		}
		if err := errors.Join(netlink.LinkSetHardwareAddr(l, net.HardwareAddr(s.MAC[:])), netlink.LinkSetUp(l)); err != nil {
			return err
		}
		if s.VLAN != 0 {
			v := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "tagged", ParentIndex: l.Attrs().Index}, VlanId: int(s.VLAN)}
			if err := netlink.LinkAdd(v); err != nil {
				return errNoVLAN
			}
			if l, err = v, netlink.LinkSetUp(v); err != nil {
				return err
			}
		}
		for _, p := range s.Prefixes {
			a, err := netlink.ParseAddr(p.String())
			if err != nil {
				return err
			}
			a.Flags = unix.IFA_F_NODAD
			if err := netlink.AddrAdd(l, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// errNoVLAN says that the kernel has no interfaces for VLANs.
var errNoVLAN = errors.New("the kernel has no VLAN interfaces (8021q)")

// opened opens a link on the interface of a side.
func (c *cabled) opened(side int, stations ...link.Station) (l link.Link) {
	c.t.Helper()
	c.in(side, func() (err error) {
		l, err = ethernet.Open(ethernet.Config{Interface: "wire", Stations: stations})
		return err
	})
	c.t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestWholeFrames_Veth: every operation of two adapters over the interfaces of a veth pair, with addresses that the system does
// not have, and with those that it has.
func TestWholeFrames_Veth(t *testing.T) {
	systemtest.Mark(t)
	for _, system := range []bool{false, true} {
		t.Run(fmt.Sprintf("the system's addresses %v", system), func(t *testing.T) {
			eachStation(t, func(t *testing.T, stations [2]link.Station) {
				n := whole{"veth", func(t *testing.T, stations [2]link.Station) (l [2]link.Link) {
					c := newCabled(t, 4200)
					for i := range l {
						if c.up(i, nil); system {
							c.up(i, &stations[i])
						}
					}
					for i := range l {
						l[i] = c.opened(i, stations[i])
					}
					return l
				}}.on(stations)
				operations(t, pairs(t, n, AdapterConfig{}))
			})
		})
	}
}

// TestWholeFrames_WithUDP: every operation between an adapter on whole frames and one on UDP sockets of the system, which gives
// frames their headers its own way, and coalesces them; either of them connects.
func TestWholeFrames_WithUDP(t *testing.T) {
	systemtest.Mark(t)
	for _, mtu := range []int{1500, 9000} {
		for _, system := range []bool{false, true} {
			for _, udpConnects := range []bool{false, true} {
				t.Run(fmt.Sprintf("mtu %d, the system's addresses %v, udp connects %v", mtu, system, udpConnects), func(t *testing.T) {
					eachStation(t, func(t *testing.T, stations [2]link.Station) { withUDP(t, mtu, system, udpConnects, stations) })
				})
			}
		}
	}
}

func withUDP(t *testing.T, mtu int, system, udpConnects bool, stations [2]link.Station) {
	c := newCabled(t, mtu)
	if c.up(0, nil); system {
		c.up(0, &stations[0])
	}
	c.up(1, &stations[1])
	c.in(1, func() error { // the kernel tells of the carrier a moment after it has come
		if !await.Until(func() bool {
			i, ok := udp.InterfaceOf(stations[1].Prefixes[0].Addr())
			return ok && i.Flags&net.FlagRunning != 0
		}) {
			return errors.New("the interface has no carrier")
		}
		return nil
	})
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	cfg := AdapterConfig{Link: c.opened(0, stations[0]), Addr: stations[0].Prefixes[0].Addr(), MAC: stations[0].MAC, VLAN: stations[0].VLAN}
	a := newProgram(t, h, h.add(t, cfg))
	var index uint32
	c.in(1, func() (err error) {
		index, err = g.AddAdapter(AdapterConfig{Addr: stations[1].Prefixes[0].Addr()})
		return err
	})
	b := newProgram(t, g, index)
	if udpConnects {
		a, b = b, a
	}
	operations(t, connect(a.qp(command.CreateQP{}, a.cq(256)), b.qp(command.CreateQP{}, b.cq(256))))
}
