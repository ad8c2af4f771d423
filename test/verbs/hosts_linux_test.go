package verbs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// driverVariable holds a driver's configuration; a process in which it is set becomes that driver.
const driverVariable = "SOFTVPI_TEST_DRIVER"

// beDriver runs a driver until its input ends. It prints a line when the driver is up.
func beDriver(configuration string) int {
	var cfg config.Config
	err := json.Unmarshal([]byte(configuration), &cfg)
	if err == nil {
		var d *driver.Driver
		if d, err = driver.Start(context.Background(), cfg, driver.Options{Version: driverbed.Version}); err == nil {
			fmt.Println("up")
			_, _ = io.Copy(io.Discard, os.Stdin)
			err = d.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// within runs f in a network namespace, or for nil in this one. Processes that f starts stay there.
func within(side *netns.NsHandle, f func()) {
	if side == nil {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if netns.Set(*side) == nil {
			f()
		}
	}()
	<-done
}

// hosts returns two network namespaces joined by a veth pair, each with a driver of its own.
func hosts(t *testing.T) (left, right *bench) {
	t.Helper()
	needLibraries(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	sides, err := namespaces(t)
	if err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	var benches [2]*bench
	for i := range sides {
		cfg := driverbed.Config(t, config.Adapter{Name: "host", Address: address(i)})
		startIn(t, &sides[i], cfg)
		benches[i] = benchOf(t, cfg)
		benches[i].side = &sides[i]
	}
	return benches[0], benches[1]
}

func address(side int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 3, byte(1 + side)}) }

// namespaces creates the two, which disappear with their last process.
func namespaces(t *testing.T) (sides [2]netns.NsHandle, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for i := range sides {
			if sides[i], err = netns.New(); err != nil {
				return
			}
		}
		err = connect(sides) // the thread is in the second one
	}()
	<-done
	for i := range sides {
		t.Cleanup(func() { _ = sides[i].Close() })
	}
	return sides, err
}

// connect makes the link from the second side, in which the thread is.
func connect(sides [2]netns.NsHandle) error {
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v1", MTU: 4500}, PeerName: "v0", PeerMTU: 4500}
	if err := netlink.LinkAdd(link); err != nil {
		return err
	}
	peer, err := netlink.LinkByName("v0")
	if err == nil {
		err = netlink.LinkSetNsFd(peer, int(sides[0]))
	}
	for i := 1; err == nil && i >= 0; i-- {
		if err = netns.Set(sides[i]); err == nil {
			err = bringUp(i)
		}
	}
	return err
}

func bringUp(side int) error {
	for _, name := range []string{"lo", fmt.Sprintf("v%d", side)} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if name != "lo" {
			a, err := netlink.ParseAddr(address(side).String() + "/24")
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(l, a); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
	}
	return nil
}

// startIn starts a driver as a process in a network namespace.
func startIn(t *testing.T, side *netns.NsHandle, cfg config.Config) {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), driverVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = fmt.Errorf("the thread did not get there")
	within(side, func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the driver ended: %v", err)
		}
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatal("the driver does not start")
	}
}

// Programs on two hosts, each with a driver, over Ethernet: all that run on one host.
func TestTwoHosts(t *testing.T) {
	t.Parallel() // it spends most of its time waiting
	left, right := hosts(t)
	both := [2]netip.Addr{left.addrs[0], right.addrs[0]}
	left.addrs, right.addrs = both, both
	for _, group := range []struct {
		name  string
		pairs []pair
	}{
		{"pingpong", pingPongs()}, {"librdmacm", managed()}, {"perftest", append(perftests(), toGroup())}, {"sizes", []pair{sizes()}},
		{"qperf", qperfs()}, {"fio", fios()},
		{"UCX", append(ucxs(), demos()...)}, {"libfabric", fabrics()},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range group.pairs {
				t.Run(p.name, func(t *testing.T) { left.under(t).talkTo(right.under(t), p.apart()) })
			}
		})
	}
}

// apart adapts p to two hosts, whose only adapter is softvpi0.
func (p pair) apart() pair {
	words := strings.NewReplacer("softvpi1", "softvpi0", "127.0.0.1", "ADDR0")
	p.server, p.client = words.Replace(p.server), words.Replace(p.client)
	return p
}

// TestNoNeighbour: if no neighbour answers, no address is resolved: the event is that of Linux, after the program's own time limit (2 s
// in rping). The system asks the neighbour long enough here that its own verdict, EHOSTUNREACH, comes later.
func TestNoNeighbour(t *testing.T) {
	left, _ := hosts(t)
	left.need("rping")
	within(left.side, func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/neigh/v0/mcast_solicit", []byte("60"), 0); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct{ to, says string }{
		{"10.77.3.99", fmt.Sprintf("RDMA_CM_EVENT_ADDR_ERROR, error -%d", syscall.ETIMEDOUT)},
		{"10.78.3.99", fmt.Sprintf("RDMA_CM_EVENT_ADDR_ERROR, error -%d", syscall.ENETUNREACH)},
	} {
		p := left.start(nil, "rping", "-c", "-a", c.to, "-C", "1")
		<-p.done
		if p.err == nil || !strings.Contains(p.out.String(), c.says) {
			t.Errorf("rping to %s: %v, want %q\n%s", c.to, p.err, c.says, p.out.String())
		}
	}
}
