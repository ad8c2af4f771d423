package driver

import (
	"net/netip"
	"os"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
)

// wired are two adapters at the ends of a wire, "near" and "far", whose drivers are one if the wire is a switch of it.
type wired struct {
	wire string
	cfg  [2]config.Config // which the test may complete before run; of one driver if both are the same
	d    [2]*Driver
	one  bool
}

// names of the adapters.
var endNames = [2]string{"near", "far"}

// end returns the adapter at one end.
func (w *wired) end(i int) end {
	if w.one {
		return end{w.d[i], i}
	}
	return end{w.d[i], 0}
}

// start starts the drivers, with what the test has put into their configurations, until the test ends with stop.
func (w *wired) start(t *testing.T) {
	t.Helper()
	if w.one {
		w.cfg[0].Adapters = append(w.cfg[0].Adapters, w.cfg[1].Adapters...)
		w.d[0] = start(t, w.cfg[0])
		w.d[1] = w.d[0]
		return
	}
	for i := range w.d {
		w.d[i] = start(t, w.cfg[i])
	}
}

func (w *wired) stop(t *testing.T) {
	t.Helper()
	for i := len(w.d) - 1; i >= 0; i-- {
		if w.d[i] != nil && (i == 0 || !w.one) {
			stop(t, w.d[i])
		}
	}
}

// eachWire runs a test of a system over each kind of wire of whole frames, with an MTU of 9000, in a network namespace of its own.
func eachWire(t *testing.T, test func(t *testing.T, w *wired)) {
	never := uint32(0) // another thread would look in another namespace
	for _, c := range []struct {
		wire, commands string
		one            bool
		near, far      config.Adapter
	}{
		{wire: "interface", commands: "link add vpi0 mtu 9000 type veth peer name vpi1 mtu 9000\nlink set vpi0 up\nlink set vpi1 up\n",
			near: config.Adapter{Link: config.LinkInterface, Interface: "vpi0"}, far: config.Adapter{Link: config.LinkInterface, Interface: "vpi1"}},
		{wire: "tap", near: config.Adapter{Link: config.LinkTAP, Interface: "vpi0", Wire: config.Wire{LinkMTU: 9000}},
			far: config.Adapter{Link: config.LinkInterface, Interface: "vpi0"}},
		{wire: "datagram"},
		{wire: "switch", one: true, near: config.Adapter{Link: config.LinkSwitch, Wire: config.Wire{Switch: "s", LinkMTU: 9000}},
			far: config.Adapter{Link: config.LinkSwitch, Wire: config.Wire{Switch: "s", LinkMTU: 9000}}},
	} {
		t.Run(c.wire, func(t *testing.T) {
			inNetwork(t, "link set lo up\n"+c.commands, func() {
				// The system's own stack at the wires' ends is silent.
				for _, name := range []string{"all", "default"} {
					if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0); err != nil {
						t.Error(err)
					}
				}
				w := &wired{wire: c.wire, one: c.one}
				if c.wire == "datagram" {
					w.cfg = overSockets(t)
				} else {
					w.cfg = [2]config.Config{onWire(t, c.near), onWire(t, c.far)}
				}
				for i := range w.cfg {
					w.cfg[i].UpdateGIDTimerFrequency, w.cfg[i].SkipSelfCheck = &never, true
					a := &w.cfg[i].Adapters[0]
					a.Name, a.Path, a.Prefix = endNames[i], "wire", 24
					a.Address = netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
					a.MAC = "02:00:00:00:00:0" + string(rune('1'+i))
				}
				defer w.stop(t)
				test(t, w)
			})
		})
	}
}
