package driver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// space is a network namespace of a test.
type space struct {
	t  *testing.T
	ns netns.NsHandle
	h  *netlink.Handle
}

// newSpace makes one. The calling thread stays where it is.
func newSpace(t *testing.T) *space {
	t.Helper()
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	s := &space{t: t}
	if s.ns, err = netns.New(); err != nil { // and goes there
		t.Fatal(err)
	}
	if err := netns.Set(here); err != nil {
		t.Fatal(err)
	}
	return s.open()
}

// hereSpace is the one of the calling thread.
func hereSpace(t *testing.T) *space {
	t.Helper()
	ns, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	return (&space{t: t, ns: ns}).open()
}

func (s *space) open() *space {
	s.t.Helper()
	s.t.Cleanup(func() { s.ns.Close() })
	var err error
	if s.h, err = netlink.NewHandleAt(s.ns); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.h.Close)
	return s
}

// path is that of the namespace's file.
func (s *space) path() string { return fmt.Sprintf("/proc/self/fd/%d", int(s.ns)) }

// gets moves an interface of another namespace here.
func (s *space) gets(from *space, name string) {
	s.t.Helper()
	i, err := from.h.LinkByName(name)
	if err == nil {
		err = from.h.LinkSetNsFd(i, int(s.ns))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// address brings an interface up and gives it an address.
func (s *space) address(name, addr string) {
	s.t.Helper()
	i, err := s.h.LinkByName(name)
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := netlink.ParseAddr(addr)
	if err == nil {
		err = s.h.LinkSetUp(i)
	}
	if err == nil {
		err = s.h.AddrReplace(i, a)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// in runs something by a thread that is there.
func (s *space) in(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with its goroutine
		err := netns.Set(s.ns)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// send sends bytes by TCP to an address in another namespace, and returns how long it took until all were answered for.
func (s *space) send(to *space, addr string, bytes int64, patience time.Duration) (took time.Duration, err error) {
	var l net.Listener
	err = to.in(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr(addr), 0).String())
		return err
	})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		n, _ := io.Copy(io.Discard, c)
		fmt.Fprintf(c, "%d\n", n)
	}()
	var c net.Conn
	err = s.in(func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err = new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		return err
	})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(await.Limit))
	began := time.Now()
	if _, err := c.Write(make([]byte, bytes)); err != nil {
		return 0, err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return 0, err
	}
	var got int64
	if _, err := fmt.Fscan(c, &got); err != nil || got != bytes {
		return 0, fmt.Errorf("%d bytes arrived of %d: %v", got, bytes, err)
	}
	return time.Since(began), nil
}

// reaches fails unless bytes sent to an address in another namespace arrive.
func (s *space) reaches(to *space, addr, what string) {
	s.t.Helper()
	if _, err := s.send(to, addr, 100_000, await.Limit); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// misses fails if a connection comes about.
func (s *space) misses(to *space, addr, what string) {
	s.t.Helper()
	if _, err := s.send(to, addr, 1, 300*time.Millisecond); err == nil {
		s.t.Errorf("%s: it is reached", what)
	}
}

// TestFunctions_TAP: virtual functions have network interfaces, opened in a network namespace or moved there, with which these reach each
// other, the physical function and the wire, in their VLAN, and as much as their rate allows; another source address does not pass. They
// stay where they are when the function is changed and when the adapter restarts, and go with the function.
func TestFunctions_TAP(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	cfg := hosting(t)
	cfg.Adapters[0].Host, cfg.Adapters[1].Host = "tap:pf0", "tap:wire0"
	d := start(t, cfg)
	defer stop(t, d)
	here, red, blue, wire := hereSpace(t), newSpace(t), newSpace(t), newSpace(t)
	create(t, d, "a", "red", "tap=red0", "netns="+red.path())
	create(t, d, "a", "blue", "tap=blue0")
	for _, words := range [][]string{{"tap=red0"}, {"tap=pf0"}, {"netns=" + red.path()}, {"tap=x", "netns=no such"}, {"tap=a/b"}} {
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "bad", Settings: words}); err == nil {
			t.Errorf("%q: it is created", words)
		}
	}
	blue.gets(here, "blue0")
	wire.gets(here, "wire0")
	for _, x := range []struct {
		at         *space
		name, addr string
	}{{here, "pf0", "10.1.0.1/24"}, {red, "red0", "10.1.0.2/24"}, {blue, "blue0", "10.1.0.3/24"}, {wire, "wire0", "10.1.0.4/24"}} {
		x.at.address(x.name, x.addr)
	}
	red.reaches(blue, "10.1.0.3", "two virtual functions")
	blue.reaches(red, "10.1.0.2", "two virtual functions, the other way")
	red.reaches(here, "10.1.0.1", "the physical function")
	wire.reaches(blue, "10.1.0.3", "from the wire")

	const most = 20 // MB/s
	change(t, d, "red", fmt.Sprint("max=", 8*most))
	const bytes, burst = 20e6, 5e6 // at once at most, of few large packets, which it owes after that
	took, err := red.send(blue, "10.1.0.3", bytes, await.Limit)
	if least := time.Duration((bytes - burst) / most * 1e3); err != nil || took < least {
		t.Errorf("%g bytes took %v, %v; want at least %v", bytes, took, err, least)
	}
	change(t, d, "red", "max=0", "vlan=7")
	red.misses(here, "10.1.0.1", "the physical function from VLAN 7")
	red.misses(blue, "10.1.0.3", "another virtual function from VLAN 7")
	change(t, d, "blue", "vlan=7")
	red.reaches(blue, "10.1.0.3", "two in VLAN 7")
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	blue.reaches(red, "10.1.0.2", "after a restart of the adapter")

	i, err := red.h.LinkByName("red0")
	if err == nil {
		err = red.h.LinkSetHardwareAddr(i, net.HardwareAddr{2, 0, 0, 0, 0, 0x77})
	}
	if err != nil {
		t.Fatal(err)
	}
	red.misses(blue, "10.1.0.3", "from another's address")
	await.Eventually(t, "frames from another's address are counted", func() bool {
		red.misses(blue, "10.1.0.3", "from another's address")
		for _, f := range d.Functions() {
			if f.Name == "red" && f.Counters["spoofed_mac"] > 0 {
				return true
			}
		}
		return false
	})
	if err := d.RemoveFunction("red"); err != nil {
		t.Fatal(err)
	}
	if _, err := red.h.LinkByName("red0"); err == nil {
		t.Error("the interface of a function that is gone is still there")
	}
	change(t, d, "blue", "tap=none")
	if _, err := blue.h.LinkByName("blue0"); err == nil {
		t.Error("the interface is there after tap=none")
	}
}
