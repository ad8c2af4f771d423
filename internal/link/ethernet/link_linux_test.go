package ethernet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// onVeth makes a veth pair in a namespace of the test's own: on "near" the system has 10.0.0.254 and fd00::fe, "far" is for
// links.
func onVeth(t testing.TB) (near, far netlink.Link) {
	t.Helper()
	systemtest.Required(t)
	namespace.Own(t)
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near", MTU: 1500}, PeerName: "far"}); err != nil {
		t.Skipf("no veth pair: %v", err)
	}
	near, err := netlink.LinkByName("near")
	must(t, err)
	far, err = netlink.LinkByName("far")
	must(t, err, netlink.LinkSetUp(near), netlink.LinkSetUp(far))
	address(t, near, "10.0.0.254/24")
	address(t, near, "fd00::fe/64")
	return near, far
}

func address(t testing.TB, l netlink.Link, prefix string) {
	t.Helper()
	a, err := netlink.ParseAddr(prefix)
	must(t, err)
	a.Flags = unix.IFA_F_NODAD
	must(t, netlink.AddrAdd(l, a))
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, cfg Config, stations ...link.Station) *etherLink {
	t.Helper()
	cfg.Stations = stations
	l, err := Open(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close(), l.Close()) })
	return l.(*etherLink)
}

func at(n byte, vlan uint16, prefixes ...string) link.Station {
	s := link.Station{MAC: [6]byte{2, 0, 0, 0, 8, n}, VLAN: vlan}
	for _, p := range prefixes {
		s.Prefixes = append(s.Prefixes, netip.MustParsePrefix(p))
	}
	return s
}

// receiveUntil receives and tends until is says that it was the last frame.
func receiveUntil(t *testing.T, what string, is func(f []byte) bool, links ...*etherLink) {
	t.Helper()
	in, none := make([]frame.In, 32), make([]link.Unreachable, 4)
	await.Eventually(t, what, func() bool {
		done := false
		for _, l := range links {
			l.Errors(none)
			n, err := l.Receive(in)
			must(t, err)
			for _, p := range in[:n] {
				done = is(p.Data) || done
			}
		}
		return done
	})
}

// udpIn returns the datagram in a frame.
func udpIn(t *testing.T, f []byte) (ip eth.IPv4, udp eth.UDP, data []byte, ok bool) {
	t.Helper()
	_, b, err := eth.ParseEthernet(f)
	must(t, err)
	ip, payload, err := eth.ParseIPv4(b)
	if err != nil || ip.Protocol() != eth.ProtocolUDP {
		return nil, nil, nil, false
	}
	udp, data, err = eth.ParseUDP(payload)
	return ip, udp, data, err == nil
}

// TestReceive_CoalescedBurst: a burst that the system passes on as one packet arrives as the datagrams that it consists of, with
// headers as on a wire.
func TestReceive_CoalescedBurst(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t)
	l := mustOpen(t, Config{Interface: "far"}, at(1, 0, "10.0.0.1/24"))
	c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 0, 0, 254)}, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4791})
	must(t, err)
	defer c.Close()
	raw, err := c.SyscallConn()
	must(t, err)
	var failed error
	must(t, raw.Control(func(fd uintptr) {
		failed = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, 1000),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE))
	}), failed)
	sent := make([]byte, 40_500)
	for i := range sent {
		sent[i] = byte(i * 7 / 13)
	}
	_, err = c.Write(sent)
	must(t, err)
	var got []byte
	n, first := uint16(0), uint16(0)
	receiveUntil(t, "the burst arrives", func(f []byte) bool {
		ip, udp, data, ok := udpIn(t, f)
		if !ok {
			return false
		}
		if n == 0 {
			first = ip.ID()
		}
		if !ip.ChecksumOK() || ip.ID() != first+n || udp.Checksum() != 0 || len(data) != min(1000, len(sent)-len(got)) {
			t.Fatalf("datagram %d: IP % x, UDP % x", n, []byte(ip), []byte(udp))
		}
		got = append(got, data...)
		n++
		return len(got) == len(sent)
	}, l)
	if !bytes.Equal(got, sent) {
		t.Error("the data differs")
	}
	if s := l.Stats(); s.ReceivedPackets < 41 || s.ReceiveTruncated != 0 {
		t.Errorf("%+v", s)
	}
	if l.receiver.got > 8 {
		t.Errorf("%d messages: the system did not coalesce the burst", l.receiver.got)
	}
}

