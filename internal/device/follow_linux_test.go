package device

import (
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// ownNetwork puts the test into a network namespace of its own and returns a veth interface that has the addresses.
func ownNetwork(t *testing.T, addrs ...string) netlink.Link {
	t.Helper()
	namespace.Own(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "roce0", MTU: 9000}, PeerName: "roce1"}))
	l, err := netlink.LinkByName("roce0")
	must(err)
	peer, err := netlink.LinkByName("roce1")
	must(err)
	must(netlink.LinkSetUp(peer))
	for _, a := range addrs {
		address(t, l, a, true)
	}
	must(netlink.LinkSetUp(l))
	// The kernel tells of the carrier a moment after it has come.
	await.Eventually(t, "roce0 has a carrier", func() bool {
		now, err := netlink.LinkByName("roce0")
		must(err)
		return now.Attrs().OperState == netlink.OperUp
	})
	return l
}

func address(t *testing.T, l netlink.Link, addr string, there bool) {
	t.Helper()
	ip, n, err := net.ParseCIDR(addr)
	if err != nil {
		t.Fatal(err)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: n.Mask}}
	if ip.To4() == nil {
		a.Flags = 2 // IFA_F_NODAD: usable at once
	}
	do := netlink.AddrDel
	if there {
		do = netlink.AddrAdd
	}
	if err := do(l, a); err != nil {
		t.Fatal(err)
	}
}

// TestGIDsFollowTheInterface: the GID table follows the addresses of the interface while the adapter runs, and peers
// reach the port at each of them. Without the port's own address the port is down.
func TestGIDsFollowTheInterface(t *testing.T) {
	systemtest.Mark(t)
	l := ownNetwork(t, "10.77.0.1/24", "10.77.0.50/24")
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	p := newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr("10.77.0.1"), FollowInterface: true}))
	gids := func() (out []netip.Addr) {
		t.Helper()
		list, err := p.c.GIDs(bg, p.adapter)
		p.check(err)
		for _, g := range list {
			out = append(out, netip.AddrFrom16(g.GID).Unmap())
		}
		return out
	}
	want := func(addrs ...string) {
		t.Helper()
		got := gids()
		ok := len(got) == len(addrs)
		for i := range addrs {
			ok = ok && got[i].String() == addrs[i]
		}
		if !ok {
			t.Fatalf("GIDs %v, want %v", got, addrs)
		}
	}
	want("10.77.0.1", "10.77.0.50")
	address(t, l, "fd77::1/64", true)
	address(t, l, "10.77.0.50/24", false)
	h.updateGIDs()
	p.event(command.EventGIDChange)
	want("10.77.0.1", "fd77::1")
	address(t, l, "10.77.0.51/24", true)
	h.updateGIDs()
	p.event(command.EventGIDChange)
	want("10.77.0.1", "fd77::1", "10.77.0.51")
}

// TestIPv6AndFurtherAddresses: programs connect over IPv6, also to the second address of a port.
func TestIPv6AndFurtherAddresses(t *testing.T) {
	systemtest.Mark(t)
	ownNetwork(t, "fd77::1/64", "fd77::2/64", "fd77::3/64")
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	x := newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr("fd77::1"), Path: PathWire}))
	y := newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr("fd77::2"), Addrs: []netip.Addr{netip.MustParseAddr("fd77::3")},
		Path: PathWire}))
	operations(t, connect(x.idleQP(), y.idleQP()))
	y.addr = netip.MustParseAddr("fd77::3")
	operations(t, connect(x.idleQP(), y.idleQP()))
	if m := h.Snapshot().Adapters[0].Info.ActiveMTU; m != 4096 {
		t.Errorf("active MTU %d on an interface of MTU 9000, want 4096", m)
	}
}

// TestPortGoesDown: a port whose own address is removed is down until the address is back, and programs get an event
// of each change.
func TestPortGoesDown(t *testing.T) {
	systemtest.Mark(t)
	l := ownNetwork(t, "10.77.0.1/24")
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	p := newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr("10.77.0.1"), FollowInterface: true}))
	address(t, l, "10.77.0.1/24", false)
	h.updateGIDs()
	p.event(command.EventPortDown)
	if v := counter(t, p, "Link down events"); v != 1 {
		t.Errorf("link down events %d, want 1", v)
	}
	if h.Snapshot().Adapters[0].Up {
		t.Error("the port is up without its address")
	}
	address(t, l, "10.77.0.1/24", true)
	h.updateGIDs()
	p.event(command.EventPortActive)
	if !h.Snapshot().Adapters[0].Up {
		t.Error("the port is down with its address")
	}
}

