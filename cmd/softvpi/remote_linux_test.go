package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// hosts are three network namespaces. The first is joined to each of the others by a pair of network interfaces.
type hosts struct{ ns [3]netns.NsHandle }

func newHosts(t *testing.T, mtu int) *hosts {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	h := &hosts{}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		done <- h.make(mtu)
	}()
	if err := <-done; err != nil {
		t.Skipf("needs network namespaces and veth: %v", err)
	}
	t.Cleanup(func() {
		for i := range h.ns {
			h.ns[i].Close()
		}
	})
	return h
}

func (h *hosts) make(mtu int) (err error) {
	for i := range h.ns {
		if h.ns[i], err = netns.New(); err != nil {
			return err
		}
	}
	for i := 1; i < len(h.ns); i++ {
		if err := netns.Set(h.ns[i]); err != nil {
			return err
		}
		near := fmt.Sprintf("v%d", i)
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v", MTU: mtu}, PeerName: near, PeerNamespace: netlink.NsFd(h.ns[0])}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		if err := configure("v", mtu, i, 2); err != nil {
			return err
		}
		if err := netns.Set(h.ns[0]); err != nil {
			return err
		}
		if err := configure(near, mtu, i, 1); err != nil {
			return err
		}
	}
	return nil
}

// configure gives an interface its addresses: 10.78.PAIR.SIDE and fd78:PAIR::SIDE.
func configure(name string, mtu, pair, side int) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(l, mtu); err != nil {
		return err
	}
	const noDAD = 0x02 // IFA_F_NODAD: usable at once
	for _, a := range []netlink.Addr{
		{IPNet: &net.IPNet{IP: net.IPv4(10, 78, byte(pair), byte(side)), Mask: net.CIDRMask(24, 32)}},
		{IPNet: &net.IPNet{IP: net.ParseIP(fmt.Sprintf("fd78:%d::%d", pair, side)), Mask: net.CIDRMask(64, 128)}, Flags: noDAD},
	} {
		if err := netlink.AddrAdd(l, &a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(l)
}

// in runs f on a host.
func (h *hosts) in(host int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := netns.Set(h.ns[host])
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// place returns a place whose processes run on a host.
func (h *hosts) place(t *testing.T, host int) place {
	p := newPlace(t)
	p.env = append(p.env, "XDG_RUNTIME_DIR="+p.dir)
	p.start = func(c *exec.Cmd) error { return h.in(host, c.Start) }
	return p
}

// remote starts a driver with one InfiniBand port on the fabric of another host.
func (p place) remote(t *testing.T, key, where, node, address string) {
	t.Helper()
	file := filepath.Join(p.dir, "config")
	config := fmt.Sprintf(`{"fabric": {"connect": %q, "key": %q}, "adapters": [{"name": "ib", "link": "cable", "node": %q, "address": %q}]}`, where, key, node, address)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.spawn(t, "up", "--config", file).until(t, "listening")
}

// Two drivers on two hosts, of which one has IPv4 and one IPv6 to the fabric on a third, with Ethernet's MTU: their
// ports come up with the full MTU of InfiniBand, and programs reach each other. A cut cable takes the port down, and
// it comes back by itself.
func TestDriversOnAFabricOfAnotherHost(t *testing.T) {
	systemtest.Mark(t)
	h := newHosts(t, 1500)
	middle, one, two := h.place(t, 0), h.place(t, 1), h.place(t, 2)
	file, key := filepath.Join(middle.dir, "net"), filepath.Join(middle.dir, "key")
	_, netlist, _ := call(t, "softvpi", "fabric", "generate", "star", "--hosts", "2")
	for name, text := range map[string]string{file: netlist, key: "a key for this test\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func() *process {
		x := middle.spawn(t, "fabric", "run", file, "--name", fmt.Sprintf("udp-%d", os.Getpid()), "--cables", "[::]:7069", "--cable-key",
			key, "--sm")
		x.until(t, "udp://[::]:7069")
		return x
	}
	fabric := run()
	one.remote(t, key, "udp://10.78.1.1", "node00000", "10.99.0.1")
	two.remote(t, key, "udp://[fd78:2::1]:7069", "node00001", "10.99.0.2")
	one.reaches(t, "Active")
	two.reaches(t, "Active")
	if p := one.port(t); p.MTU != 4096 {
		t.Errorf("MTU %d", p.MTU)
	}
	programs := func() {
		t.Helper()
		for _, c := range [][2][]string{
			{{"nd_rping", "-s", "-a", "10.99.0.1"}, {"nd_rping", "-c", "-V", "-a", "10.99.0.1", "-C", "20", "-S", "10000"}},
			{{"nd_write_bw", "-S", "10.99.0.1", "-s", "65536", "-n", "200"}, {"nd_write_bw", "-C", "10.99.0.1", "-s", "65536", "-n",
				"200"}},
		} {
			server := one.spawn(t, c[0]...)
			server.until(t, map[bool]string{true: "listening", false: "#qp"}[c[0][0] == "nd_rping"])
			if status, out, errs := two.run(t, c[1]...); status != 0 {
				t.Fatalf("%v: status %d: %s%s", c[1], status, out, errs)
			}
			server.cmd.Process.Kill()
			<-server.ended
		}
	}
	programs()
	set := func(do func(netlink.Link) error) {
		t.Helper()
		if err := h.in(1, func() error {
			l, err := netlink.LinkByName("v")
			if err != nil {
				return err
			}
			return do(l)
		}); err != nil {
			t.Fatal(err)
		}
	}
	set(netlink.LinkSetDown)
	one.reaches(t, "Down")
	set(netlink.LinkSetUp)
	one.reaches(t, "Active")
	programs()
	fabric.cmd.Process.Kill()
	<-fabric.ended
	two.reaches(t, "Down")
	run()
	one.reaches(t, "Active")
	two.reaches(t, "Active")
	programs()
}
