package config

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
)

// SwitchPort returns the VLANs of the adapter's port at a switch: that of frames without a tag, 0: none, and those with one.
func (a *Adapter) SwitchPort() (pvid uint16, tagged bridge.VLANs) {
	switch {
	case a.Trunk != "":
		tagged, _ = bridge.ParseVLANs(a.Trunk) // checkSwitch has refused what is wrong
		return a.PVID, tagged
	case a.PVID != 0:
		return a.PVID, bridge.VLANs{}
	}
	return bridge.DefaultVLAN, bridge.AllVLANs()
}

// switchVLAN returns the VLAN of the adapter's frames in its switch; 0: its port drops them.
func (a *Adapter) switchVLAN() uint16 {
	pvid, tagged := a.SwitchPort()
	switch {
	case a.VLAN == 0:
		return pvid
	case a.VLAN != pvid && tagged.Has(a.VLAN):
		return a.VLAN
	}
	return 0
}

// checkSwitch checks an adapter's port at a switch.
func (a *Adapter) checkSwitch(field func(string) string) error {
	if a.Switch == "" || len(a.Switch) > maxNameLength || strings.ContainsFunc(a.Switch, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return api.Wrong(field("switch"), fmt.Sprintf("%q", a.Switch), fmt.Sprintf("a name of 1 to %d bytes", maxNameLength))
	}
	if a.PVID > bridge.LastVLAN {
		return api.Wrong(field("pvid"), fmt.Sprint(a.PVID), fmt.Sprintf("1 to %d, or 0 for none", bridge.LastVLAN))
	}
	if _, err := bridge.ParseVLANs(a.Trunk); a.Trunk != "" && err != nil {
		return api.Wrong(field("trunk"), fmt.Sprintf("%q", a.Trunk), "VLAN IDs from 1 to 4094 and ranges of them, as 10+20-29, or all")
	}
	if a.VLAN <= bridge.LastVLAN && a.switchVLAN() == 0 {
		pvid, tagged := a.SwitchPort()
		want := "one of the port's trunk (" + tagged.String() + ")"
		if tagged == (bridge.VLANs{}) {
			want = fmt.Sprintf("0: the port's frames have no tag, and are in VLAN %d", pvid)
		}
		return api.Wrong(field("vlan"), fmt.Sprint(a.VLAN), want)
	}
	return nil
}

// completeSwitches checks adapters at one switch against each other.
func (c *Config) completeSwitches() error {
	for i := range c.Adapters {
		a := &c.Adapters[i]
		for j := range i {
			b := &c.Adapters[j]
			if a.Link != LinkSwitch || b.Link != LinkSwitch || a.Switch != b.Switch {
				continue
			}
			field := func(name string) string { return fmt.Sprintf("adapters[%d].%s", i, name) }
			if a.LinkMTU != b.LinkMTU {
				return api.Wrong(field("link_mtu"), fmt.Sprint(a.LinkMTU), fmt.Sprintf("%d, what %q has at the same switch", b.LinkMTU, b.Name))
			}
			if a.StationMAC() == b.StationMAC() && a.switchVLAN() == b.switchVLAN() {
				return api.Wrong(field("mac"), fmt.Sprintf("%q again", a.MAC), fmt.Sprintf("another than that of %q in the same VLAN of the switch", b.Name))
			}
		}
	}
	return nil
}
