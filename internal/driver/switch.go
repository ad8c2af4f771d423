package driver

import (
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/vswitch"
)

// namedSwitch is a virtual Ethernet switch of the driver.
type namedSwitch struct {
	name string
	*vswitch.Switch
}

// openSwitch opens an adapter's port at the switch that its configuration names, which comes with its first adapter.
func (d *Driver) openSwitch(a *config.Adapter) (link.Link, error) {
	s, err := d.switchOf(a.Switch)
	if err != nil {
		return nil, err
	}
	cfg := vswitch.PortConfig{Name: a.Name, Notify: d.host.Wake}
	cfg.PVID, cfg.Tagged = a.SwitchPort()
	cfg.MTU = a.LinkMTU
	p, err := s.Open(cfg)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (d *Driver) switchOf(name string) (*vswitch.Switch, error) {
	for _, s := range d.switches {
		if s.name == name {
			return s.Switch, nil
		}
	}
	s, err := vswitch.New(bridge.Config{})
	if err != nil {
		return nil, err
	}
	d.switches = append(d.switches, namedSwitch{name, s})
	return s, nil
}

// switchStatus returns the state of the switches.
func (d *Driver) switchStatus() (all []api.SwitchStatus) {
	for _, s := range d.switches {
		t := s.Status()
		o := api.SwitchStatus{Name: s.name, Ports: []api.SwitchPortStatus{}, Table: []api.SwitchEntry{}}
		for _, p := range t.Ports {
			o.Ports = append(o.Ports, api.SwitchPortStatus{
				Number: p.Number + 1, Adapter: p.Name, PVID: p.PVID, Tagged: p.Tagged.String(),
				InFrames: p.InFrames, InBytes: p.InBytes, OutFrames: p.OutFrames, OutBytes: p.OutBytes, Flooded: p.Flooded,
				UnknownVLAN: p.UnknownVLAN, Malformed: p.Malformed, Reserved: p.Reserved, Filtered: p.Filtered,
				NotLearned: p.NotLearned, QueueDrops: p.QueueDrops, TooLong: p.TooLong,
				PausesSent: p.PausesSent, PausesReceived: p.PausesReceived,
			})
		}
		for _, e := range t.Table {
			age := int64(e.Age.Seconds())
			o.Table = append(o.Table, api.SwitchEntry{VLAN: e.VLAN, MAC: e.MAC.String(), Adapter: e.Port, AgeSeconds: age})
		}
		all = append(all, o)
	}
	return all
}
