package vswitch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// The filter platform (VFP) is an extension of a switch. It has no rules here, so that a port where it is at work passes nothing:
// "without any forwarding rules, it will block all traffic going through the VM" (WinOF-2 24.4, Using PacketDirect for VM; WinOF 5.50,
// 4.5.5.2). It is about ports of machines; those of the host are left alone.

// switchSettings are the settings of a switch itself.
const switchSettings = "packetdirect=on|off, vfp=on|off"

// SetVirtualSwitch implements server.VirtualSwitchSource.
func (s *Switches) SetVirtualSwitch(q api.SwitchSettings) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	v, err := s.named(q.Switch)
	if err != nil {
		return err
	}
	if len(q.Settings) == 0 {
		return api.Wrong("settings", "empty", switchSettings)
	}
	packetDirect, vfp, given := v.PacketDirect, v.VFP, map[string]bool{}
	for _, w := range q.Settings {
		name, value, ok := strings.Cut(w, "=")
		if !ok || given[name] {
			return api.Wrong("setting", strconv.Quote(w), "NAME=VALUE, each name once")
		}
		given[name] = true
		to := map[string]*bool{"packetdirect": &packetDirect, "vfp": &vfp}[name]
		switch {
		case to == nil:
			return api.Wrong("setting", strconv.Quote(name), switchSettings)
		case value != "on" && value != "off":
			return api.Wrong(name, strconv.Quote(value), "on, off")
		}
		*to = value == "on"
	}
	return s.configure(v, packetDirect, vfp)
}

// configure makes PacketDirect and the filter platform of a switch what they are to be. A platform that was off begins at every port of
// a machine. The caller holds ops.
func (s *Switches) configure(v *vswitch, packetDirect, vfp bool) error {
	if packetDirect && !v.PacketDirect {
		if err := s.cfg.PacketDirect(v.Adapter); err != nil {
			return err
		}
	}
	starts, ends := vfp && !v.VFP, v.PacketDirect && !packetDirect
	if packetDirect == v.PacketDirect && vfp == v.VFP {
		return nil
	}
	next := v.VirtualSwitch
	next.PacketDirect, next.VFP = packetDirect, vfp
	changes := next.Keep()
	for _, a := range v.adapters {
		if kept := *a; starts && a.passes {
			kept.passes = false
			changes = append(changes, v.KeepAdapter(kept.kept())...)
		}
	}
	if err := s.cfg.Registry.Apply(changes...); err != nil {
		return err
	}
	s.mu.Lock()
	v.VirtualSwitch = next
	for _, a := range v.adapters {
		a.passes = a.passes && !starts
	}
	s.mu.Unlock()
	return s.tellAll(v, ends)
}

// tellAll has the functions of a switch follow it. They are made anew if what their programs have is taken away. The caller holds ops.
func (s *Switches) tellAll(v *vswitch, anew bool) (err error) {
	now := s.functions()
	for _, a := range slices.Clone(v.adapters) {
		if a.there(v, now) {
			err = errors.Join(err, s.cfg.Functions.FollowSwitch(a.function, anew))
		}
	}
	return err
}

// Rules are what a switch says of a function at one of its ports.
type Rules struct {
	// Blocked: the filter platform is at work at the port.
	Blocked bool
	// PacketDirect: programs may have queues of frames.
	PacketDirect bool
}

// Rules returns those of a function; a function that is at no switch has none.
func (s *Switches) Rules(function string) Rules {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, a := s.at(function)
	if a == nil {
		return Rules{}
	}
	return Rules{Blocked: a.blocked(v), PacketDirect: v.PacketDirect}
}

// at returns the adapter that a function is, with its switch; nil: it is none. The caller holds mu or ops.
func (s *Switches) at(function string) (*vswitch, *adapter) {
	for _, v := range s.all {
		for _, a := range v.adapters {
			if strings.EqualFold(a.function, function) {
				return v, a
			}
		}
	}
	return nil, nil
}

// blocked reports whether the filter platform of its switch keeps the traffic of an adapter.
func (a *adapter) blocked(v *vswitch) bool { return v.VFP && a.machine != "" && !a.passes }

// setFilter sets whether the filter platform is at work at an adapter's port.
func (d *decision) setFilter(value string) error {
	if value != "on" && value != "off" {
		return api.Wrong("vfp", strconv.Quote(value), "on, off")
	}
	d.passes = value == "off"
	return nil
}

// Restarted says that a function was reset, as that of a machine is when the machine restarts: the filter platform is at work at its port
// again ("The port should be disabled after each reboot of the VM to allow traffic"; WinOF-2 24.4, Using PacketDirect for VM).
func (s *Switches) Restarted(function string) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	v, a := s.at(function)
	if a == nil || !v.VFP || a.machine == "" || !a.passes {
		return nil
	}
	return s.change(v, a, []string{"vfp=on"}, a.configured)
}

// own are the settings of a function that its switch decides.
var own = []string{"rdma", "queues"}

// Owned returns why a function cannot be removed or, with settings, changed past its virtual switch; nil: it can.
func (s *Switches) Owned(function string, settings []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, a := s.at(function)
	if a == nil {
		return nil
	}
	if settings == nil {
		return api.Wrong("virtual function", fmt.Sprintf("%q, a network adapter of the virtual switch %q", a.function, v.Name),
			fmt.Sprintf("one that is at none; or remove it there: softvpi vswitch remove-adapter %s %s", v.Name, a.function))
	}
	for _, w := range settings {
		if name, _, _ := strings.Cut(w, "="); slices.Contains(own, name) {
			return api.Wrong("setting", fmt.Sprintf("%q of %q, a network adapter of the virtual switch %q", w, a.function, v.Name),
				fmt.Sprintf("settings that the switch does not decide; or set it there: softvpi vswitch set %s %s %s", v.Name, a.function, w))
		}
	}
	return nil
}
