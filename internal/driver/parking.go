package driver

import (
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/link/vswitch"
)

// A member of a team, and those beside it, are disabled and enabled when it comes or goes, as the manual has it (WinOF 5.50, 4.2.8.3: "gets
// refreshed"). The others are when the team itself becomes another. Callers hold changes.

// parkAll takes members of a team, and those beside them, off their wires.
func (d *Driver) parkAll(members []int) error {
	err := d.each(d.beside(members), d.park) // from the ports that are those of members
	return errors.Join(err, d.each(members, d.park))
}

// unparkAll puts members of a team, and those beside them, on the wires that they are to have now, as far as they were taken off.
func (d *Driver) unparkAll(members []int) error {
	back := func(i int) error {
		if d.Roster.Idle(i) || !d.running[i].parked {
			return nil
		}
		return d.unpark(i)
	}
	err := d.each(members, back)
	err = errors.Join(err, d.each(d.beside(members), back))
	d.Recorder.EndElsewhere(members)
	return err
}

// each does something with adapters, and names those with which it cannot.
func (d *Driver) each(list []int, do func(int) error) (err error) {
	for _, i := range list {
		if e := do(i); e != nil {
			err = errors.Join(err, fmt.Errorf("adapter %q: %w", d.running[i].Name, e))
		}
	}
	return err
}

// park disables an adapter and takes its wire away, which is free then.
func (d *Driver) park(i int) error {
	r := d.running[i]
	if r.parked {
		return nil
	}
	was := d.enabled(uint32(i))
	if was {
		if err := d.disable(r, uint32(i)); err != nil {
			return err
		}
	}
	k := d.keys(i)
	cfg := d.deviceConfig(i, k)
	err := d.putAside(i, &cfg)
	if err == nil {
		err = d.replace(i, cfg)
	}
	if r.parked = err == nil; was && !r.parked {
		err = errors.Join(err, d.enable(i, k))
	}
	return err
}

// replace puts another adapter in the place of a disabled one. If it cannot, its link is closed.
func (d *Driver) replace(i int, cfg device.AdapterConfig) error {
	err := d.host.ReplaceAdapter(uint32(i), cfg)
	if err != nil && cfg.Link != nil {
		err = errors.Join(err, cfg.Link.Close())
	}
	return err
}

// putAside gives an adapter a wire with nobody at its other end, in place of its own.
func (d *Driver) putAside(i int, cfg *device.AdapterConfig) error {
	nowhere, err := vswitch.New(bridge.Config{})
	if err != nil {
		return err
	}
	p, err := nowhere.Open(vswitch.PortConfig{Name: d.running[i].Name, Notify: d.host.Wake, PortConfig: bridge.PortConfig{PVID: 1}})
	if err != nil {
		return err
	}
	cfg.Link, cfg.FollowInterface, cfg.MAC = p, false, d.cfg.Adapters[i].WireMAC()
	return nil
}

// unpark gives an adapter its own wire, or the team that it carries, and enables it unless it was disabled.
func (d *Driver) unpark(i int) error {
	d.take(i)
	r, k := d.running[i], d.keys(i)
	cfg := d.deviceConfig(i, k)
	if err := d.putOnWire(i, &cfg); err != nil {
		return err
	}
	if err := d.putHost(i, &cfg); err != nil {
		if cfg.Link != nil {
			err = errors.Join(err, cfg.Link.Close())
		}
		return err
	}
	if err := d.replace(i, cfg); err != nil {
		return err
	}
	r.parked = false
	if err := d.setUp(uint32(i), d.cfg.Adapters[i]); err != nil {
		return err
	}
	disabled, known := d.registry.Disabled(r.known())
	if !known {
		disabled = r.disabled
	}
	if disabled {
		return nil
	}
	if err := d.enable(i, k); err != nil {
		return err
	}
	d.startFunctions(uint32(i))
	return nil
}
