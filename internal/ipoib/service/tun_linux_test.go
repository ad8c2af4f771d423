package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tun"
)

// inNamespace runs do in a namespace, on a thread of its own.
func inNamespace(t testing.TB, ns netns.NsHandle, do func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := netns.Set(ns); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// namespaces returns new network namespaces.
func namespaces(t testing.TB, n int) (list []netns.NsHandle) {
	t.Helper()
	systemtest.Required(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		for range n {
			ns, err := netns.New()
			if err != nil {
				made <- err
				return
			}
			list = append(list, ns)
		}
		made <- nil
	}()
	if err := <-made; errors.Is(err, unix.EPERM) {
		t.Skip("needs the right to make network namespaces")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, ns := range list {
			ns.Close()
		}
	})
	return list
}

// plug makes an interface "ib0" in a namespace on a port, with addresses.
func (b *bed) plug(port int, ns netns.NsHandle, cfg ipoib.Config, addrs ...string) *Interface {
	b.t.Helper()
	var i *Interface
	inNamespace(b.t, ns, func() error {
		d, err := tun.Open("ib0")
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
			return errNoTUN
		}
		if err != nil {
			return err
		}
		f, err := NewFront(d)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		b.t.Cleanup(func() { f.Close() })
		if err := d.SetOffloads(tun.Offloads{Checksum: true, Large4: true, Large6: true, LargeSize: 64000}); err != nil {
			return err
		}
		if i, err = b.ports[port].Add(Config{Config: cfg}, d, func(e ipoib.Event) { b.t.Logf("port %d: %+v", port, e) }); err != nil {
			return err
		}
		f.Stand(i, nil, nil)
		return address("ib0", addrs)
	})
	return i
}

// address gives a network interface addresses, and takes it up.
func address(name string, addrs []string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		addr, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		addr.Flags |= unix.IFA_F_NODAD
		if err := netlink.AddrAdd(l, addr); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(l)
}

var errNoTUN = errors.New("there is no /dev/net/tun")

// TestNetworkNamespaces: programs of two network namespaces talk over IPoIB: echo requests and TCP over IPv4 and
// IPv6, with packets of the full 4092 bytes, and a multicast group that one of them joins.
func TestNetworkNamespaces(t *testing.T) {
	systemtest.Mark(t)
	spaces := namespaces(t, 2)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs /dev/net/tun")
	}
	four := partition.Default()
	four.List[0].Flags.MTU = 5
	b := newBed(t, 2, subnet.Config{Partitions: four})
	x := b.plug(0, spaces[0], ipoib.Config{}, "10.7.0.1/24", "fd07::1/64")
	y := b.plug(1, spaces[1], ipoib.Config{}, "10.7.0.2/24", "fd07::2/64")
	b.up(x, y)
	for _, c := range []struct {
		to   string
		size int
	}{{"10.7.0.2", 56}, {"fd07::2", 56}, {"10.7.0.2", 4092 - 28}, {"fd07::2", 4092 - 48}} {
		inNamespace(t, spaces[0], func() error { return echo(c.to, c.size) })
	}
	for _, addr := range []string{"10.7.0.2", "fd07::2"} {
		transferTCP(t, spaces, addr)
	}
	listenMulticast(t, spaces, x)
	for _, i := range []*Interface{x, y} {
		if c := i.Status().Counters; c.DroppedLong != 0 || c.DroppedInvalid != 0 {
			t.Errorf("the interface dropped packets: %+v", c)
		}
	}
}

// echo sends echo requests until one is answered.
func echo(to string, size int) error {
	addr := netip.MustParseAddr(to)
	network, listen, protocol := "ip4:icmp", "0.0.0.0", 1
	var request, reply icmp.Type = ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply
	if addr.Is6() {
		network, listen, protocol, request, reply = "ip6:ipv6-icmp", "::", 58, ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply
	}
	c, err := icmp.ListenPacket(network, listen)
	if err != nil {
		return err
	}
	defer c.Close()
	data := bytes.Repeat([]byte{0xa5}, size)
	b := make([]byte, 8192)
	for late := time.Now().Add(await.Limit); time.Now().Before(late); {
		m := icmp.Message{Type: request, Body: &icmp.Echo{ID: 7, Seq: 1, Data: data}}
		p, err := m.Marshal(nil)
		if err != nil {
			return err
		}
		if _, err := c.WriteTo(p, &net.IPAddr{IP: addr.AsSlice()}); err != nil {
			time.Sleep(10 * time.Millisecond) // the interface is not up yet
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		for {
			n, _, err := c.ReadFrom(b)
			if err != nil {
				break
			}
			got, err := icmp.ParseMessage(protocol, b[:n])
			if e, is := got.Body.(*icmp.Echo); err == nil && is && got.Type == reply && e.ID == 7 && bytes.Equal(e.Data, data) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s does not answer echo requests of %d bytes", to, size)
}

// transferTCP sends some megabytes from the first namespace to the second.
func transferTCP(t *testing.T, spaces []netns.NsHandle, addr string) {
	t.Helper()
	const size = 8 << 20
	var l net.Listener
	inNamespace(t, spaces[1], func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(addr, "0"))
		return err
	})
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- 0
			return
		}
		defer c.Close()
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	inNamespace(t, spaces[0], func() error {
		c, err := net.DialTimeout("tcp", l.Addr().String(), await.Limit)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write(make([]byte, size))
		return err
	})
	if n := <-got; n != size {
		t.Errorf("%s: %d bytes of %d arrived", addr, n, size)
	}
}

