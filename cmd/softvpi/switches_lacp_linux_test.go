package main

import (
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
	wire "github.com/softvpi/softvpi/wire/lacp"
)

// bundled is a live switch with LACP to which a system has two links, TAPs vpi0 and vpi1 of one driver with one MAC, and another one link.
type bundled struct {
	*switches
	drivers [2]*process // their namespaces are the systems'
}

// bundleMAC is that of both adapters of the first system, as of slaves of a bond.
const bundleMAC = "02:00:00:00:97:01"

func newBundled(t *testing.T) *bundled {
	t.Helper()
	if out, err := exec.Command("unshare", "-n", "ip", "link").CombinedOutput(); err != nil || os.Geteuid() != 0 {
		t.Skipf("needs root, namespaces and ip: %v %s", err, out)
	}
	x := &bundled{switches: runSwitches(t, `{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [
		{"from": "a", "to": "s"}, {"from": "a", "to": "s"}, {"from": "b", "to": "s"}]}, "switch": {"lacp": "active", "lacp_rate": "fast"}}`)}
	for i, adapters := range [][]string{
		{"x=10.97.0.1/24,fabric=a,host=tap:vpi0,mac=" + bundleMAC, "y=10.97.0.3/24,fabric=a[2],host=tap:vpi1,mac=" + bundleMAC},
		{"z=10.97.0.2/24,fabric=b,host=tap:vpi0"},
	} {
		p := newPlace(t)
		p.env = append(p.env, "XDG_RUNTIME_DIR="+x.place.dir)
		p.start = func(c *exec.Cmd) error {
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			return c.Start()
		}
		args := []string{"up", "--skip-self-check", "--fabric", x.name}
		for _, a := range adapters {
			args = append(args, "--adapter", a)
		}
		x.drivers[i] = p.spawn(t, args...)
		x.drivers[i].until(t, "listening")
	}
	x.inside(1, "ip addr add 10.97.0.2/24 dev vpi0", "ip link set vpi0 up")
	return x
}

// try runs a line in a system.
func (x *bundled) try(i int, line string) (string, error) {
	out, err := exec.Command("nsenter", "-t", strconv.Itoa(x.drivers[i].cmd.Process.Pid), "-n", "sh", "-c", line).CombinedOutput()
	return string(out), err
}

func (x *bundled) inside(i int, lines ...string) {
	x.t.Helper()
	for _, line := range lines {
		if out, err := x.try(i, line); err != nil {
			x.t.Fatalf("%s: %v %s", line, err, out)
		}
	}
}

// states waits until the two links stand so.
func (x *bundled) states(when, first, second string) {
	x.t.Helper()
	var out string
	if !await.Until(func() bool {
		out = x.do("lacp", "s")
		return strings.Contains(out, "s[1] to a: "+first) && strings.Contains(out, "s[2] to a[2]: "+second)
	}) {
		x.t.Fatalf("%s: want %q and %q\n%s", when, first, second, out)
	}
}

// flows sends packets of many flows from the second system to the first, until the switch has sent some by each link that is to carry
// any, and returns how many by each.
func (x *bundled) flows(first, second bool) (by [2]uint64) {
	x.t.Helper()
	sent := func() [2]uint64 { return [2]uint64{x.port("s[1]").OutFrames, x.port("s[2]").OutFrames} }
	before := sent()
	await.Eventually(x.t, "flows take the links", func() bool {
		out, err := exec.Command("nsenter", "-t", strconv.Itoa(x.drivers[1].cmd.Process.Pid), "-n", "bash", "-c",
			"for p in {20000..20063}; do echo flow >/dev/udp/10.97.0.1/$p; done").CombinedOutput()
		if err != nil && !strings.Contains(string(out), "refused") {
			x.t.Logf("%v %s", err, out)
		}
		now := sent()
		by = [2]uint64{now[0] - before[0], now[1] - before[1]}
		return (!first || by[0] > 10) && (!second || by[1] > 10)
	})
	return by
}

// A system whose bond is Linux's own bonding driver, by 802.3ad, aggregates its two TAPs with the switch: it answers pings, flows take
// both links, and go over one when the cable of the other is out or its partner falls silent.
func TestBondOfLinuxAtASwitch(t *testing.T) {
	systemtest.Mark(t)
	if out, err := exec.Command("unshare", "-n", "ip", "link", "add", "bond7", "type", "bond", "mode", "802.3ad").CombinedOutput(); err != nil {
		t.Skipf("needs a kernel with the bonding driver: %v %s", err, out)
	}
	x := newBundled(t)
	x.inside(0, "ip link add bond7 type bond mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4")
	for _, tap := range []string{"vpi0", "vpi1"} {
		x.inside(0, "ethtool -s "+tap+" speed 10000 duplex full || true", "ip link set "+tap+" down", "ip link set "+tap+" master bond7")
	}
	x.inside(0, "ip addr add 10.97.0.1/24 dev bond7", "ip link set bond7 up")
	x.states("a bond", "distributing", "distributing")
	await.Eventually(t, "the systems ping each other", func() bool {
		out, err := x.try(1, "ping -c 3 -i 0.2 -W 1 10.97.0.1")
		return err == nil && strings.Contains(out, "3 received")
	})
	x.flows(true, true)
	x.do("unlink", "a[2]")
	x.states("a cable out", "distributing", "down")
	if by := x.flows(true, false); by[1] != 0 {
		t.Errorf("with the second cable out %v", by)
	}
	x.do("relink", "a[2]")
	x.states("the cable back", "distributing", "distributing")
	if out, err := x.try(0, "cat /proc/net/bonding/bond7"); err != nil || !strings.Contains(out, "Number of ports: 2") {
		t.Errorf("the kernel says %v %s", err, out)
	}
}

