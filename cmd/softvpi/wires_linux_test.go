package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestEthernet_Wires: Linux on both sides of each kind of wire, with the smallest and the largest packets that *JumboPacket allows:
// pings that fill a packet, TCP and UDP, in both families (IPv6 wants an MTU of 1280), and requests and answers of a few bytes, as of
// a shell.
func TestEthernet_Wires(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	for _, wire := range []struct{ name, before, after, a, b string }{
		{"interface", "ip link add w0 mtu MTU type veth peer name w1 mtu MTU; ip link set w0 up; ip link set w1 up", "",
			"interface=w0", "interface=w1"},
		{"tap", "", "ip link add name lan type bridge; ip link set w0 master lan; ip link set w1 master lan; ip link set lan up",
			"tap=w0,linkmtu=MTU", "tap=w1,linkmtu=MTU"},
		{"datagram", "", "", "datagram=DIR/a,peer=DIR/b,linkmtu=MTU", "datagram=DIR/b,peer=DIR/a,linkmtu=MTU"},
		{"switch", "", "", "switch=s,linkmtu=MTU", "switch=s,linkmtu=MTU"},
	} {
		for _, mtu := range []int{600, 9600} {
			t.Run(fmt.Sprint(wire.name, " ", mtu), func(t *testing.T) {
				h := linuxHosts(t, 1500)
				a, b := h[0], h[1]
				fill := strings.NewReplacer("MTU", fmt.Sprint(mtu), "DIR", a.dir).Replace
				if wire.before != "" {
					a.shell(t, fill(wire.before))
				}
				adapter := "%s=%s/24,%s,mac=%s,host=tap:nic%s"
				a.driver = a.spawn(t, "up", "--adapter", fmt.Sprintf(adapter, "a", a.ip, fill(wire.a), a.mac, "a"),
					"--adapter", fmt.Sprintf(adapter, "b", b.ip, fill(wire.b), b.mac, "b"))
				a.driver.until(t, "listening")
				if wire.after != "" {
					a.shell(t, wire.after)
				}
				a.shell(t, "ip link set nicb netns "+b.ns)
				for _, x := range []struct {
					*linuxHost
					nic string
				}{{a, "nica"}, {b, "nicb"}} {
					x.shell(t, fmt.Sprintf("ip addr replace %s/24 dev %s; ip link set %[2]s up", x.ip, x.nic))
					if mtu >= 1280 {
						x.shell(t, fmt.Sprintf("ip addr replace %s/64 dev %s nodad", x.ip6, x.nic))
					}
				}
				a.shell(t, fmt.Sprintf("ping -c 2 -i 0.2 -M do -s %d %s", mtu-28, b.ip))
				b.begin(t, "iperf3", "-s")
				a.shell(t, "iperf3 -n 4M -c "+b.ip)
				a.shell(t, "iperf3 -R -n 4M -c "+b.ip)
				a.shell(t, fmt.Sprintf("iperf3 -u -b 50M -l %d -n 1M -c %s", mtu-28, b.ip))
				if mtu >= 1280 {
					a.shell(t, fmt.Sprintf("ping -6 -c 2 -i 0.2 -M do -s %d %s", mtu-48, b.ip6))
					a.shell(t, "iperf3 -6 -n 4M -c "+b.ip6)
					a.shell(t, fmt.Sprintf("iperf3 -6 -u -b 50M -l %d -n 1M -c %s", mtu-48, b.ip6))
				}
				requests(t, a, b)
				for _, s := range a.status(t).Adapters {
					if s.Ethernet.MTU != mtu || s.Ethernet.Counters["received_packets"] == 0 || s.Ethernet.Counters["bad_header_frames"] != 0 {
						t.Errorf("%s: MTU %d, %v", s.Name, s.Ethernet.MTU, s.Ethernet.Counters)
					}
				}
			})
		}
	}
}

// requests sends requests of a few bytes, each after the answer to the one before.
func requests(t *testing.T, a, b *linuxHost) {
	t.Helper()
	var l net.Listener
	var c net.Conn
	if err := b.inside(func() (err error) { l, err = net.Listen("tcp", net.JoinHostPort(b.ip, "5302")); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		s, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(s, s)
			_ = s.Close()
		}
	}()
	if err := a.inside(func() (err error) { c, err = net.Dial("tcp", net.JoinHostPort(b.ip, "5302")); return err }); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := make([]byte, 200)
	for n := range 500 {
		text := fmt.Appendf(nil, "%0*d", 1+n%len(got), n)[:1+n%len(got)]
		if _, err := c.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, got[:len(text)]); err != nil || string(got[:len(text)]) != string(text) {
			t.Fatalf("request %d: %q, %v", n, got[:len(text)], err)
		}
	}
}