// TestReceive_ChecksumLeftUndone: of what a socket sends over a virtual interface the checksum is left to the interface: that of
// TCP is filled in, that of UDP left out.
func TestReceive_ChecksumLeftUndone(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t)
	l := mustOpen(t, Config{Interface: "far"}, at(1, 0, "10.0.0.1/24", "fd00::1/64"))
	for _, to := range []string{"10.0.0.1", "fd00::1"} {
		dst := netip.MustParseAddr(to)
		c, err := net.Dial("udp", netip.AddrPortFrom(dst, 9).String())
		must(t, err)
		_, err = c.Write([]byte("hello"))
		must(t, err, c.Close())
		family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: 9, Addr: netip.MustParseAddr("10.0.0.1").As4()})
		if dst.Is6() {
			family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: 9, Addr: dst.As16()}
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		if err := unix.Connect(fd, sa); !errors.Is(err, unix.EINPROGRESS) {
			t.Fatal(err)
		}
		seen := map[uint8]bool{}
		receiveUntil(t, "a datagram and a connection request arrive", func(f []byte) bool {
			_, b, err := eth.ParseEthernet(f)
			must(t, err)
			var protocol uint8
			var body []byte
			if h, p, err := eth.ParseIPv4(b); err == nil {
				protocol, body = h.Protocol(), p
				if protocol == eth.ProtocolTCP && eth.PseudoChecksum(h.Src(), h.Dst(), protocol, p) != 0 {
					t.Errorf("TCP checksum: % x", p)
				}
			} else if h, p, err := eth.ParseIPv6(b); err == nil {
				protocol, body = h.NextHeader(), p
				if protocol == eth.ProtocolTCP && eth.PseudoChecksum(h.Src(), h.Dst(), protocol, p) != 0 {
					t.Errorf("TCP checksum: % x", p)
				}
			}
			if protocol == eth.ProtocolUDP && eth.UDP(body).Checksum() != 0 {
				t.Errorf("UDP checksum: % x", body)
			}
			seen[protocol] = true
			return seen[eth.ProtocolUDP] && seen[eth.ProtocolTCP]
		}, l)
		unix.Close(fd)
	}
}

// packets are frames of n bytes on a route, with the payload's first bytes counting from 0.
func packets(r *frame.Route, count, n int) []frame.Out {
	out := make([]frame.Out, count)
	for i := range out {
		o := &out[i]
		o.Reset(r)
		h := eth.Ethernet{Dst: r.DstMAC, Src: r.SrcMAC, Tagged: r.VLAN != 0, TCI: r.VLAN, Type: 0x88b5}
		o.HeadStart = uint16(frame.HeadRoom - h.Len())
		h.Put(o.Head[o.HeadStart:])
		o.Payload = make([]byte, n-h.Len())
		binary.BigEndian.PutUint32(o.Payload, uint32(i))
	}
	return out
}

// known waits until a route's neighbour is known.
func known(t *testing.T, r *frame.Route, links ...*etherLink) {
	t.Helper()
	in, none := make([]frame.In, 32), make([]link.Unreachable, 4)
	await.Eventually(t, "the neighbour answers", func() bool {
		for _, l := range links {
			l.Errors(none)
			_, err := l.Receive(in)
			must(t, err)
		}
		return r.DstMAC != [6]byte{}
	})
}

