package linktest

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Namespaces are two network namespaces joined by a veth pair, whose ends are named a and b, made for one test.
type Namespaces struct {
	t    testing.TB
	side [2]netns.NsHandle
	V4   [2]netip.Addr
	V6   [2]netip.Addr
}

// NewNamespaces makes them with a link MTU; it skips the test where it may not.
func NewNamespaces(t testing.TB, mtu int) *Namespaces {
	t.Helper()
	systemtest.Required(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	n := &Namespaces{t: t,
		V4: [2]netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2")},
		V6: [2]netip.Addr{netip.MustParseAddr("fd77::1"), netip.MustParseAddr("fd77::2")},
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

func (n *Namespaces) make(mtu int) error {
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
	if err := n.configure("b", mtu, n.V4[1], n.V6[1]); err != nil {
		return err
	}
	if err := netns.Set(n.side[0]); err != nil {
		return err
	}
	return n.configure("a", mtu, n.V4[0], n.V6[0])
}

func (n *Namespaces) configure(name string, mtu int, v4, v6 netip.Addr) error {
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

// In runs f in one of the namespaces, on a thread that ends with it. Sockets that it opens stay there.
func (n *Namespaces) In(side int, f func() error) {
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

// Pair opens a link on each side, and returns when they carry packets.
func Pair[L link.Link](n *Namespaces, v6 bool, open func(side int, addr netip.Addr) (L, error)) (links [2]L) {
	n.t.Helper()
	addrs := n.V4
	if v6 {
		addrs = n.V6
	}
	for i := range links {
		n.In(i, func() (err error) {
			links[i], err = open(i, addrs[i])
			return err
		})
		n.t.Cleanup(func() { links[i].Close() })
	}
	// The far end does not answer before the neighbours have resolved each other.
	warm := Packets(Route(n.t, links[0], netip.AddrPortFrom(addrs[1], 0)), links[0].Capabilities(), []byte("hello"))
	await.Eventually(n.t, "the veth pair carries packets", func() bool {
		SendAll(n.t, links[0], warm)
		ReceiveSome(n.t, links[1])
		return links[1].Stats().ReceivedPackets > 0
	})
	Drain(n.t, links[1])
	return links
}