// TestInterface_Followed: an adapter on an interface, at an address of the system's, follows the interface's MTU, its other
// addresses and its neighbours while it runs.
func TestInterface_Followed(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	h := linuxHosts(t, 1500)
	a, b := h[0], h[1]
	for _, x := range h {
		x.shell(t, fmt.Sprintf("ip addr add %s/24 dev wire", x.ip))
		x.driver = x.spawn(t, "up", "--adapter", fmt.Sprintf("port=%s/24,interface=wire,follow", x.ip))
		x.driver.until(t, "listening")
	}
	rdma := func(to string) (works bool) {
		t.Helper()
		s := b.spawn(t, "nd_rping", "-s", "-a", to)
		s.until(t, "listening")
		status, _, _ := a.run(t, "nd_rping", "-c", "-V", "-a", to, "-C", "3")
		if status != 0 {
			_ = s.cmd.Process.Kill()
		}
		s.wait(t)
		return status == 0
	}
	if !rdma(b.ip) {
		t.Fatal("no RDMA")
	}
	for _, x := range h {
		x.shell(t, "ip link set wire mtu 4000")
		await.Eventually(t, "the MTU is followed", func() bool {
			s := x.status(t).Adapters[0]
			return s.LinkMTU == 4000 && s.ActiveMTU == 2048
		})
	}
	b.shell(t, "ip addr add 192.0.2.22/24 dev wire")
	has := func(want bool) func() bool {
		return func() bool {
			for _, g := range b.status(t).Adapters[0].GIDs {
				if g.GID.Unmap().String() == "192.0.2.22" {
					return want
				}
			}
			return !want
		}
	}
	await.Eventually(t, "another address is followed", has(true))
	if !rdma("192.0.2.22") {
		t.Error("no RDMA to another address")
	}
	b.shell(t, "ip addr del 192.0.2.22/24 dev wire")
	await.Eventually(t, "an address that has gone is followed", has(false))
	a.shell(t, "ip neigh replace "+b.ip+" lladdr 02:00:00:00:00:99 dev wire nud permanent")
	received := func() uint64 { return b.status(t).Adapters[0].Link.ReceivedPackets }
	sent := func() uint64 { return a.status(t).Adapters[0].Link.SentPackets }
	there, left := received(), sent()
	ping := a.spawn(t, "nd_rping", "-c", "-a", b.ip, "-C", "1")
	await.Eventually(t, "packets go to the new neighbour", func() bool { return sent() > left })
	_ = ping.cmd.Process.Kill()
	ping.wait(t)
	if n := received() - there; n > 0 {
		t.Errorf("%d packets arrive that were for another", n)
	}
	a.shell(t, "ip neigh del "+b.ip+" dev wire")
	if !rdma(b.ip) {
		t.Error("no RDMA after the neighbour is back")
	}
}

// TestInterface_FollowedByGIDs: GIDs made from IP addresses follow the interface's addresses while the adapter runs (RoCE v1.25), and one
// made from the MAC stays whatever they are (v1); connections to an address that has come go in both modes.
func TestInterface_FollowedByGIDs(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	h := linuxHosts(t, 1500)
	a, b := h[0], h[1]
	for _, x := range h {
		x.shell(t, fmt.Sprintf("ip addr add %s/24 dev wire", x.ip))
		x.driver = x.spawn(t, "up", "--adapter", fmt.Sprintf("port=%s/24,interface=wire,follow,generation=mlx4", x.ip))
		x.driver.until(t, "listening")
	}
	for _, mode := range []struct{ key, name string }{{"5", "v1.25"}, {"0", "v1"}} {
		for _, x := range h {
			for _, args := range [][]string{{"reg", "add", "roce_mode", "--adapter", "port", "/d", mode.key, "/f"}, {"adapter", "restart", "port"}} {
				if status, out, errs := x.run(t, args...); status != 0 {
					t.Fatal(out, errs)
				}
			}
		}
		gids := func() (list []string) {
			for _, g := range b.status(t).Adapters[0].GIDs {
				if g.RoCE != mode.name {
					t.Errorf("GID %v is of RoCE %s, want %s", g.GID, g.RoCE, mode.name)
				}
				list = append(list, g.GID.Unmap().String())
			}
			return list
		}
		before := gids()
		b.shell(t, "ip addr add 192.0.2.22/24 dev wire")
		await.Eventually(t, "an address is followed", func() bool {
			return slices.Contains(b.status(t).Adapters[0].Addresses, netip.MustParseAddr("192.0.2.22"))
		})
		if got, want := gids(), mode.name == "v1.25"; slices.Contains(got, "192.0.2.22") != want || len(got) > len(before) != want {
			t.Errorf("RoCE %s: GIDs %v, before %v", mode.name, got, before)
		}
		s := b.spawn(t, "nd_rping", "-s", "-a", "192.0.2.22")
		s.until(t, "listening")
		if status, out, errs := a.run(t, "nd_rping", "-c", "-V", "-a", "192.0.2.22", "-C", "3"); status != 0 {
			t.Errorf("RoCE %s: %s%s", mode.name, out, errs)
			_ = s.cmd.Process.Kill()
		}
		s.wait(t)
		b.shell(t, "ip addr del 192.0.2.22/24 dev wire")
		await.Eventually(t, "an address that has gone is followed", func() bool {
			got := gids()
			return slices.Equal(got, before)
		})
	}
}
