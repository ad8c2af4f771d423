package driver

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

// onWire returns the configuration of a driver with one adapter.
func onWire(t *testing.T, a config.Adapter) config.Config {
	t.Helper()
	c := twoAdapters(t)
	c.Adapters = []config.Adapter{a}
	return c
}

// overSockets are the configurations of two drivers whose adapters are the ends of a pair of unix datagram sockets.
func overSockets(t *testing.T) (c [2]config.Config) {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for i, addr := range []string{"192.0.2.1", "192.0.2.2"} {
		c[i] = onWire(t, config.Adapter{Name: "port", Link: config.LinkDatagram, Address: netip.MustParseAddr(addr),
			Wire: config.Wire{Datagram: path[i], Peer: path[1-i], Prefix: 24, LinkMTU: 9000}})
	}
	return c
}

// end is an adapter of a driver.
type end struct {
	*Driver
	adapter int
}

// programs returns what a program at each end has for the other, until leave is called.
func programs(t *testing.T, from, to end) (sides [2]*checkSide, addrs [2]netip.Addr, leave func()) {
	t.Helper()
	var closing []func()
	for i, d := range []end{from, to} {
		session, err := verbs.Within(d.host, "ping")
		if err != nil {
			t.Fatal(err)
		}
		addrs[i] = d.cfg.Adapters[d.adapter].Address
		if sides[i], err = newCheckSide(session, addrs[i], checkBytes, verbs.LocalWrite|verbs.RemoteWrite); err != nil {
			session.Close()
			t.Fatal(err)
		}
		closing = append(closing, func() {
			sides[i].close()
			session.Close()
		})
	}
	return sides, addrs, func() {
		for _, c := range closing {
			c()
		}
	}
}

// across writes from a program at one end to a program at the other.
func across(t *testing.T, from, to end) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	sides, addrs, leave := programs(t, from, to)
	defer leave()
	a, b := sides[0], sides[1]
	disconnect, err := connect(ctx, a, b, addrs[0], addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	fill(a.mr.Bytes(), addrs[0], addrs[1])
	if err := a.run(ctx, &verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{a.mr.SGE(0, checkBytes)}, RemoteAddr: b.mr.RemoteAddr(),
		RKey: b.mr.RKey()}); err != nil {
		t.Fatal(err)
	}
	if string(a.mr.Bytes()) != string(b.mr.Bytes()) {
		t.Error("other bytes have arrived")
	}
	if err := disconnect(); err != nil {
		t.Error(err)
	}
}

// TestWire_Datagram: two drivers talk over unix datagram sockets, without privileges, in each RoCE mode of the key (WinOF-2,
// Configuring the RoCE Mode), and with mlx4's mode for IP-based v1 (WinOF 5.50, 4.6.9.2).
func TestWire_Datagram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ generation, key, mode, shown string }{
		{"mlx5", "roce_mode", "2", "v2"}, {"mlx5", "roce_mode", "0", "v1"}, {"mlx4", "roce_mode", "5", "v1.25"},
	} {
		t.Run(c.shown, func(t *testing.T) {
			var d [2]*Driver
			for i, cfg := range overSockets(t) {
				cfg.Adapters[0].Generation = c.generation
				d[i] = start(t, cfg)
				defer stop(t, d[i])
				set(t, d[i], "port", c.key, c.mode)
				restart(t, d[i], "port")
				if got := d[i].Status().Adapters[0].RoCE; got != c.shown {
					t.Fatalf("the mode is %s, want %s", got, c.shown)
				}
			}
			across(t, end{d[0], 0}, end{d[1], 0})
			across(t, end{d[1], 0}, end{d[0], 0})
		})
	}
}