// TestAddressVanishes: a port of sockets is down while no interface has its address, though it does not follow the others of its
// interface: IPv6 addresses go when the interface goes down, and are back before the port is up.
func TestAddressVanishes(t *testing.T) {
	systemtest.Mark(t)
	l := ownNetwork(t, "fd77::1/64", "10.77.0.1/24")
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	for _, addr := range []string{"fd77::1", "10.77.0.1"} {
		h.add(t, AdapterConfig{Addr: netip.MustParseAddr(addr)})
	}
	want := func(when string, six, four bool) {
		t.Helper()
		h.updateGIDs()
		s := h.Snapshot().Adapters
		if s[0].Up != six || s[1].Up != four {
			t.Errorf("%s: the port at IPv6 is up: %v, want %v; at IPv4: %v, want %v", when, s[0].Up, six, s[1].Up, four)
		}
	}
	want("at first", true, true)
	if err := netlink.LinkSetDown(l); err != nil {
		t.Fatal(err)
	}
	want("the interface is down", false, false)
	if err := netlink.LinkSetUp(l); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the port at IPv4 is up", func() bool {
		h.updateGIDs()
		return h.Snapshot().Adapters[1].Up
	})
	want("the interface is up without its address of IPv6", false, true)
	address(t, l, "fd77::1/64", true)
	want("the address is back", true, true)
	address(t, l, "10.77.0.1/24", false)
	want("the address of IPv4 is gone", true, false)
}

// TestInterfaceOfAnotherNamespace: a port that a thread in a network namespace of its own has made keeps its state, MTU and addresses
// when a thread looks that sees other interfaces.
func TestInterfaceOfAnotherNamespace(t *testing.T) {
	systemtest.Mark(t)
	ownNetwork(t, "10.77.0.1/24", "10.77.0.2/24")
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	for i, follow := range []bool{true, false} {
		addr := netip.MustParseAddr("10.77.0.1")
		if !follow {
			addr = addr.Next()
		}
		h.add(t, AdapterConfig{Addr: addr, FollowInterface: follow, UDPPort: uint16(4791 - i)})
	}
	before := h.Snapshot().Adapters
	var elsewhere sync.WaitGroup
	elsewhere.Go(h.updateGIDs)
	elsewhere.Wait()
	for i, now := range h.Snapshot().Adapters {
		if !now.Up || now.Info.LinkMTU != before[i].Info.LinkMTU {
			t.Errorf("adapter %d is up: %v, with MTU %d; want as before: %v, %d", i, now.Up, now.Info.LinkMTU, before[i].Up, before[i].Info.LinkMTU)
		}
		if got, want := h.Addresses(uint32(i)).Served, 2-i; len(got) != want {
			t.Errorf("adapter %d serves %v, want %d addresses", i, got, want)
		}
	}
}

// TestAnyAddress: a port at an address that no interface ever had, but a local route (AnyIP), is up.
func TestAnyAddress(t *testing.T) {
	systemtest.Mark(t)
	ownNetwork(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	to := net.IPNet{IP: net.IPv4(198, 51, 100, 0), Mask: net.CIDRMask(24, 32)}
	local := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: &to, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL,
		Scope: netlink.SCOPE_HOST}
	if err := netlink.RouteAdd(local); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	h.add(t, AdapterConfig{Addr: netip.MustParseAddr("198.51.100.7")})
	h.updateGIDs()
	if !h.Snapshot().Adapters[0].Up {
		t.Error("the port is down")
	}
}

// TestWildcardListenerFollowsAddresses: a listener at :: takes requests for addresses of either family that the port
// gets later; one at 0.0.0.0 takes those for IPv4 addresses only.
func TestWildcardListenerFollowsAddresses(t *testing.T) {
	systemtest.Mark(t)
	l := ownNetwork(t, "10.77.0.1/24")
	lo, err := netlink.LinkByName("lo") // the other side's addresses are where x does not look
	if err != nil {
		t.Fatal(err)
	}
	address(t, lo, "10.78.0.2/32", true)
	address(t, lo, "fd78::2/128", true)
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	x := newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr("10.77.0.1"), FollowInterface: true, Path: PathWire}))
	g := newHost(t, Config{Seed: 2, GIDInterval: -1})
	y := newProgram(t, g, g.add(t, AdapterConfig{Addr: netip.MustParseAddr("10.78.0.2"),
		Addrs: []netip.Addr{netip.MustParseAddr("fd78::2")}, Path: PathWire}))
	listen := func(any netip.Addr) command.Endpoint {
		id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.TCP})
		x.check(err)
		at, err := x.c.CMBind(bg, id, command.Endpoint{Addr: command.AddrFrom(any)})
		x.check(err)
		x.check(x.c.CMListen(bg, id, 0))
		return at
	}
	both, four := listen(netip.IPv6Unspecified()), listen(netip.IPv4Unspecified())
	address(t, l, "10.77.0.7/24", true)
	address(t, l, "fd77::1/64", true)
	h.updateGIDs()
	x.event(command.EventGIDChange)
	for _, c := range []struct {
		at   command.Endpoint
		to   string
		want command.EventType
	}{
		{both, "10.77.0.7", command.EventConnectRequest}, {four, "10.77.0.7", command.EventConnectRequest},
		{both, "fd77::1", command.EventConnectRequest}, {four, "fd77::1", command.EventRejected},
	} {
		id, err := y.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
		y.check(err)
		c.at.Addr = command.AddrFrom(netip.MustParseAddr(c.to))
		y.dial(command.CMConnect{ID: id, QP: y.idleQP().q.Handle, Remote: c.at, Param: usualParam})
		if c.want == command.EventConnectRequest {
			x.check(x.c.Destroy(bg, command.KindCM, x.event(c.want).NewID))
		}
		y.event(command.EventRejected)
	}
}