// TestStations_NeitherGetsTheOthers: of several stations on one interface, in the same and in another link, every frame says by
// its MAC and VLAN whom it is for, and no link gets those for stations of another, unless it is promiscuous.
func TestStations_NeitherGetsTheOthers(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t)
	x := mustOpen(t, Config{Interface: "far"}, at(1, 0, "10.0.0.1/24"), at(2, 0, "10.0.0.2/24"), at(2, 7, "10.0.0.2/24"))
	y := mustOpen(t, Config{Interface: "far"}, at(3, 0, "10.0.0.3/24"))
	all := mustOpen(t, Config{Interface: "far", Promiscuous: true})
	from := mustOpen(t, Config{Interface: "near"}, at(9, 0, "10.0.0.9/24"), at(9, 7, "10.0.0.9/24"))
	type to struct {
		mac  eth.MAC
		vlan uint16
	}
	want := map[to]int{}
	var routes []*frame.Route
	for n, vlan := range []uint16{0, 0, 0, 7} {
		r := &frame.Route{Src: netip.MustParseAddr("10.0.0.9"), Dst: netip.AddrFrom4([4]byte{10, 0, 0, byte(n%3 + 1)}), VLAN: vlan}
		if vlan == 7 {
			r.Dst = netip.MustParseAddr("10.0.0.2")
		}
		must(t, from.Prepare(r))
		known(t, r, from, x, y)
		want[to{r.DstMAC, r.VLAN}] = 0
		routes = append(routes, r)
	}
	for n, r := range routes {
		if sent, err := from.Send(packets(r, n+1, 200)); sent != n+1 || err != nil {
			t.Fatal(sent, err)
		}
	}
	if len(want) != 4 {
		t.Fatalf("the stations are at %v", want)
	}
	count := func(left int, own func(d to) bool) func(f []byte) bool {
		return func(f []byte) bool {
			h, _, err := eth.ParseEthernet(f)
			must(t, err)
			if h.Type != 0x88b5 {
				return false
			}
			d := to{h.Dst, h.TCI}
			if !own(d) {
				t.Errorf("a frame for %v arrives at the link of another", d)
			}
			want[d]++
			left--
			return left == 0
		}
	}
	receiveUntil(t, "the frames of its three stations arrive", count(1+2+4, func(d to) bool { return d.mac != x.station(3) }), x)
	receiveUntil(t, "the frames of its station arrive", count(3, func(d to) bool { return d.mac == x.station(3) }), y)
	for mac, n := range map[to]int{{x.station(1), 0}: 1, {x.station(2), 0}: 2, {x.station(3), 0}: 3, {x.station(2), 7}: 4} {
		if want[mac] != n {
			t.Errorf("%d frames for %v, want %d", want[mac], mac, n)
		}
	}
	clear(want)
	receiveUntil(t, "the promiscuous link gets all", count(10, func(to) bool { return true }), all)
	must(t, x.RemoveStation(x.station(1), 0))
	r := &frame.Route{Src: netip.MustParseAddr("10.0.0.9"), Dst: netip.MustParseAddr("10.0.0.1")}
	must(t, from.Prepare(r)) // its MAC is known from before
	if n, err := from.Send(packets(r, 5, 200)); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	r = &frame.Route{Src: netip.MustParseAddr("10.0.0.9"), Dst: netip.MustParseAddr("10.0.0.2")}
	must(t, from.Prepare(r))
	_, err := from.Send(packets(r, 1, 200))
	must(t, err)
	receiveUntil(t, "the frame after those for a station that is gone", func(f []byte) bool {
		if eth.MAC(f) == x.station(1) {
			t.Error("a frame for a station that is gone arrives")
		}
		return eth.MAC(f) == x.station(2)
	}, x)
}

// station returns the MAC of a test's station.
func (*etherLink) station(n byte) eth.MAC { return at(n, 0).MAC }

// TestJoin_Groups: frames to a group arrive while it is joined.
func TestJoin_Groups(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t)
	x := mustOpen(t, Config{Interface: "far"}, at(1, 0, "10.0.0.1/24", "fd00::1/64"))
	from := mustOpen(t, Config{Interface: "near"}, at(9, 0, "10.0.0.9/24", "fd00::9/64"))
	joined, other := netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("ff15::77")
	must(t, x.Capabilities().Multicaster.Join(joined))
	send := func(group netip.Addr) {
		r := &frame.Route{Dst: group}
		must(t, from.Prepare(r))
		n, err := from.Send(packets(r, 1, 100))
		if must(t, err); n != 1 {
			t.Fatal("the frame is not sent")
		}
	}
	got := func(group netip.Addr) func([]byte) bool {
		want, _ := eth.MulticastMAC(group)
		return func(f []byte) bool {
			if m := eth.MAC(f); m != want && m[0]&1 != 0 && m != eth.Broadcast {
				t.Errorf("a frame to %v arrives, want one to %v", m, want)
			}
			return eth.MAC(f) == want
		}
	}
	send(other)
	send(joined)
	receiveUntil(t, "the frame to the group that was joined", got(joined), x)
	must(t, x.Leave(joined), x.Join(other))
	send(joined)
	send(other)
	receiveUntil(t, "the frame to the group that was joined next", got(other), x)
	if len(x.groups) != 1+1+2 { // the one that was joined, where its address is asked for, and where queries go
		t.Errorf("the interface listens to %v", x.groups)
	}
}

