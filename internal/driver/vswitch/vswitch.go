// Package vswitch keeps virtual switches over adapters (WinOF-2 24.4, Configuring NDK for Virtual NICs; WinOF-2 1.21, 3.3.2.3.1:
// New-VMSwitch, Add-VMNetworkAdapter). A virtual switch is a name for the switch in an adapter's port, and each of its network adapters
// is a function at that port, which the driver makes as it makes any other (Functions): what is kept here is whose they are, and what
// follows from that for the function.
package vswitch

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// Functions makes the functions at the ports of adapters.
type Functions interface {
	Functions() []api.FunctionStatus
	CreateFunction(api.FunctionRequest) (api.FunctionStatus, error)
	SetFunction(api.FunctionRequest) error
	RemoveFunction(name string) error
	// FollowSwitch has a function do what its switch's Rules say now. anew makes it another function for its programs.
	FollowSwitch(function string, anew bool) error
}

// Config is what virtual switches stand on.
type Config struct {
	Functions Functions
	Registry  *registry.Registry
	// Place returns the name of an adapter that a switch can be over, or why there can be none.
	Place func(adapter string) (string, error)
	// PacketDirect returns why an adapter has no queues of frames for a switch over it.
	PacketDirect func(adapter string) error
	// Has reports whether there is an adapter of that name.
	Has func(adapter string) bool
	// Taken reports whether something else has a name, so that no switch can have it.
	Taken func(name string) bool
	// Over follows a switch over an adapter that has come, gone or changed: one without SR-IOV has the adapter offer VMQ.
	Over func(adapter string, offer bool)
	// Reweigh follows another VmqWeight of an adapter's function.
	Reweigh func(function string)
	Log     *slog.Logger
}

// Switches are the virtual switches of a driver.
type Switches struct {
	cfg Config
	ops sync.Mutex // held while something is changed, which calls Functions
	mu  sync.Mutex // held shortly, also to look
	all []*vswitch // by name
}

// vswitch is a virtual switch. The holder of ops changes it, with mu.
type vswitch struct {
	registry.VirtualSwitch // without its adapters
	adapters               []*adapter
}

// mostName is the longest name of a switch, of an adapter and of a machine.
const mostName = 63

// New returns the virtual switches that the registry keeps. The functions of their adapters are there, or are forgotten.
func New(cfg Config) *Switches {
	s := &Switches{cfg: cfg}
	for _, kept := range cfg.Registry.VirtualSwitches() {
		v := &vswitch{VirtualSwitch: kept}
		v.Adapters = nil
		for _, k := range kept.Adapters {
			a := &adapter{function: k.Function, configured: k.Configured, decision: standard(k.Function)}
			if _, err := a.set(k.Settings, v); err == nil {
				v.adapters = append(v.adapters, a)
				continue
			}
			for _, word := range k.Settings {
				if _, err := a.set([]string{word}, v); err != nil {
					cfg.Log.Warn("a setting of a virtual switch's adapter is not allowed", "switch", v.Name, "function", a.function, "cause", err)
				}
			}
			v.adapters = append(v.adapters, a)
		}
		s.all = append(s.all, v)
	}
	return s
}

// VirtualSwitches implements server.VirtualSwitchSource.
func (s *Switches) VirtualSwitches() []api.VirtualSwitch {
	now := s.functions()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []api.VirtualSwitch{}
	for _, v := range s.all {
		list = append(list, s.describe(v, now))
	}
	return list
}

// functions returns the functions by their names.
func (s *Switches) functions() map[string]api.FunctionStatus {
	now := map[string]api.FunctionStatus{}
	for _, f := range s.cfg.Functions.Functions() {
		now[strings.ToLower(f.Name)] = f
	}
	return now
}

// describe says what a switch is. The caller holds mu.
func (s *Switches) describe(v *vswitch, now map[string]api.FunctionStatus) api.VirtualSwitch {
	d := api.VirtualSwitch{Name: v.Name, Adapter: v.Adapter, Missing: !s.cfg.Has(v.Adapter), IOV: v.IOV, PacketDirect: v.PacketDirect,
		VFP: v.VFP, Configured: v.Configured, Adapters: []api.SwitchAdapter{}}
	for _, a := range v.adapters {
		if a.there(v, now) {
			d.Adapters = append(d.Adapters, a.describe(v, now[strings.ToLower(a.function)]))
		}
	}
	return d
}

// VirtualPort reports whether a function is an adapter of a switch that is no virtual function.
func (s *Switches) VirtualPort(function string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, a := s.at(function)
	return a != nil && a.virtualPort()
}

// VMQWeight returns the VmqWeight of a switch's adapter; 0: the function is none.
func (s *Switches) VMQWeight(function string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, a := s.at(function); a != nil {
		return a.vmq
	}
	return 0
}

// SRIOV reports whether a switch with SR-IOV is over an adapter.
func (s *Switches) SRIOV(adapter string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(v *vswitch) bool { return v.Adapter == adapter && v.IOV })
}

