package device

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
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

// TestProbes_Linux: the questions for duplicate addresses are those of Linux (RFC 5227, RFC 4862). An adapter whose address a Linux
// system on the wire has is told so.
func TestProbes_Linux(t *testing.T) {
	systemtest.Mark(t)
	for _, at := range []netip.Prefix{netip.MustParsePrefix("10.82.0.1/24"), netip.MustParsePrefix("fd82::1/64")} {
		t.Run(at.Addr().String(), func(t *testing.T) {
			c := newCabled(t, 1500)
			system := link.Station{MAC: [6]byte{2, 0, 0, 0, 11, 1}, Prefixes: []netip.Prefix{at}}
			c.up(0, &system)
			c.up(1, nil)
			told := make(chan notify.Change, 8)
			h := newHost(t, Config{Seed: 1})
			defer h.Subscribe(func(c notify.Change) {
				if c.Flags&notify.SameAddress != 0 {
					told <- c
				}
			})()
			h.add(t, AdapterConfig{Addr: at.Addr(), MAC: [6]byte{2, 0, 0, 0, 11, 2}, Link: c.opened(1),
				Networks: []netip.Prefix{at.Masked()}})
			await.Eventually(t, "it is told", func() bool { h.updateGIDs(); return len(told) > 0 })
			if n := <-told; n.Addr != at.Addr() || n.MAC != system.MAC {
				t.Errorf("it is told of %+v", n)
			}
		})
	}
}

// TestProbes_LinuxAsks: a Linux system that asks for an IPv6 address of an adapter (RFC 4862 5.4) does not use it. The adapter is beyond
// asking: if both asked at once, both might give it up.
func TestProbes_LinuxAsks(t *testing.T) {
	systemtest.Mark(t)
	at := netip.MustParsePrefix("fd82::2/64")
	c := newCabled(t, 1500)
	c.up(0, nil)
	c.up(1, nil)
	h := newHost(t, Config{Seed: 1})
	p := newProgram(t, h, h.add(t, AdapterConfig{Addr: at.Addr(), MAC: [6]byte{2, 0, 0, 0, 11, 2}, Link: c.opened(1), NoProbes: true,
		Networks: []netip.Prefix{at.Masked()}}))
	a, err := netlink.ParseAddr(at.String())
	p.check(err)
	var l netlink.Link
	c.in(0, func() (err error) {
		if l, err = netlink.LinkByName("wire"); err == nil {
			err = netlink.AddrAdd(l, a)
		}
		return err
	})
	await.Eventually(t, "the system finds that its address is taken", func() (failed bool) {
		c.in(0, func() error {
			list, err := netlink.AddrList(l, netlink.FAMILY_V6)
			for _, x := range list {
				failed = failed || x.Equal(*a) && x.Flags&unix.IFA_F_DADFAILED != 0
			}
			return err
		})
		return failed
	})
}