// partner is the other end of both TAPs: the engine behind packet sockets.
type partner struct {
	system *lacp.System
	fds    [2]int
	silent chan int // the link of which it says nothing from now on; -1: none
}

// speak lets a partner speak LACP at the TAPs of the first system until the test ends.
func (x *bundled) speak() *partner {
	x.t.Helper()
	mac := eth.MAC{2, 0, 0, 0, 0x97, 1}
	ports := []lacp.Port{{Number: 1, MAC: mac}, {Number: 2, MAC: mac}}
	c := lacp.Config{System: mac, Groups: []lacp.Group{{Key: 15, Fast: true, Ports: ports}}}
	system, err := lacp.New(c)
	if err != nil {
		x.t.Fatal(err)
	}
	p := &partner{system: system, silent: make(chan int)}
	x.open(p)
	stop, done := make(chan struct{}), make(chan struct{})
	go p.run(stop, done)
	x.t.Cleanup(func() {
		close(stop)
		<-done
		for _, fd := range p.fds {
			_ = unix.Close(fd)
		}
	})
	return p
}

// open opens the sockets, in the namespace of the driver.
func (x *bundled) open(p *partner) {
	x.t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with it
		failed <- func() error {
			ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", x.drivers[0].cmd.Process.Pid))
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			kind := bits.ReverseBytes16(uint16(wire.EtherType))
			for i := range p.fds {
				if p.fds[i], err = openSlow(fmt.Sprintf("vpi%d", i), kind); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	if err := <-failed; err != nil {
		x.t.Fatal(err)
	}
}

// openSlow opens a socket of an interface for the frames of a type to the group of slow protocols.
func openSlow(name string, kind uint16) (int, error) {
	fd, index, err := openPacket(name, kind)
	if err != nil {
		return 0, err
	}
	group := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(wire.SlowProtocols))}
	copy(group.Address[:], wire.SlowProtocols[:])
	return fd, unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &group) // as a bond does
}

// openPacket opens a socket of an interface for the frames of a type, in network byte order, that pass a filter, if there is one; 0: for
// sending alone.
func openPacket(name string, kind uint16, only ...unix.SockFilter) (fd, index int, err error) {
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return 0, 0, err
	}
	if len(only) > 0 { // before it is bound, so that it gets no other
		program := unix.SockFprog{Len: uint16(len(only)), Filter: &only[0]}
		if err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
			return 0, 0, err
		}
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r)
	}
	if err != nil {
		return 0, 0, err
	}
	index = int(r.Uint32())
	return fd, index, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: kind, Ifindex: index})
}

// run lets the engine work on the sockets.
func (p *partner) run(stop, done chan struct{}) {
	defer close(done)
	began, silent := time.Now(), -1
	now := func() clock.Time { return clock.Time(time.Since(began)) }
	for i := range p.fds {
		p.system.SetUp(now(), i, true, 10e9)
	}
	b := make([]byte, 2048)
	for {
		select {
		case <-stop:
			return
		case silent = <-p.silent:
		case <-time.After(10 * time.Millisecond):
		}
		for i, fd := range p.fds {
			for n, _, err := unix.Recvfrom(fd, b, 0); err == nil; n, _, err = unix.Recvfrom(fd, b, 0) {
				if eth.MAC(b) == wire.SlowProtocols && n > eth.EthernetLen {
					_ = p.system.Receive(now(), i, b[eth.EthernetLen:n])
				}
			}
		}
		p.system.Advance(now())
		for i, f := p.system.Transmit(now()); f != nil; i, f = p.system.Transmit(now()) {
			if i != silent {
				_, _ = unix.Write(p.fds[i], f)
			}
		}
	}
}

// A system that speaks LACP at its two TAPs aggregates them with the switch, through its driver and the fabric: flows take both links, and
// one when the cable of the other is out, or nothing is heard of it any more; both again when that is over. Before it speaks one link is
// used by itself.
func TestBundleOfTAPsAtASwitch(t *testing.T) {
	systemtest.Mark(t)
	x := newBundled(t)
	x.inside(0, "ip addr add 10.97.0.1/24 dev vpi0", "ip link set vpi0 up", "ip link set vpi1 up")
	x.states("nobody speaks", "distributing, defaulted", "standby")
	p := x.speak()
	x.states("a partner", "distributing, current", "distributing, current")
	x.inside(1, "ip neigh replace 10.97.0.1 lladdr "+bundleMAC+" dev vpi0")
	x.flows(true, true)
	x.do("unlink", "a[2]")
	x.states("a cable out", "distributing", "down")
	if by := x.flows(true, false); by[1] != 0 {
		t.Errorf("with the second cable out %v", by)
	}
	x.do("relink", "a[2]")
	x.states("the cable back", "distributing, current", "distributing, current")
	p.silent <- 0
	x.states("the first link silent", "standby", "distributing, current")
	x.flows(false, true)
	p.silent <- -1
	x.states("it speaks again", "distributing, current", "distributing, current")
	if s := x.port("s[1]").LACP; !strings.Contains(s, "key 15 port 1") {
		t.Errorf("the state says %q", s)
	}
}
