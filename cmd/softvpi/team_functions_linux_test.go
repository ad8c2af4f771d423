package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestTeam_Functions: a virtual function of an adapter that carries a team goes on with its RDMA and with its network interface while one
// member after the other loses its link, where the others know it by one MAC (AFT), where they are told several (ALB), and by two lines to
// another team, with which that is agreed (3AD). Linux is on both sides of its TCP connection.
func TestTeam_Functions(t *testing.T) {
	systemtest.Mark(t)
	for _, kind := range []struct{ name, second string }{{"AFT", "Backup"}, {"ALB", "Active"}, {"3AD", "Active"}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			a, b, far := aroundTeam(t, kind.name)
			a.driver = a.spawn(t, "up", "--adapter", "p=192.0.2.1/24,interface=m0", "--adapter", "q=192.0.2.3/24,interface=m1")
			a.driver.until(t, "listening")
			a.ok(t, "vf", "create", "p", "red", "address=192.0.2.11/24", "tap=red0")
			a.ok(t, "vlan_config", "create", "team", kind.name, "T")
			a.ok(t, "vlan_config", "attach", "team", "T", "p", "primary")
			a.ok(t, "vlan_config", "attach", "team", "T", "q")
			a.shell(t, "ip addr add 198.51.100.1/24 dev red0; ip link set red0 up")
			b.shell(t, "ip addr add 198.51.100.2/24 dev nic; ip link set nic up")
			for _, x := range []*linuxHost{a, far} {
				x.stands(t, "both members are there", "Connected Active", "Connected "+kind.second)
			}
			server := b.spawn(t, "nd_rping", "-s", "-a", b.ip)
			server.until(t, "listening")
			tenant := a.place
			tenant.env = append(slices.Clone(a.env), "SOFTVPI_FUNCTION=red")
			client := tenant.spawn(t, "nd_rping", "-c", "-v", "-V", "-S", "26", "-a", b.ip)
			rdma, tcp := watchPulse(client), a.talk(t, b, "198.51.100.2:7")
			further := func(when string) {
				t.Helper()
				rdma.further(t, 100)
				tcp.further(t, when, 100)
			}
			further("at first")
			for _, x := range failures(kind.second) {
				rdma.again()
				far.shell(t, x.command)
				a.stands(t, x.command, x.roles[:]...)
				further(x.command)
				t.Logf("%s: pings stood still for %v at most", x.command, rdma.again().Round(time.Millisecond))
				if kind.name == "3AD" {
					break // what comes back takes LACP seconds
				}
			}
			if err := client.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			client.wait(t)
		})
	}
}

// aroundTeam returns a host with two interfaces for members of a team of a type, another one, and the one that has the other ends of the
// members: the first, at a bridge, or the other, at lines to a team of its own if the type wants a bundle there.
func aroundTeam(t *testing.T, kind string) (a, b, far *linuxHost) {
	t.Helper()
	h := linuxHosts(t, 1500)
	a, b, far = h[0], h[1], h[0]
	if kind == "3AD" || kind == "SLA" {
		far = b
		a.twoLines(t, b, kind)
	} else {
		a.twoMembers(t)
		b.up(t)
	}
	a.shell(t, "sysctl -q net.ipv4.conf.all.arp_ignore=1") // m0 and m1 are the team's, and so is what is asked there
	return a, b, far
}

// twoLines makes two interfaces of the host, m0 and m1, the other ends of s0 and s1 of another host, whose adapter has a team of those.
func (h *linuxHost) twoLines(t *testing.T, with *linuxHost, kind string) {
	t.Helper()
	for i := range 2 {
		h.shell(t, fmt.Sprintf("ip link add m%d type veth peer name s%[1]d netns %s; ip link set m%[1]d up", i, with.ns))
		with.shell(t, fmt.Sprintf("sysctl -q net.ipv4.conf.s%d.arp_ignore=1; ip link set s%[1]d up", i))
	}
	with.driver = with.spawn(t, "up", "--adapter", fmt.Sprintf("port=%s/24,team=%s,members=interface:s0+interface:s1,host=tap:nic", with.ip, kind))
	with.driver.until(t, "listening")
}

// beat counts what has gone to and fro over a TCP connection.
type beat struct {
	rounds atomic.Int64
	failed atomic.Pointer[error]
}

// talk has a program of the host's send bytes to one of another's at an address, which sends them back, until the test ends.
func (h *linuxHost) talk(t *testing.T, with *linuxHost, at string) *beat {
	t.Helper()
	var l net.Listener
	var near, far net.Conn
	if err := with.inside(func() (err error) { l, err = net.Listen("tcp4", at); return err }); err != nil {
		t.Fatal(err)
	}
	if err := h.inside(func() (err error) { near, err = net.DialTimeout("tcp4", at, await.Limit); return err }); err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	x, done := &beat{}, make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		_, _ = io.Copy(far, far)
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		out, in := make([]byte, 3000), make([]byte, 3000)
		for {
			for i := range out {
				out[i] = byte(x.rounds.Load()) + byte(i)
			}
			_, err := near.Write(out)
			if err == nil {
				_, err = io.ReadFull(near, in)
			}
			if err == nil && !slices.Equal(in, out) {
				err = fmt.Errorf("other bytes have come back")
			}
			if err != nil {
				x.failed.Store(&err)
				return
			}
			x.rounds.Add(1)
		}
	}()
	t.Cleanup(func() {
		for _, c := range []io.Closer{near, far, l} {
			_ = c.Close()
		}
		<-done
		<-done
	})
	return x
}

// further waits for more rounds. That the connection has ended fails the test.
func (x *beat) further(t *testing.T, when string, more int64) {
	t.Helper()
	from := x.rounds.Load()
	await.Eventually(t, when+": the TCP connection goes on", func() bool {
		if err := x.failed.Load(); err != nil {
			t.Fatal(*err)
		}
		return x.rounds.Load() >= from+more
	})
}

// failure is what happens to the links of a team's members at a switch, and the roles that the two have then.
type failure struct {
	command string
	roles   [2]string
}

// failures are the first member's link failing and coming back, and the second's failing; second is its role while it stands by.
func failures(second string) []failure {
	return []failure{
		{"ip link set s0 down", [2]string{"Disconnected Backup", "Connected Active"}},
		{"ip link set s0 up", [2]string{"Connected Active", "Connected " + second}},
		{"ip link set s1 down", [2]string{"Connected Active", "Disconnected Backup"}},
	}
}