// TestSystemAddress: a station with an address of the system has the interface's MAC, is answered for by the system alone, and
// the system neither refuses what arrives at the RoCE v2 port nor lets others have it.
func TestSystemAddress(t *testing.T) {
	systemtest.Mark(t)
	near, far := onVeth(t)
	address(t, far, "10.0.1.1/24")
	var e *station.FieldError
	if _, err := Open(Config{Interface: "far", Stations: []link.Station{at(1, 0, "10.0.1.1/24")}}); !errors.As(err, &e) || e.Field != "MAC" {
		t.Errorf("another MAC: %v", err)
	}
	s := at(1, 0, "10.0.1.1/24")
	copy(s.MAC[:], far.Attrs().HardwareAddr)
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 0, 1, 1), Port: 4791})
	must(t, err)
	if _, err := Open(Config{Interface: "far", Stations: []link.Station{s}}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port that somebody has: %v", err)
	}
	must(t, c.Close())
	l := mustOpen(t, Config{Interface: "far"}, s)
	if _, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 0, 1, 1), Port: 4791}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the port is not kept: %v", err)
	}
	// A neighbour of the system, which finds it when it is told to.
	from := mustOpen(t, Config{Interface: "near"}, at(9, 0, "10.0.1.9/24"))
	r := &frame.Route{Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.1.9")}
	must(t, l.Prepare(r))
	known(t, r, l, from)
	if r.DstMAC != at(9, 0).MAC || l.Counters().Asked+l.Counters().Answered != 0 {
		t.Errorf("%v, %+v: the link has resolved by itself", eth.MAC(r.DstMAC), l.Counters())
	}
	// What the system would send by another interface is refused.
	network := func(n byte) *net.IPNet { return &net.IPNet{IP: net.IPv4(10, n, 0, 0), Mask: net.CIDRMask(16, 32)} }
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: near.Attrs().Index, Dst: network(9)}))
	if err := l.Prepare(&frame.Route{Src: r.Src, Dst: netip.MustParseAddr("10.9.0.1")}); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a route by another interface: %v", err)
	}
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: far.Attrs().Index, Dst: network(8), Gw: net.IPv4(10, 0, 1, 9)}))
	r = &frame.Route{Src: r.Src, Dst: netip.MustParseAddr("10.8.0.1")}
	must(t, l.Prepare(r))
	if r.DstMAC != at(9, 0).MAC {
		t.Errorf("the gateway's MAC is %v", eth.MAC(r.DstMAC))
	}
	if err := l.Resolve(t.Context(), netip.MustParseAddr("10.0.1.9")); err != nil {
		t.Error(err)
	}
}

// TestSystemAddress_WithoutLinkLocal: the system finds a neighbour for a station with an IPv6 address while it has no link-local
// address to ask from: an interface gets that a few seconds after it has come up (RFC 4862 5.4).
func TestSystemAddress_WithoutLinkLocal(t *testing.T) {
	systemtest.Mark(t)
	_, far := onVeth(t)
	must(t, netlink.LinkSetDown(far), os.WriteFile("/proc/sys/net/ipv6/conf/far/addr_gen_mode", []byte("1"), 0), netlink.LinkSetUp(far))
	address(t, far, "fd01::1/64")
	s := at(1, 0, "fd01::1/64")
	copy(s.MAC[:], far.Attrs().HardwareAddr)
	l := mustOpen(t, Config{Interface: "far"}, s)
	from := mustOpen(t, Config{Interface: "near"}, at(9, 0, "fd01::9/64"))
	r := &frame.Route{Src: netip.MustParseAddr("fd01::1"), Dst: netip.MustParseAddr("fd01::9")}
	must(t, l.Prepare(r))
	known(t, r, l, from)
	if r.DstMAC != at(9, 0).MAC || l.Counters().Asked != 0 {
		t.Errorf("%v, %+v: the link has resolved by itself", eth.MAC(r.DstMAC), l.Counters())
	}
}

