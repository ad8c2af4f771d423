package driver

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// onSwitch returns a driver's configuration with three adapters at one switch: a and b in VLAN 10, whose frames have the tag
// at b alone, and c in VLAN 20.
func onSwitch(t *testing.T) config.Config {
	t.Helper()
	cfg := onWire(t, config.Adapter{Name: "a", Path: "wire", Wire: config.Wire{PVID: 10}})
	cfg.Adapters = append(cfg.Adapters, config.Adapter{Name: "b", Path: "wire", Wire: config.Wire{Trunk: "10+30", VLAN: 10}},
		config.Adapter{Name: "c", Path: "wire", Wire: config.Wire{PVID: 20}})
	for i := range cfg.Adapters {
		a := &cfg.Adapters[i]
		a.Link, a.Switch, a.Prefix, a.LinkMTU = config.LinkSwitch, "s", 24, 9000
		a.Address = netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
	}
	return cfg
}

// TestSwitch_VLANs: adapters in one VLAN of a switch reach each other, in RoCE v2 and v1, and those in another do not; the
// status shows where they are.
func TestSwitch_VLANs(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]string{"v2": "", "v1": "0"} {
		t.Run(name, func(t *testing.T) {
			cfg := onSwitch(t)
			if mode != "" { // a GID of RoCE v1 has the VLAN of its adapter's frames: both ends have the tag, or none has
				cfg.Adapters[1].VLAN, cfg.Adapters[1].Trunk, cfg.Adapters[1].PVID = 0, "", 10
			}
			d := start(t, cfg)
			defer stop(t, d)
			if mode != "" {
				for _, a := range []string{"a", "b", "c"} {
					set(t, d, a, "roce_mode", mode)
					restart(t, d, a)
				}
			}
			a, b, c := end{d, 0}, end{d, 1}, end{d, 2}
			across(t, a, b)
			across(t, b, a)
			apart(t, a, c)
			apart(t, c, b)
			st := d.Status()
			if st.Adapters[0].RoCE != name || st.Adapters[0].Wire != "switch s" || len(st.Switches) != 1 || len(st.Switches[0].Ports) != 3 {
				t.Fatalf("%+v", st)
			}
			await.Eventually(t, "all three are in the table", func() bool { // an attempt may end before its first packet has left
				known := map[string]uint16{}
				for _, e := range st.Switches[0].Table {
					known[e.Adapter] = e.VLAN
				}
				if known["a"] == 10 && known["b"] == 10 && known["c"] == 20 {
					return true
				}
				apart(t, c, b)
				st = d.Status()
				return false
			})
			for _, p := range st.Switches[0].Ports {
				if p.InFrames == 0 || p.Adapter == "a" && p.OutFrames < 16 || p.QueueDrops+p.TooLong+p.UnknownVLAN+p.Malformed > 0 {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

// apart fails if a program at one end reaches the address of the other.
func apart(t *testing.T, from, to end) {
	t.Helper()
	sides, addrs, leave := programs(t, from, to)
	defer leave()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if disconnect, err := connect(ctx, sides[0], sides[1], addrs[0], addrs[1]); err == nil {
		_ = disconnect()
		t.Errorf("%v reaches %v", addrs[0], addrs[1])
	}
}

// TestSwitch_Guests: virtual machines whose cards are Ethernet functions at one switch reach each other in their VLAN, beside
// RDMA, and do not get what is in another.
func TestSwitch_Guests(t *testing.T) {
	cfg := onSwitch(t)
	var guests [3]*guest
	for i := range guests {
		one := config.Config{Adapters: cfg.Adapters[i : i+1]}
		guests[i] = withGuest(t, &one, eth.MAC{2, 0, 0, 0, 0, byte(i + 1)}.String())
	}
	cfg.Adapters[1].VLAN, cfg.Adapters[1].Trunk, cfg.Adapters[1].PVID = 0, "", 10
	d := start(t, cfg)
	defer stop(t, d)
	a, b, c := guests[0], guests[1], guests[2]
	b.gets(t, "to the MAC", func() { a.send(t, a.frame(b.mac, "to the MAC")) })
	a.gets(t, "to everybody", func() { b.send(t, b.frame(eth.Broadcast, "to everybody")) })
	across(t, end{d, 0}, end{d, 1})
	b.gets(t, "after RDMA", func() { a.send(t, a.frame(b.mac, "after RDMA")) })
	before := portOf(d, "c")
	c.send(t, c.frame(a.mac, "to another VLAN"))
	await.Eventually(t, "the frame arrives at the switch", func() bool { return portOf(d, "c").InFrames > before.InFrames })
	if p := portOf(d, "c"); p.Flooded == before.Flooded || p.OutFrames != before.OutFrames {
		t.Errorf("port of c: %+v, before %+v", p, before)
	}
}

func portOf(d *Driver, adapter string) (found api.SwitchPortStatus) {
	for _, p := range d.Status().Switches[0].Ports {
		if p.Adapter == adapter {
			found = p
		}
	}
	return found
}
