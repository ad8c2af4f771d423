package vswitch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
)

// Follow makes the switches and adapters of the driver's configuration as it says, and removes those that it had before and has no more.
// What was made by command stays. The error names the field that cannot be.
func (s *Switches) Follow(configured []config.VirtualSwitch) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	for _, v := range slices.Clone(s.all) {
		if err := s.withdraw(v, configured); err != nil {
			return err
		}
	}
	for i, c := range configured {
		if err := s.follow(c); err != nil {
			return fmt.Errorf("virtual_switches[%d]: %w", i, err)
		}
	}
	return nil
}

// withdraw removes what of a switch the configuration had and has no more.
func (s *Switches) withdraw(v *vswitch, configured []config.VirtualSwitch) error {
	i := slices.IndexFunc(configured, func(c config.VirtualSwitch) bool { return strings.EqualFold(c.Name, v.Name) })
	if i < 0 && v.Configured {
		return s.remove(v)
	}
	if err := s.prune(v); err != nil {
		return err
	}
	for _, a := range slices.Clone(v.adapters) {
		named := func(c config.SwitchAdapter) bool { return strings.EqualFold(c.Function, a.function) }
		if !a.configured || i >= 0 && slices.ContainsFunc(configured[i].Adapters, named) {
			continue
		}
		if err := s.drop(v, a); err != nil {
			return err
		}
	}
	return nil
}

// follow makes a switch as the configuration says.
func (s *Switches) follow(c config.VirtualSwitch) error {
	v := s.find(c.Name)
	switch {
	case v == nil:
		made, err := s.create(api.SwitchRequest{Name: c.Name, Adapter: c.Adapter, IOV: c.IOV,
			PacketDirect: c.PacketDirect, VFP: c.VFP}, true)
		if err != nil {
			return err
		}
		v = made
	case v.Adapter != c.Adapter:
		return api.Wrong("adapter", fmt.Sprintf("%q", c.Adapter),
			fmt.Sprintf("%q, over which the switch of that name is; or remove that first (softvpi vswitch remove)", v.Adapter))
	default:
		next := v.VirtualSwitch
		next.IOV, next.Configured = c.IOV, true
		if err := s.cfg.Registry.Apply(next.Keep()...); err != nil {
			return err
		}
		was := v.IOV
		s.mu.Lock()
		v.VirtualSwitch = next
		s.mu.Unlock()
		if v.IOV != was {
			s.cfg.Over(v.Adapter, !v.IOV)
		}
		if err := s.configure(v, c.PacketDirect, c.VFP); err != nil {
			return err
		}
	}
	for i, a := range c.Adapters {
		if err := s.followAdapter(v, a); err != nil {
			return fmt.Errorf("adapters[%d]: %w", i, err)
		}
	}
	return nil
}

func (s *Switches) followAdapter(v *vswitch, c config.SwitchAdapter) error {
	for _, a := range v.adapters {
		if !strings.EqualFold(a.function, c.Function) {
			continue
		}
		words := c.Settings
		if !v.IOV && a.iov > 0 && !names(words, "iov") {
			words = append(slices.Clone(words), "iov=0")
		}
		return s.change(v, a, words, true)
	}
	_, _, err := s.add(v, api.SwitchAdapterRequest{Switch: v.Name, Function: c.Function, Settings: c.Settings}, true)
	return err
}
