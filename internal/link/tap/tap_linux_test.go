package tap

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

var stationMAC = eth.MAC{2, 0, 0, 0, 9, 1}

func mustOpen(t *testing.T, cfg Config) Link {
	t.Helper()
	l, err := Open(cfg)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		t.Skip("needs /dev/net/tun")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// withSystem opens a TAP with a station, on whose other side the system has addresses in the same networks.
func withSystem(t *testing.T) (Link, netlink.Link) {
	t.Helper()
	namespace.Own(t)
	l := mustOpen(t, Config{Name: "nic", MTU: 2000, Up: true, Stations: []link.Station{{MAC: stationMAC,
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")}}}})
	i, err := netlink.LinkByName("nic")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"10.0.0.254/24", "fd00::fe/64"} {
		addr, err := netlink.ParseAddr(a)
		if err == nil {
			addr.Flags = unix.IFA_F_NODAD
			err = netlink.AddrAdd(i, addr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return l, i
}

// ping sends an echo request of the system's to an address.
func ping(t *testing.T, to netip.Addr) {
	t.Helper()
	family, protocol, kind := unix.AF_INET, unix.IPPROTO_ICMP, byte(eth.ICMPEcho)
	var sa unix.Sockaddr = &unix.SockaddrInet4{}
	if to.Is4() {
		sa.(*unix.SockaddrInet4).Addr = to.As4()
	} else {
		family, protocol, kind, sa = unix.AF_INET6, unix.IPPROTO_ICMPV6, eth.ICMPv6EchoRequest, &unix.SockaddrInet6{Addr: to.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	m := eth.ICMP{Type: kind, Data: []byte("ping")}
	if err := unix.Sendto(fd, m.Append(nil), 0, sa); err != nil && !errors.Is(err, unix.ENETUNREACH) {
		t.Fatal(err)
	}
}

// TestStation_AnswersTheSystem: the system finds a station's MAC by ARP and neighbour discovery, so that its echo request arrives;
// that is handed up, and not answered here.
func TestStation_AnswersTheSystem(t *testing.T) {
	systemtest.Mark(t)
	l, i := withSystem(t)
	in, none := make([]frame.In, 64), make([]link.Unreachable, 4)
	for _, a := range []string{"10.0.0.1", "fd00::1"} {
		to := netip.MustParseAddr(a)
		await.Eventually(t, "the echo request arrives", func() bool {
			ping(t, to)
			l.Errors(none)
			n, err := l.Receive(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range in[:n] {
				if bytes.HasSuffix(p.Data, []byte("ping")) && eth.MAC(p.Data) == stationMAC && p.Raw {
					return true
				}
			}
			return false
		})
		list, err := netlink.NeighList(i.Attrs().Index, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, n := range list {
			found = found || n.IP.Equal(to.AsSlice()) && bytes.Equal(n.HardwareAddr, stationMAC[:])
		}
		if !found {
			t.Errorf("%v is not in the system's table of neighbours: %v", to, list)
		}
	}
	if s := l.Stats(); s.SentPackets != 0 || s.ReceivedPackets == 0 {
		t.Errorf("%+v", s)
	}
}

// TestRoute_ToTheSystem: the link finds the system's MAC, and datagrams in its frames arrive at a socket.
func TestRoute_ToTheSystem(t *testing.T) {
	systemtest.Mark(t)
	l, _ := withSystem(t)
	in, none := make([]frame.In, 64), make([]link.Unreachable, 4)
	for _, a := range []string{"10.0.0.254", "fd00::fe"} {
		to := netip.MustParseAddr(a)
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 7777)))
		if err != nil {
			t.Fatal(err)
		}
		r := &frame.Route{Dst: to, SrcPort: 5, DstPort: 7777}
		if err := l.Prepare(r); err != nil {
			t.Fatal(err)
		}
		await.Eventually(t, "the system answers", func() bool {
			if _, err := l.Receive(in); err != nil {
				t.Fatal(err)
			}
			l.Errors(none)
			return r.DstMAC != [6]byte{}
		})
		d := eth.Datagram{Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, DstPort: r.DstPort, HopLimit: 9}
		h := eth.Ethernet{Dst: r.DstMAC, Src: r.SrcMAC, Type: d.Type()}
		out := make([]frame.Out, 1)
		o := &out[0]
		o.Reset(r)
		o.HeadStart = uint16(frame.HeadRoom - d.HeaderLen() - h.Len())
		h.Put(o.Head[o.HeadStart:])
		d.Put(o.Head[frame.HeadRoom-d.HeaderLen():], 5)
		o.Payload = []byte("hello")
		udp := eth.UDP(o.Head[frame.HeadRoom-eth.UDPLen:])
		udp.SetChecksum(eth.UDPChecksum(r.Src, r.Dst, append(bytes.Clone(o.Head[frame.HeadRoom-eth.UDPLen:frame.HeadRoom]), o.Payload...)))
		if n, err := l.Send(out); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		b := make([]byte, 100)
		if n, from, err := c.ReadFromUDPAddrPort(b); err != nil || string(b[:n]) != "hello" || from.Addr().Unmap() != r.Src || from.Port() != 5 {
			t.Errorf("%q from %v, %v", b[:n], from, err)
		}
		_ = c.Close()
	}
}

// TestOpen_MakesAndRemovesInterface: the interface has the name and the MTU asked for, and goes with the link; one that was
// made to stay is used, and stays.
func TestOpen_MakesAndRemovesInterface(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	l := mustOpen(t, Config{MTU: 3000})
	i, err := netlink.LinkByName(l.Name())
	if err != nil || i.Attrs().MTU != 3000 || l.Capabilities().MTU != 3000 || i.Attrs().Flags&net.FlagUp != 0 {
		t.Fatalf("%+v, %v", i, err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := netlink.LinkByName(l.Name()); err == nil {
		t.Error("the interface is left after Close")
	}
	stays := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "stays"}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI}
	if err := errors.Join(netlink.LinkAdd(stays), netlink.LinkSetMTU(stays, 1400)); err != nil {
		t.Fatal(err)
	}
	if l := mustOpen(t, Config{Name: "stays"}); l.Capabilities().MTU != 1400 || l.Close() != nil {
		t.Errorf("%+v", l.Capabilities())
	}
	if _, err := netlink.LinkByName("stays"); err != nil {
		t.Error("an interface that was made to stay is gone")
	}
}

// TestErrors_FollowsTheMTU: a longer MTU that the interface gets is the link's, and frames of that length are handed up and sent.
func TestErrors_FollowsTheMTU(t *testing.T) {
	systemtest.Mark(t)
	l, i := withSystem(t)
	in, none := make([]frame.In, 64), make([]link.Unreachable, 4)
	if err := netlink.LinkSetMTU(i, 4000); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the MTU is another", func() bool {
		l.Errors(none)
		return l.Capabilities().MTU == 4000
	})
	r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
	if err := l.Prepare(r); err != nil {
		t.Fatal(err)
	}
	o := datagram(r)
	o.Payload = make([]byte, 3900)
	if n, err := l.Send([]frame.Out{*o}); n != 1 || err != nil || l.Stats().SentPackets != 1 {
		t.Errorf("%d sent, %v, %+v", n, err, l.Stats())
	}
	c, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := make([]byte, 3900)
	copy(long[len(long)-4:], "last")
	await.Eventually(t, "a long frame arrives", func() bool {
		_, _ = c.Write(long) // the first waits for its neighbour
		l.Errors(none)
		n, err := l.Receive(in)
		return err == nil && slices.ContainsFunc(in[:n], func(p frame.In) bool { return bytes.HasSuffix(p.Data, []byte("last")) })
	})
	if l.Stats().ReceiveTruncated != 0 {
		t.Errorf("%+v", l.Stats())
	}
}

// TestSend_InterfaceDown: what the interface does not take is lost and counted.
func TestSend_InterfaceDown(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	l := mustOpen(t, Config{Stations: []link.Station{{MAC: stationMAC, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}}})
	r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
	if err := l.Prepare(r); err != nil {
		t.Fatal(err)
	}
	out := make([]frame.Out, 3)
	for i := range out {
		out[i].Reset(r)
		out[i].Payload = make([]byte, 60)
	}
	if n, err := l.Send(out); n != 3 || err != nil || l.Stats().SendErrors != 3 {
		t.Errorf("%d sent, %v, %+v", n, err, l.Stats())
	}
}

// TestOpen_Refused: typed errors name the field.
func TestOpen_Refused(t *testing.T) {
	for field, cfg := range map[string]Config{"Name": {Name: strings.Repeat("x", 16)}, "MTU": {MTU: 70000}} {
		var e *station.FieldError
		if _, err := Open(cfg); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%v, want an error about %s", err, field)
		}
	}
}

// TestSendReceive_NoAllocation: the data path allocates nothing.
func TestSendReceive_NoAllocation(t *testing.T) {
	systemtest.Mark(t)
	l, _ := withSystem(t)
	r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
	if err := l.Prepare(r); err != nil {
		t.Fatal(err)
	}
	out, in := make([]frame.Out, 8), make([]frame.In, 32)
	for i := range out {
		out[i].Reset(r)
		out[i].Payload = make([]byte, 1000)
	}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = l.Send(out)
		_, _ = l.Receive(in)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestJoin_ThroughASwitchThatSnoops: a bridge that passes a group's frames only to ports that want them (RFC 4541) passes them to
// who has joined, and to no other port, over IPv4 and IPv6.
func TestJoin_ThroughASwitchThatSnoops(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "switch"}}
	if err := netlink.LinkAdd(bridge); err != nil {
		t.Skipf("no bridge: %v", err)
	}
	// It queries from its link-local address, which it is not to check first.
	if err := errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/switch/accept_dad", []byte("0"), 0), netlink.LinkSetUp(bridge)); err != nil {
		t.Fatal(err)
	}
	// A bridge that queries itself heeds the answers, once it has waited for them.
	out, err := exec.Command("ip", "link", "set", "switch", "type", "bridge", "mcast_query_response_interval", "1",
		"mcast_startup_query_interval", "100", "mcast_startup_query_count", "10", "mcast_snooping", "1", "mcast_querier", "1").CombinedOutput()
	if err != nil {
		t.Skipf("no snooping bridge: %v: %s", err, out)
	}
	var ports []Link
	for i := range 3 {
		l := mustOpen(t, Config{Name: fmt.Sprintf("port%d", i), Up: true, Promiscuous: i == 2, Stations: []link.Station{{
			MAC: eth.MAC{2, 0, 0, 0, 9, byte(i)}, Prefixes: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", i+1)),
				netip.MustParsePrefix(fmt.Sprintf("fe80::%d/64", i+1))}}}})
		port, err := netlink.LinkByName(l.Name())
		if err := errors.Join(err, netlink.LinkSetMaster(port, bridge)); err != nil {
			t.Fatal(err)
		}
		ports = append(ports, l)
	}
	from, to, third := ports[0], ports[1], ports[2]
	in, none := make([]frame.In, 64), make([]link.Unreachable, 4)
	for _, a := range []string{"239.1.2.3", "ff15::77"} {
		group := netip.MustParseAddr(a)
		r := &frame.Route{Dst: group}
		if err := errors.Join(to.Capabilities().Multicaster.Join(group), from.Prepare(r)); err != nil {
			t.Fatal(err)
		}
		// arrives sends a frame to the group and says whether who has joined, and the third, have got some.
		arrives := func() (there, beside bool) {
			if n, err := from.Send([]frame.Out{*datagram(r)}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			for _, l := range ports {
				l.Errors(none)
				n, err := l.Receive(in)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range in[:n] {
					if eth.MAC(p.Data) == eth.MAC(r.DstMAC) && bytes.HasSuffix(p.Data, []byte("to the group")) {
						there, beside = there || l == to, beside || l == third
					}
				}
			}
			return there, beside
		}
		await.Eventually(t, "the bridge passes the group's frames to who has joined alone", func() bool {
			there, beside := arrives()
			return there && !beside
		})
		for range 100 {
			if there, beside := arrives(); !there || beside {
				t.Fatalf("%v: who has joined gets the frame: %v, and another: %v", group, there, beside)
			}
		}
	}
}

// datagram returns a UDP datagram on a route.
func datagram(r *frame.Route) *frame.Out {
	o := &frame.Out{}
	o.Reset(r)
	d := eth.Datagram{Src: r.Src, Dst: r.Dst, SrcPort: 1, DstPort: 2, HopLimit: 9}
	h := eth.Ethernet{Dst: r.DstMAC, Src: r.SrcMAC, Type: d.Type()}
	o.Payload = []byte("to the group")
	o.HeadStart = uint16(frame.HeadRoom - d.HeaderLen() - h.Len())
	h.Put(o.Head[o.HeadStart:])
	d.Put(o.Head[frame.HeadRoom-d.HeaderLen():], len(o.Payload))
	return o
}

// TestWireState_InAnotherNamespace: the wire is there while the interface is up, also in a network namespace from which no news come.
func TestWireState_InAnotherNamespace(t *testing.T) {
	systemtest.Mark(t)
	l, i := withSystem(t) // on a thread of the test's own
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if err := netns.Set(here); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetNsFd(i, int(there)); err != nil {
		t.Fatal(err)
	}
	h, err := netlink.NewHandleAt(there)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	none := make([]link.Unreachable, 4)
	state := func(up bool) func() bool {
		return func() bool {
			l.Errors(none)
			return l.Capabilities().Carrier.WireState().Up == up
		}
	}
	await.Eventually(t, "moving takes the interface down", state(false))
	if i, err = h.LinkByName("nic"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.LinkSetUp(i); err != nil {
			t.Fatal(err)
		}
		await.Eventually(t, "the interface is up", state(true))
		if err := h.LinkSetDown(i); err != nil {
			t.Fatal(err)
		}
		await.Eventually(t, "the interface is down", state(false))
	}
}
