package nd_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// behindRouter puts the test in a network namespace whose only way out, but for its
// own subnets 10.79.1.0/24 and fd79:1::/64, is a router in a namespace of its own:
//
//	10.79.2.0/24, fd79:2::/64   the router's other subnet, where nobody is
//	10.79.3.0/24                dropped by the router without a word
//	10.79.4.0/24, fd79:4::/64   no network that the router knows
func behindRouter(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread()
	before, err := netns.Get()
	must(err)
	t.Cleanup(func() {
		if err := netns.Set(before); err != nil {
			t.Error(err)
			return // the thread ends with its goroutine
		}
		before.Close()
		runtime.UnlockOSThread()
	})
	router, err := netns.New()
	if err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	t.Cleanup(func() { router.Close() })
	must(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	must(os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	plug(t, "b0", "b1", "10.79.2.1/24", "fd79:2::1/64")
	route(t, &netlink.Route{Dst: subnet("10.79.3.0/24"), Type: 6}) // RTN_BLACKHOLE

	own, err := netns.New()
	must(err)
	t.Cleanup(func() { own.Close() })
	a := plug(t, "a0", "a1", "10.79.1.2/24", "10.79.1.3/24", "fd79:1::2/64", "fd79:1::3/64")
	peer, err := netlink.LinkByName("a1")
	must(err)
	must(netlink.LinkSetNsFd(peer, int(router)))
	must(netns.Set(router))
	addresses(t, "a1", "10.79.1.1/24", "fd79:1::1/64")
	must(netns.Set(own))
	for dst, via := range map[string]string{
		"10.79.2.0/24": "10.79.1.1", "10.79.3.0/24": "10.79.1.1", "10.79.4.0/24": "10.79.1.1",
		"fd79:2::/64": "fd79:1::1", "fd79:4::/64": "fd79:1::1",
	} {
		route(t, &netlink.Route{Dst: subnet(dst), Gw: net.ParseIP(via), LinkIndex: a.Attrs().Index})
	}
}

func subnet(s string) *net.IPNet {
	_, n, err := net.ParseCIDR(s)
	if err != nil {
		panic(err)
	}
	return n
}

func route(t *testing.T, r *netlink.Route) {
	t.Helper()
	if err := netlink.RouteAdd(r); err != nil {
		t.Fatalf("route %v: %v", r.Dst, err)
	}
}

// plug makes a veth pair, and gives its first end the addresses.
func plug(t *testing.T, name, peer string, addrs ...string) netlink.Link {
	t.Helper()
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: peer}); err != nil {
		t.Fatal(err)
	}
	other, err := netlink.LinkByName(peer)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(other); err != nil {
		t.Fatal(err)
	}
	return addresses(t, name, addrs...)
}

