package udp

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// namespaces are two network namespaces joined by a veth pair, made for one test.
type namespaces struct {
	t    testing.TB
	side [2]netns.NsHandle
	v4   [2]netip.Addr
	v6   [2]netip.Addr
}

// newNamespaces makes them with a link MTU; it skips the test where it may not.
func newNamespaces(t testing.TB, mtu int) *namespaces {
	t.Helper()
	systemtest.Required(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	n := &namespaces{t: t,
		v4: [2]netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2")},
		v6: [2]netip.Addr{netip.MustParseAddr("fd77::1"), netip.MustParseAddr("fd77::2")},
	}
	done := make(chan error)
	// A thread that has changed its namespace must not run other goroutines: this one ends with its goroutine.
	go func() {
		runtime.LockOSThread()
		done <- n.make(mtu)
	}()
	if err := <-done; err != nil {
		t.Skipf("needs network namespaces and veth: %v", err)
	}
	t.Cleanup(func() {
		n.side[0].Close()
		n.side[1].Close()
	})
	return n
}

func (n *namespaces) make(mtu int) error {
	for i := range n.side {
		ns, err := netns.New()
		if err != nil {
			return err
		}
		n.side[i] = ns
	}
	// The thread is in the second namespace now.
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "b", MTU: mtu}, PeerName: "a", PeerNamespace: netlink.NsFd(n.side[0])}
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	if err := n.configure("b", mtu, n.v4[1], n.v6[1]); err != nil {
		return err
	}
	if err := netns.Set(n.side[0]); err != nil {
		return err
	}
	return n.configure("a", mtu, n.v4[0], n.v6[0])
}

func (n *namespaces) configure(name string, mtu int, v4, v6 netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(l, mtu); err != nil {
		return err
	}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: v4.AsSlice(), Mask: net.CIDRMask(24, 32)}}); err != nil {
		return err
	}
	const noDAD = 0x02 // IFA_F_NODAD: usable at once
	a := &netlink.Addr{IPNet: &net.IPNet{IP: v6.AsSlice(), Mask: net.CIDRMask(64, 128)}, Flags: noDAD}
	if err := netlink.AddrAdd(l, a); err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// in runs f in one of the namespaces. Sockets that it opens stay there.
func (n *namespaces) in(side int, f func() error) {
	n.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := netns.Set(n.side[side])
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		n.t.Fatal(err)
	}
}

// pair opens a link with the same configuration on each side.
func (n *namespaces) pair(cfg Config, v6 bool) (links [2]Link) {
	return n.pairOf([2]Config{cfg, cfg}, v6)
}

// pairOf opens a link on each side, each with its own configuration.
func (n *namespaces) pairOf(cfg [2]Config, v6 bool) (links [2]Link) {
	n.t.Helper()
	for i := range links {
		c := cfg[i]
		c.Addr = n.v4[i]
		if v6 {
			c.Addr = n.v6[i]
		}
		n.in(i, func() (err error) {
			links[i], err = Open(c)
			return err
		})
		n.t.Cleanup(func() { links[i].Close() })
	}
	// The far end does not answer before the neighbours have resolved each other.
	warm := packets(routeTo(n.t, links[0], links[1]), links[0].Capabilities(), []byte("hello"))
	await.Eventually(n.t, "the veth pair carries packets", func() bool {
		sendAll(n.t, links[0], warm)
		receiveSome(n.t, links[1])
		return links[1].Stats().ReceivedPackets > 0
	})
	drain(n.t, links[1])
	return links
}
