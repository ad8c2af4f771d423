package driver

import (
	"context"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

// portEvents returns what a program is told.
func portEvents(t *testing.T, d *Driver) *verbs.Watcher {
	t.Helper()
	session, err := verbs.Within(d.host, "watch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session.Watch()
}

// TestLinkState_Datagram: a port is up while somebody has the other end of its wire. When it goes and comes back, programs, the
// log and the status are told; a port that is down has no speed, and begins so if nobody is there.
func TestLinkState_Datagram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	cfg := overSockets(t)
	cfg[0].Adapters[0].Speed = 25
	d := start(t, cfg[0])
	defer stop(t, d)
	state := func(up bool) func() bool {
		return func() bool {
			a := d.Status().Adapters[0]
			if up {
				return a.Up && a.Speed == 25e9 && a.Duplex == "full"
			}
			return a.Enabled && !a.Up && a.Speed == 0 && a.Duplex == ""
		}
	}
	if !state(false)() || times(t, d, "LinkDown") != 1 || times(t, d, "LinkUp") != 0 || times(t, d, "AdapterStarted")+times(t, d, "RoCEMode") == 0 {
		t.Errorf("with nobody at the other end: %+v, %v", d.Status().Adapters[0], raised(t, d))
	}
	if n := len(d.Checks()); n != 0 {
		t.Errorf("%d checks of a port that carries nothing", n)
	}
	programs := portEvents(t, d)
	for range 2 {
		far := start(t, cfg[1])
		await.Eventually(t, "the port comes up", state(true))
		if e, err := programs.Next(ctx); err != nil || e.Type != verbs.EventPortActive {
			t.Errorf("a program is told of %v, %v", e.Type, err)
		}
		across(t, end{d, 0}, end{far, 0})
		stop(t, far)
		await.Eventually(t, "the port goes down", state(false))
		if e, err := programs.Next(ctx); err != nil || e.Type != verbs.EventPortDown {
			t.Errorf("a program is told of %v, %v", e.Type, err)
		}
	}
	if err := d.SetAdapter(AdapterRequest{Adapter: "port", Enable: false}); err != nil { // which is no news of the link
		t.Fatal(err)
	}
	d.host.Settle()
	if up, down := times(t, d, "LinkUp"), times(t, d, "LinkDown"); up != 2 || down != 3 {
		t.Errorf("the log has %d times up and %d times down", up, down)
	}
}

// TestLinkState_Interface: a port has the speed of its interface and follows its state, whether RDMA is on or off.
func TestLinkState_Interface(t *testing.T) {
	systemtest.Mark(t)
	inNetwork(t, "link add vpi0 type veth peer name vpi1\nlink set vpi0 up\nlink set vpi1 up\n", func() {
		cfg := onWire(t, config.Adapter{Name: "port", Link: config.LinkInterface, Interface: "vpi0",
			Address: netip.MustParseAddr("10.77.0.1"), Wire: config.Wire{Prefix: 24, MAC: "02:00:00:00:00:01"}})
		often := uint32(100)
		cfg.UpdateGIDTimerFrequency = &often // for the port that nobody drives
		d := start(t, cfg)
		defer stop(t, d)
		if a := d.Status().Adapters[0]; !a.Up || a.Speed != 10e9 || a.Duplex != "full" {
			t.Errorf("up %v, %d bit/s, %s", a.Up, a.Speed, a.Duplex)
		}
		for _, mode := range []string{"2", "4"} {
			set(t, d, "port", "roce_mode", mode)
			restart(t, d, "port")
			for _, x := range []struct {
				command string
				up      bool
			}{{"link set vpi1 down\n", false}, {"link set vpi1 up\n", true}} {
				ip := exec.Command("ip", "-batch", "-")
				if ip.Stdin = strings.NewReader(x.command); ip.Run() != nil {
					t.Fatal(x.command)
				}
				await.Eventually(t, x.command, func() bool {
					a := d.Status().Adapters[0]
					return a.Up == x.up && (a.Speed != 0) == x.up
				})
			}
		}
	})
}