func addresses(t *testing.T, name string, addrs ...string) netlink.Link {
	t.Helper()
	for _, n := range []string{"lo", name} {
		l, err := netlink.LinkByName(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
	l, _ := netlink.LinkByName(name)
	for _, a := range addrs {
		ip, n, err := net.ParseCIDR(a)
		if err != nil {
			t.Fatal(err)
		}
		v := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: n.Mask}}
		if ip.To4() == nil {
			v.Flags = 2 // IFA_F_NODAD: usable at once
		}
		if err := netlink.AddrAdd(l, v); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// Connecting to where nobody answers: the status says why, within the documented time, and the message names the
// address. No answer means the time-out of 10 s; an error from a router or the system ends the attempt before.
// Embedded and attached, over IPv4 and IPv6.
func TestUnreachableDestinations(t *testing.T) {
	systemtest.Mark(t)
	behindRouter(t)
	var adapters []*nd.Adapter
	for _, family := range [][2]string{{"10.79.1.2", "10.79.1.3"}, {"fd79:1::2", "fd79:1::3"}} {
		h, err := verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: netip.MustParseAddr(family[0])}}})
		ok(t, err)
		t.Cleanup(func() { ok(t, h.Close()) })
		socket := testbed.DriverAt(t, netip.MustParseAddr(family[1]))
		attached, err := verbs.Attach(testbed.Context(t), socket)
		ok(t, err)
		t.Cleanup(func() { ok(t, attached.Close()) })
		for i, h := range []*verbs.Host{h, attached} {
			p := nd.NewProvider(h)
			t.Cleanup(func() { ok(t, p.Close()) })
			adapters = append(adapters, must(p.OpenAdapterAt(netip.MustParseAddr(family[i])))(t))
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, c := range []struct {
		name string
		to   [2]string // for each family
		want error
	}{
		{"no route", [2]string{"192.0.2.1", "2001:db8::1"}, nd.ErrNetworkUnreachable},
		{"the router has no route", [2]string{"10.79.4.9", "fd79:4::9"}, nd.ErrNetworkUnreachable},
		{"nobody on the router's subnet", [2]string{"10.79.2.9", "fd79:2::9"}, nd.ErrHostUnreachable},
		{"nobody on this subnet", [2]string{"10.79.1.9", "fd79:1::9"}, nd.ErrHostUnreachable},
		{"nothing on the UDP port", [2]string{"10.79.1.1", "fd79:1::1"}, nd.ErrConnectionRefused},
		{"no answer", [2]string{"10.79.3.9", ""}, nd.ErrIOTimeout},
	} {
		for i, a := range adapters {
			if c.to[i/2] == "" {
				continue
			}
			e := newEnd(t, a, endConfig{})
			to := netip.AddrPortFrom(netip.MustParseAddr(c.to[i/2]), 7)
			wg.Go(func() {
				begin := time.Now()
				err := e.connector.Connect(context.Background(), e.qp, to, full)
				took := time.Since(begin)
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", c.name, err, c.want)
				} else if !strings.Contains(err.Error(), to.String()) {
					t.Errorf("%s: error %q does not name %v", c.name, err, to)
				}
				// An attempt that ends before the time-out was ended by an answer, so the statuses
				// bound the times.
				if c.want == nd.ErrIOTimeout && took < 9500*time.Millisecond {
					t.Errorf("%s: gave up after %v, want 10 s", c.name, took)
				}
				t.Logf("%s: after %v: %v", c.name, took.Round(time.Millisecond), err)
			})
		}
	}
}

// An adapter with addresses of both families reaches both, using its address of the same family.
func TestConnectByTheOtherFamily(t *testing.T) {
	systemtest.Mark(t)
	behindRouter(t)
	at := netip.MustParseAddr
	h, err := verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{
		{Addr: at("10.79.1.2"), Addrs: []netip.Addr{at("fd79:1::2")}}, {Addr: at("fd79:1::3"), Addrs: []netip.Addr{at("10.79.1.3")}},
	}})
	ok(t, err)
	t.Cleanup(func() { ok(t, h.Close()) })
	p := nd.NewProvider(h)
	t.Cleanup(func() { ok(t, p.Close()) })
	server, client := must(p.OpenAdapterAt(at("10.79.1.2")))(t), must(p.OpenAdapterAt(at("fd79:1::3")))(t)
	for _, c := range [][2]string{{"10.79.1.2", "10.79.1.3"}, {"fd79:1::2", "fd79:1::3"}} {
		ctx := testbed.Context(t)
		x, y := newEnd(t, server, endConfig{}), newEnd(t, client, endConfig{})
		l := must(server.Listen(netip.AddrPortFrom(at(c[0]), 0), 0))(t)
		accepted := x.accept(ctx, l, full)
		ok(t, y.connector.Connect(ctx, y.qp, must(l.GetLocalAddress())(t), full))
		ok(t, y.connector.CompleteConnect(ctx))
		ok(t, accepted())
		if from := must(x.connector.GetPeerAddress())(t); from.Addr() != at(c[1]) {
			t.Errorf("connected from %v, want %s", from, c[1])
		}
		ok(t, x.qp.Receive(1, []nd.SGE{x.mr.SGE(0, 16)}))
		ok(t, y.qp.Send(2, []nd.SGE{y.mr.SGE(0, 16)}, 0))
		x.want(t, nd.RequestReceive, nd.StatusSuccess)
		ok(t, l.Close())
	}
}