// CreateVirtualSwitch implements server.VirtualSwitchSource.
func (s *Switches) CreateVirtualSwitch(q api.SwitchRequest) (api.VirtualSwitch, error) {
	s.ops.Lock()
	defer s.ops.Unlock()
	v, err := s.create(q, false)
	if err != nil {
		return api.VirtualSwitch{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.describe(v, nil), nil
}

// create makes a switch. The caller holds ops.
func (s *Switches) create(q api.SwitchRequest, configured bool) (*vswitch, error) {
	if err := s.checkName(q.Name); err != nil {
		return nil, err
	}
	at, err := s.cfg.Place(q.Adapter)
	if err != nil {
		return nil, err
	}
	for _, o := range s.all {
		if o.Adapter == at {
			return nil, api.Wrong("adapter", fmt.Sprintf("%q, over which switch %q is", at, o.Name), "one that no virtual switch is over")
		}
	}
	if q.PacketDirect {
		if err := s.cfg.PacketDirect(at); err != nil {
			return nil, err
		}
	}
	v := &vswitch{VirtualSwitch: registry.VirtualSwitch{Name: q.Name, Adapter: at, IOV: q.IOV, PacketDirect: q.PacketDirect, VFP: q.VFP,
		Configured: configured}}
	if err := s.cfg.Registry.Apply(v.Keep()...); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.all = append(s.all, v)
	slices.SortFunc(s.all, func(a, b *vswitch) int { return strings.Compare(a.Name, b.Name) })
	s.mu.Unlock()
	s.cfg.Over(v.Adapter, !v.IOV)
	return v, nil
}

// checkName returns why no switch can have a name.
func (s *Switches) checkName(name string) error {
	if err := printable("name", name); err != nil {
		return err
	}
	if s.cfg.Taken(name) || s.find(name) != nil {
		return api.Wrong("name", strconv.Quote(name), "one that no switch has, in capitals or not")
	}
	return nil
}

// printable returns why a text is no name.
func printable(field, text string) error {
	if text == "" || len(text) > mostName || strings.TrimSpace(text) != text ||
		strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == '\\' || r == unicode.ReplacementChar }) {
		return api.Wrong(field, strconv.Quote(text), fmt.Sprintf("1 to %d bytes of printable characters without a backslash", mostName))
	}
	return nil
}

func (s *Switches) find(name string) *vswitch {
	i := slices.IndexFunc(s.all, func(v *vswitch) bool { return strings.EqualFold(v.Name, name) })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

// named finds a switch, or says which there are.
func (s *Switches) named(name string) (*vswitch, error) {
	if v := s.find(name); v != nil {
		return v, nil
	}
	var names []string
	for _, v := range s.all {
		names = append(names, strconv.Quote(v.Name))
	}
	allowed := "there are no virtual switches; softvpi vswitch create makes one"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return nil, api.Wrong("virtual switch", strconv.Quote(name), allowed)
}

// RemoveVirtualSwitch implements server.VirtualSwitchSource.
func (s *Switches) RemoveVirtualSwitch(name string) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	v, err := s.named(name)
	if err == nil && v.Configured {
		err = api.Wrong("virtual switch", fmt.Sprintf("%q, which the driver's configuration has", v.Name), "one that was made by command")
	}
	if err != nil {
		return err
	}
	return s.remove(v)
}

// remove removes a switch with its adapters. The caller holds ops.
func (s *Switches) remove(v *vswitch) error {
	for len(v.adapters) > 0 {
		if err := s.drop(v, v.adapters[0]); err != nil {
			return err
		}
	}
	if err := s.cfg.Registry.Apply(v.Forget()); err != nil {
		return err
	}
	s.mu.Lock()
	s.all = slices.DeleteFunc(s.all, func(o *vswitch) bool { return o == v })
	s.mu.Unlock()
	s.cfg.Over(v.Adapter, false)
	return nil
}

// drop removes an adapter of a switch with its function, if that is there. The caller holds ops.
func (s *Switches) drop(v *vswitch, a *adapter) error {
	if a.there(v, s.functions()) {
		if err := s.cfg.Functions.RemoveFunction(a.function); err != nil {
			return err
		}
	}
	return s.forget(v, a)
}

// there reports whether the function of an adapter of a switch is among those that there are: somebody may have removed it.
func (a *adapter) there(v *vswitch, now map[string]api.FunctionStatus) bool {
	f, ok := now[strings.ToLower(a.function)]
	return ok && f.Adapter == v.Adapter
}

// forget keeps nothing of an adapter any more.
func (s *Switches) forget(v *vswitch, a *adapter) error {
	err := s.cfg.Registry.Apply(v.ForgetAdapter(a.function))
	s.mu.Lock()
	defer s.mu.Unlock()
	v.adapters = slices.DeleteFunc(v.adapters, func(o *adapter) bool { return o == a })
	return err
}

// prune forgets the adapters of a switch whose functions somebody has removed. Those of an adapter that the configuration does not have
// now come back with it. The caller holds ops.
func (s *Switches) prune(v *vswitch) (err error) {
	if !s.cfg.Has(v.Adapter) {
		return nil
	}
	now := s.functions()
	for _, a := range slices.Clone(v.adapters) {
		if !a.there(v, now) {
			err = errors.Join(err, s.forget(v, a))
		}
	}
	return err
}