// TestWire_ModesDiffer: adapters of two drivers that are set to different RoCE modes do not reach each other, and each driver's log
// says why once somebody tries (WinOF-2 24.4: the mode has to be the same on both ends).
func TestWire_ModesDiffer(t *testing.T) {
	t.Parallel()
	var d [2]*Driver
	for i, cfg := range overSockets(t) {
		d[i] = start(t, cfg)
		defer stop(t, d[i])
	}
	set(t, d[0], "port", "roce_mode", "0")
	restart(t, d[0], "port")
	await.Eventually(t, "the port is up", func() bool { return d[0].Status().Adapters[0].Up })
	for i, mode := range []string{"v1", "v2"} {
		want := "RoCEModesDiffer: port: RoCE packets of another mode arrive for the adapter, which uses RoCE " + mode +
			"; both ends of a connection need the same mode."
		await.Eventually(t, want, func() bool { // an attempt may end before its first packet has left
			apart(t, end{d[1-i], 0}, end{d[i], 0})
			return slices.Contains(raised(t, d[i]), want)
		})
	}
}

// TestWire_Functions: two adapters on one wire are functions at one port. Each is disabled without harm to the other.
func TestWire_Functions(t *testing.T) {
	cfgs := overSockets(t)
	second := cfgs[0].Adapters[0]
	second.Name, second.Address, second.MAC = "second", netip.MustParseAddr("192.0.2.3"), "02:00:00:00:00:03"
	cfgs[0].Adapters = append(cfgs[0].Adapters, second)
	far := start(t, cfgs[1]) // it makes the ports active
	defer stop(t, far)
	d := start(t, cfgs[0])
	defer stop(t, d)
	if n := len(d.Checks()); n != 2 {
		t.Errorf("%d checks at the start, want those of the pair", n)
	}
	port, other, distant := end{d, 0}, end{d, 1}, end{far, 0}
	across(t, port, distant)
	across(t, port, other)
	for _, x := range []struct{ off, left end }{{port, other}, {other, port}} {
		name := d.cfg.Adapters[x.off.adapter].Name
		if err := d.SetAdapter(AdapterRequest{Adapter: name, Enable: false}); err != nil {
			t.Fatal(err)
		}
		across(t, x.left, distant)
		if err := d.SetAdapter(AdapterRequest{Adapter: name, Enable: true}); err != nil {
			t.Fatal(err)
		}
		across(t, x.off, distant)
	}
}

// TestWire_Interface: an adapter on an interface of the system, at an address that the system has, and one at an address that
// it has not; the first follows the interface's addresses and MTU.
func TestWire_Interface(t *testing.T) {
	systemtest.Mark(t)
	inNetwork(t, "link add vpi0 mtu 9000 type veth peer name vpi1 mtu 9000\nlink set vpi0 up\nlink set vpi1 up\naddr add 10.77.0.1/24 dev vpi0\n",
		func() {
			near := onWire(t, config.Adapter{Name: "near", Link: config.LinkInterface, Interface: "vpi0",
				Address: netip.MustParseAddr("10.77.0.1"), Wire: config.Wire{Prefix: 24}})
			never := uint32(0)
			near.UpdateGIDTimerFrequency = &never // another thread would look in another namespace
			distant := onWire(t, config.Adapter{Name: "far", Link: config.LinkInterface, Interface: "vpi1",
				Address: netip.MustParseAddr("10.77.0.2"), Wire: config.Wire{Prefix: 24, MAC: "02:00:00:00:00:02"}})
			distant.UpdateGIDTimerFrequency = &never
			d, far := start(t, near), start(t, distant)
			defer stop(t, d)
			defer stop(t, far)
			across(t, end{d, 0}, end{far, 0})
			across(t, end{far, 0}, end{d, 0})
			if s := d.Status().Adapters[0]; s.LinkMTU != 9000 || s.ActiveMTU != 4096 {
				t.Errorf("link MTU %d, path MTU %d", s.LinkMTU, s.ActiveMTU)
			}
		})
}

// TestWire_Refused: a wire that cannot be opened is an error that names the adapter and the reason.
func TestWire_Refused(t *testing.T) {
	cfg := onWire(t, config.Adapter{Name: "nowhere", Link: config.LinkDatagram, Address: netip.MustParseAddr("192.0.2.1"),
		Wire: config.Wire{Datagram: "/nonexistent/a"}})
	d, err := Start(t.Context(), cfg, Options{Version: "test"})
	if err == nil {
		stop(t, d)
		t.Fatal("the driver starts")
	}
	for _, want := range []string{"nowhere", "/nonexistent"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q named", err, want)
		}
	}
}