// TestErrors_FollowsTheSystem: an interface's other MTU, and addresses that the system gets and loses, are noticed.
func TestErrors_FollowsTheSystem(t *testing.T) {
	systemtest.Mark(t)
	_, far := onVeth(t)
	s := at(1, 0, "10.0.1.1/24")
	copy(s.MAC[:], far.Attrs().HardwareAddr)
	l := mustOpen(t, Config{Interface: "far"}, s)
	none := make([]link.Unreachable, 4)
	if len(l.SystemAddresses()) != 0 || len(l.stack.kept) != 0 {
		t.Fatal("the system has no address yet")
	}
	address(t, far, "10.0.1.1/24")
	must(t, netlink.LinkSetMTU(far, 4000))
	await.Eventually(t, "the address is the system's and the MTU another", func() bool {
		l.Errors(none)
		return len(l.SystemAddresses()) == 1 && len(l.stack.kept) == 1 && l.Capabilities().MTU == 4000
	})
	a, err := netlink.ParseAddr("10.0.1.1/24")
	must(t, err, netlink.AddrDel(far, a))
	await.Eventually(t, "the address is the link's", func() bool {
		l.Errors(none)
		return len(l.SystemAddresses()) == 0 && len(l.stack.kept) == 0
	})
}

// TestErrors_InterfaceComesBack: while its interface is deleted a link is down, and what it sends is lost. One of that name that is made
// later is the link's again, in both directions, as often as that happens.
func TestErrors_InterfaceComesBack(t *testing.T) {
	systemtest.Mark(t)
	near, _ := onVeth(t)
	l := mustOpen(t, Config{Interface: "far"}, at(1, 0, "10.0.0.1/24"))
	follow := func(what string, up bool) {
		t.Helper()
		await.Eventually(t, what, func() bool {
			l.Errors(nil)
			return l.WireState().Up == up
		})
	}
	r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
	must(t, l.Prepare(r))
	for range 2 {
		must(t, netlink.LinkDel(near))
		follow("it is deleted", false)
		lost := l.Stats().SendErrors
		if n, err := l.Send(packets(r, 3, 100)); n != 3 || err != nil || l.Stats().SendErrors != lost+3 {
			t.Errorf("%d, %v, %+v", n, err, l.Stats())
		}
		must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near", MTU: 1500}, PeerName: "far"}))
		var err error
		near, err = netlink.LinkByName("near")
		must(t, err)
		far, err := netlink.LinkByName("far")
		must(t, err, netlink.LinkSetUp(near), netlink.LinkSetUp(far))
		address(t, near, "10.0.0.254/24")
		follow("it comes back", true)
		sent := l.Stats().SentPackets
		if n, err := l.Send(packets(r, 3, 100)); n != 3 || err != nil || l.Stats().SentPackets != sent+3 {
			t.Errorf("%d, %v, %+v", n, err, l.Stats())
		}
		c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 0, 0, 254)}, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4791})
		must(t, err)
		_, err = c.Write([]byte("again"))
		must(t, err, c.Close())
		receiveUntil(t, "a datagram arrives", func(f []byte) bool {
			_, _, data, ok := udpIn(t, f)
			return ok && string(data) == "again"
		}, l)
	}
}

// TestSend_InterfaceDown: what an interface does not take is lost and counted, and later frames are sent.
func TestSend_InterfaceDown(t *testing.T) {
	systemtest.Mark(t)
	_, far := onVeth(t)
	l := mustOpen(t, Config{Interface: "far"}, at(1, 0, "10.0.0.1/24"))
	r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
	must(t, l.Prepare(r), netlink.LinkSetDown(far))
	if n, err := l.Send(packets(r, 3, 100)); n != 3 || err != nil || l.Stats().SendErrors != 3 {
		t.Errorf("%d, %v, %+v", n, err, l.Stats())
	}
	in := make([]frame.In, 4)
	if _, err := l.Receive(in); err != nil {
		t.Error(err)
	}
	must(t, netlink.LinkSetUp(far))
	if n, err := l.Send(packets(r, 200, 1514)); n != 200 || err != nil || l.Stats().SentPackets != 200 || l.Stats().SentBytes != 200*1514 {
		t.Errorf("%d, %v, %+v", n, err, l.Stats())
	}
}