// listenMulticast makes a program of the first namespace join a group and one of the second send to it.
func listenMulticast(t *testing.T, spaces []netns.NsHandle, x *Interface) {
	t.Helper()
	group := &net.UDPAddr{IP: net.IPv4(239, 7, 7, 7), Port: 7777}
	var c *net.UDPConn
	inNamespace(t, spaces[0], func() error {
		ifi, err := net.InterfaceByName("ib0")
		if err != nil {
			return err
		}
		c, err = net.ListenMulticastUDP("udp4", ifi, group)
		return err
	})
	defer c.Close()
	stop := make(chan struct{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		runtime.LockOSThread()
		if err := netns.Set(spaces[1]); err != nil {
			return
		}
		p, err := net.ListenPacket("udp4", "10.7.0.2:0")
		if err != nil {
			return
		}
		defer p.Close()
		conn := ipv4.NewPacketConn(p)
		ifi, err := net.InterfaceByName("ib0")
		if err != nil || conn.SetMulticastInterface(ifi) != nil {
			return
		}
		for {
			_, _ = conn.WriteTo([]byte("to the group"), nil, group)
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	_ = c.SetReadDeadline(time.Now().Add(await.Limit))
	b := make([]byte, 100)
	n, from, err := c.ReadFromUDP(b)
	close(stop)
	<-sent
	if err != nil || string(b[:n]) != "to the group" || from.IP.String() != "10.7.0.2" {
		t.Errorf("%q from %v, %v", b[:n], from, err)
	}
}

// BenchmarkTCP measures iperf3 over IPoIB, and over a pair of veth interfaces with the same MTU, in turn.
func BenchmarkTCP(b *testing.B) {
	if _, err := exec.LookPath("iperf3"); err != nil {
		b.Skip("needs iperf3")
	}
	spaces := namespaces(b, 2)
	four := partition.Default()
	four.List[0].Flags.MTU = 5
	bed := newBed(b, 2, subnet.Config{Partitions: four})
	x, y := bed.plug(0, spaces[0], ipoib.Config{}, "10.7.0.1/24"), bed.plug(1, spaces[1], ipoib.Config{}, "10.7.0.2/24")
	bed.up(x, y)
	inNamespace(b, spaces[0], func() error { return echo("10.7.0.2", 56) })
	veth(b, spaces)
	for b.Loop() {
		b.ReportMetric(iperf(b, spaces, "10.7.0.2"), "ipoib-Gb/s")
		b.ReportMetric(iperf(b, spaces, "10.8.0.2"), "veth-Gb/s")
	}
	b.Logf("sender %+v", x.Status().Counters)
	b.Logf("receiver %+v", y.Status().Counters)
}

// veth joins two namespaces by a pair of veth interfaces.
func veth(t testing.TB, spaces []netns.NsHandle) {
	t.Helper()
	inNamespace(t, spaces[0], func() error {
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0", MTU: 4092}, PeerName: "v1",
			PeerNamespace: netlink.NsFd(int(spaces[1]))}
		return netlink.LinkAdd(pair)
	})
	for n, name := range []string{"v0", "v1"} {
		inNamespace(t, spaces[n], func() error {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			addr, _ := netlink.ParseAddr(fmt.Sprintf("10.8.0.%d/24", n+1))
			return errors.Join(netlink.LinkSetMTU(l, 4092), netlink.AddrAdd(l, addr), netlink.LinkSetUp(l))
		})
	}
}

// iperf measures for some seconds and returns Gb/s.
func iperf(t testing.TB, spaces []netns.NsHandle, to string) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var server *exec.Cmd
	inNamespace(t, spaces[1], func() error {
		server = exec.CommandContext(ctx, "iperf3", "-s", "-1", "-B", to)
		return server.Start()
	})
	var r struct {
		End struct {
			Sent struct {
				Retransmits int `json:"retransmits"`
			} `json:"sum_sent"`
			Received struct {
				Bits float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	inNamespace(t, spaces[0], func() error {
		// With -J its status is 0 even if nobody listens yet.
		for late := time.Now().Add(await.Limit); ; time.Sleep(50 * time.Millisecond) {
			out, err := exec.CommandContext(ctx, "iperf3", "-c", to, "-t", "5", "-J").Output()
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err == nil && r.End.Received.Bits == 0 {
				err = fmt.Errorf("nothing was received: %s", out)
			}
			if err == nil || time.Now().After(late) {
				return err
			}
		}
	})
	_ = server.Wait()
	t.Logf("%s: %d segments sent again", to, r.End.Sent.Retransmits)
	return r.End.Received.Bits / 1e9
}
