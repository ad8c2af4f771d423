package driver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestTAPThatIsDeleted: the descriptor of a TAP that somebody has deleted is in error for ever, which does not keep the loop awake: neither
// that of a wire, which is down then, nor that of an Ethernet function's host. A machine that is busy otherwise lets the loop have less.
func TestTAPThatIsDeleted(t *testing.T) {
	systemtest.Mark(t)
	for name, a := range map[string]config.Adapter{
		"wire": {Link: config.LinkTAP, Interface: "gone0"},
		"host": {Link: config.LinkSwitch, Wire: config.Wire{Switch: "s"}, HostSide: config.HostSide{Host: "tap:gone0"}},
	} {
		t.Run(name, func(t *testing.T) {
			inNetwork(t, "link set lo up\n", func() {
				never := uint32(0) // another thread would look in another namespace
				cfg := onWire(t, a)
				cfg.UpdateGIDTimerFrequency, cfg.SkipSelfCheck = &never, true
				cfg.Adapters[0].Name, cfg.Adapters[0].Prefix, cfg.Adapters[0].Address = "port", 24, netip.MustParseAddr("192.0.2.1")
				d := start(t, cfg)
				defer stop(t, d)
				l, err := netlink.LinkByName("gone0")
				if err == nil {
					err = netlink.LinkDel(l)
				}
				if err != nil {
					t.Fatal(err)
				}
				if name == "wire" {
					await.Eventually(t, "the wire is down", func() bool { return !d.Status().Adapters[0].Up })
				}
				used, began := processorTime(t), time.Now()
				time.Sleep(time.Second) // that long the loop has nothing to do
				used, took := processorTime(t)-used, time.Since(began)
				if used > took/2 {
					t.Errorf("the driver used %v of %v with nothing to do", used, took)
				}
			})
		})
	}
}

// processorTime returns what the process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