// TestOpen_NoEthernet: interfaces of another kind, and names of none, are refused.
func TestOpen_NoEthernet(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	var e *station.FieldError
	if _, err := Open(Config{Interface: "lo"}); !errors.As(err, &e) || e.Field != "Interface" {
		t.Errorf("lo: %v", err)
	}
	if _, err := Open(Config{Interface: "none"}); err == nil {
		t.Error("an interface that does not exist is opened")
	}
}

// TestSendReceive_NoAllocation: the data path allocates nothing, with and without a tag.
func TestSendReceive_NoAllocation(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t)
	for _, vlan := range []uint16{0, 7} {
		l := mustOpen(t, Config{Interface: "far"}, at(1, vlan, "10.0.0.1/24"))
		from := mustOpen(t, Config{Interface: "near"}, at(9, vlan, "10.0.0.9/24"))
		r := &frame.Route{Src: netip.MustParseAddr("10.0.0.9"), Dst: netip.MustParseAddr("10.0.0.1")}
		must(t, from.Prepare(r))
		known(t, r, from, l)
		out, in := packets(r, 32, 1000), make([]frame.In, 64)
		if n := testing.AllocsPerRun(100, func() {
			_, _ = from.Send(out)
			_, _ = l.Receive(in)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		must(t, l.Close(), from.Close())
	}
}

// TestTag: only a tag that is said to be one is put back.
func TestTag(t *testing.T) {
	control := func(level, kind, status uint32) []byte {
		c := make([]byte, controlLen)
		binary.NativeEndian.PutUint64(c, 36)
		binary.NativeEndian.PutUint32(c[8:], level)
		binary.NativeEndian.PutUint32(c[12:], kind)
		binary.NativeEndian.PutUint32(c[16:], status)
		binary.NativeEndian.PutUint16(c[32:], 0x2064)
		binary.NativeEndian.PutUint16(c[34:], 0x88a8)
		return c
	}
	const both = unix.TP_STATUS_VLAN_VALID | unix.TP_STATUS_VLAN_TPID_VALID
	const level, kind = unix.SOL_PACKET, unix.PACKET_AUXDATA
	if tci, p, ok := tag(control(level, kind, unix.TP_STATUS_VLAN_VALID)); !ok || tci != 0x2064 || p != eth.TypeVLAN {
		t.Error(tci, p, ok)
	}
	if _, p, ok := tag(control(level, kind, both)); !ok || p != 0x88a8 {
		t.Error(p, ok)
	}
	for _, c := range [][]byte{nil, make([]byte, 35), control(level, kind, 0), control(1, kind, both), control(level, 1, both)} {
		if _, _, ok := tag(c); ok {
			t.Errorf("% x is a tag", c)
		}
	}
	h := eth.Ethernet{Dst: eth.MAC{1}, Src: eth.MAC{2}, Type: eth.TypeIPv4}
	b := append(make([]byte, 10), append(h.Append(nil), 'x')...)
	h.Tagged, h.TCI = true, 0x2064
	if got, want := retag(b, 0x2064), append(h.Append(nil), 'x'); !slices.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

// TestWireState: the wire is what the interface is, while it is open: up with its carrier, and as fast and in as many
// directions as ethtool shows.
func TestWireState(t *testing.T) {
	systemtest.Mark(t)
	near, far := onVeth(t)
	l := mustOpen(t, Config{Interface: "far"})
	up := link.State{Up: true, Speed: 10e9} // of a veth
	if s := l.WireState(); s != up {
		t.Errorf("%+v, want %+v", s, up)
	}
	follow := func(what string, up bool) {
		t.Helper()
		await.Eventually(t, what, func() bool {
			l.Errors(nil)
			return l.WireState().Up == up
		})
	}
	for _, x := range []netlink.Link{near, far} {
		must(t, netlink.LinkSetDown(x))
		follow(x.Attrs().Name+" goes down", false)
		must(t, netlink.LinkSetUp(x))
		follow(x.Attrs().Name+" comes up", true)
	}
	must(t, netlink.LinkDel(near))
	follow("it is deleted", false)
}