// TestMTUFollowsTheInterface (IBA 9.6.1: the path MTU of a connection is fixed): the port follows the MTU of its interface
// while it runs, and when it is restarted. New connections have the new path MTU. Of a running one, messages that
// still fit arrive, and a longer one ends it.
func TestMTUFollowsTheInterface(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	set := func(mtu int) {
		t.Helper()
		if err := netlink.LinkSetMTU(lo, mtu); err != nil {
			t.Fatal(err)
		}
	}
	h, g := newHost(t, Config{Seed: 1, GIDInterval: -1}), newHost(t, Config{Seed: 2, GIDInterval: -1})
	// The loop's thread is in another namespace, where it would open sockets for source ports.
	x := newProgram(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr(), Path: PathWire, SourcePorts: -1}))
	y := newProgram(t, g, g.add(t, AdapterConfig{Addr: loopback.Addr(), Path: PathWire, SourcePorts: -1}))
	follow := func(mtu int, path uint32) {
		t.Helper()
		set(mtu)
		h.updateGIDs()
		g.updateGIDs()
		if i := h.Snapshot().Adapters[0].Info; i.ActiveMTU != path || i.LinkMTU != uint32(mtu) {
			t.Errorf("with an interface MTU of %d the path MTU is %d and the link's %d, want %d", mtu, i.ActiveMTU, i.LinkMTU, path)
		}
		x.event(command.EventPortActive) // programs are to ask again
		y.event(command.EventPortActive)
	}
	connected := func(path uint32) *connected {
		t.Helper()
		c := connect(x.idleQP(), y.idleQP())
		if a, b := c.a.info().Attr.MTU, c.b.info().Attr.MTU; a != path || b != path {
			t.Errorf("a new connection has path MTU %d and %d, want %d", a, b, path)
		}
		operations(t, c)
		return c
	}
	old := connected(4096)
	follow(1500, 1024)
	connected(1024)
	src, dst := x.buffer(8192), y.buffer(8192)
	old.b.postRecv(21, dst.sge(0, 8192))
	old.a.postSend(22, ring.OpSend, src.sge(0, 1000))
	wantSuccess(t, old.a.cq.next(), 22, ring.CQSend)
	wantSuccess(t, old.b.cq.next(), 21, ring.CQRecv)
	old.b.postRecv(23, dst.sge(0, 8192))
	old.a.postSend(24, ring.OpSend, src.sge(0, 8192))
	if e := old.a.cq.next(); e.Status != ring.RetryExceeded {
		t.Errorf("a message longer than the interface carries ends with status %d, want retries exceeded", e.Status)
	}
	follow(9000, 4096)
	connected(4096)
	set(1500)
	for _, h := range []*Host{h, g} {
		if err := h.SetAdapterState(0, false); err != nil {
			t.Fatal(err)
		}
		if err := h.Configure(0, Settings{RoceMaxFrameSize: 4096}); err == nil {
			t.Error("a frame size beyond the interface's present MTU is accepted")
		}
		if err := h.SetAdapterState(0, true); err != nil {
			t.Fatal(err)
		}
		if i := h.Snapshot().Adapters[0].Info; i.ActiveMTU != 1024 {
			t.Errorf("after a restart the path MTU is %d, want 1024", i.ActiveMTU)
		}
	}
	small := make(chan struct{}, 1)
	defer h.Subscribe(func(c notify.Change) {
		if c.Flags&notify.SmallMTU != 0 {
			small <- struct{}{}
		}
	})()
	set(200)
	h.updateGIDs()
	h.updateGIDs() // which is no change
	<-small
	if i := h.Snapshot().Adapters[0].Info; i.ActiveMTU != 256 {
		t.Errorf("on an interface that carries nothing the path MTU is %d, want the least, 256", i.ActiveMTU)
	}
}
