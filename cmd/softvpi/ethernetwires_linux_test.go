package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// onWire is a wire between the adapters of two hosts: what the drivers' configurations say of it, in %s the directory of their sockets,
// and what joins its ends.
type onWire struct {
	name      string
	mtu       int
	near, far string // far is an adapter of the same driver if one is true
	one       bool
	before    string // in the drivers' namespace
	after     string
}

// TestEthernet_EachWire: the stacks of Linux at both ends of each kind of wire reach each other, with the smallest frames that
// *JumboPacket allows (MTU 600, IPv4 alone: IPv6 takes 1280) and the largest (9600): by ping in frames of that size, by TCP and UDP, and by
// requests and answers of a few bytes, as of a shell; nothing is wrong with what they hand over.
func TestEthernet_EachWire(t *testing.T) {
	systemtest.Mark(t)
	for _, w := range []onWire{
		{name: "interface", mtu: 600, before: "ip link add w0 mtu 600 type veth peer name w1 mtu 600; ip link set w0 up; ip link set w1 up",
			near: "interface=w0", far: "interface=w1"},
		{name: "tap", mtu: 9600, near: "tap=w0,linkmtu=9600", far: "tap=w1,linkmtu=9600",
			after: "ip link add br0 mtu 9600 type bridge; ip link set w0 master br0; ip link set w1 master br0; ip link set br0 up"},
		{name: "datagram", mtu: 600, near: "datagram=%[1]s/a,peer=%[1]s/b,linkmtu=600", far: "datagram=%[1]s/b,peer=%[1]s/a,linkmtu=600"},
		{name: "switch", mtu: 9600, one: true, near: "switch=s,linkmtu=9600", far: "switch=s,linkmtu=9600"},
	} {
		t.Run(w.name, func(t *testing.T) {
			h := linuxHosts(t, 1500) // with a veth that nothing here uses
			lab := &linuxHost{place: newPlace(t), ns: h[0].ns + "w"}
			if out, err := exec.Command("ip", "netns", "add", lab.ns).CombinedOutput(); err != nil {
				t.Fatalf("%s", out)
			}
			t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", lab.ns).Run() })
			lab.shell(t, "ip link set lo up; sysctl -q net.ipv6.conf.default.disable_ipv6=1; "+w.before)
			w.drivers(t, lab, h)
			if w.after != "" {
				lab.shell(t, w.after)
			}
			for i, x := range h {
				lab.shell(t, fmt.Sprintf("ip link set nic%d netns %s", i, x.ns))
				x.shell(t, fmt.Sprintf("ip link set nic%d name nic; ip addr replace %s/24 dev nic; ip link set nic up", i, x.ip))
				if w.mtu >= 1280 {
					x.shell(t, fmt.Sprintf("ip addr replace %s/64 dev nic nodad", x.ip6))
				}
			}
			w.traffic(t, h[0], h[1])
			for _, x := range h {
				for _, a := range x.status(t).Adapters {
					if c := a.Ethernet.Counters; a.Ethernet.MTU != w.mtu || c["sent_packets"] == 0 || c["received_packets"] == 0 || c["bad_header_frames"] != 0 {
						t.Errorf("adapter %s: MTU %d, %v", a.Name, a.Ethernet.MTU, c)
					}
				}
			}
		})
	}
}

// drivers starts the drivers of the hosts, in a namespace of their own.
func (w *onWire) drivers(t *testing.T, lab *linuxHost, h [2]*linuxHost) {
	t.Helper()
	sockets, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	var adapters [2]string
	for i, wire := range []string{w.near, w.far} {
		if w.name == "datagram" {
			wire = fmt.Sprintf(wire, sockets)
		}
		adapters[i] = fmt.Sprintf("%c=%s/24,%s,mac=%s,host=tap:nic%d", 'a'+i, h[i].ip, wire, h[i].mac, i)
		h[i].place.start = lab.within
	}
	if w.one {
		h[0].driver = h[0].spawn(t, "up", "--adapter", adapters[0], "--adapter", adapters[1])
		h[0].driver.until(t, "listening")
		h[1].place = h[0].place
		return
	}
	for i, x := range h {
		x.driver = x.spawn(t, "up", "--adapter", adapters[i])
		x.driver.until(t, "listening")
	}
}

// traffic is what the stacks exchange.
func (w *onWire) traffic(t *testing.T, a, b *linuxHost) {
	t.Helper()
	a.shell(t, fmt.Sprintf("ping -c 2 -i 0.2 -M do -s %d %s", w.mtu-28, b.ip))
	b.begin(t, "iperf3", "-s")
	a.shell(t, "iperf3 -c "+b.ip+" -n 4M")
	a.shell(t, "iperf3 -R -c "+b.ip+" -n 4M")
	a.shell(t, fmt.Sprintf("iperf3 -u -c %s -n 1M -b 50M -l %d", b.ip, w.mtu-28))
	if w.mtu >= 1280 {
		a.shell(t, fmt.Sprintf("ping -6 -c 2 -i 0.2 -M do -s %d %s", w.mtu-48, b.ip6))
		a.shell(t, "iperf3 -6 -c "+b.ip6+" -n 4M")
		a.shell(t, fmt.Sprintf("iperf3 -6 -u -c %s -n 1M -b 50M -l %d", b.ip6, w.mtu-48))
	}
	requests(t, a, b)
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
