package vswitch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// adapter is a network adapter of a virtual switch.
type adapter struct {
	function   string
	configured bool
	decision
}

// mostQueues is how many receive queues an adapter can ask for.
const mostQueues = 64

// mostWeight is the largest VmqWeight, and IovWeight.
const mostWeight = 100

// decision is what is decided about a network adapter, beside the settings of its function.
type decision struct {
	name    string // as Windows' commands show it
	machine string // empty: the host's
	// iov is IovWeight: with 0 a machine's adapter is no virtual function, and has its network interface alone (WinOF-2 24.4, Configuring
	// Guest RDMA: "Detach the VF").
	iov  int
	rdma bool // RdmaWeight, or Enable-NetAdapterRdma of a host's adapter
	// noVMMQ leaves a virtual port, which is an adapter that is no virtual function, one receive queue (VmmqEnabled), and queues is how
	// many are asked for (VmmqQueuePairs, IovQueuePairsRequested), 0: as many as the keys of the switch's adapter say.
	noVMMQ bool
	queues int
	// vmq is VmqWeight: whether a virtual port has a receive queue of the adapter's for itself, and before whom.
	vmq int
	// passes keeps the switch's filter platform away from the port (vfpctrl /disable-port).
	passes bool
}

// standard is what is decided about an adapter unless something else is.
func standard(function string) decision { return decision{name: function, rdma: true, vmq: mostWeight} }

// virtualPort reports whether the adapter is a virtual port of the physical function.
func (d *decision) virtualPort() bool { return d.iov == 0 }

// hostQueues are the receive queues that the adapter's function asks for.
func (d *decision) hostQueues() int {
	if d.virtualPort() && d.noVMMQ {
		return 1
	}
	return d.queues
}

// hasRDMA reports whether the adapter's function offers RDMA: the host's by itself (NDK for virtual NICs), a machine's as a virtual
// function.
func (d *decision) hasRDMA() bool { return d.rdma && (d.machine == "" || d.iov > 0) }

// words are the settings as they can be given again.
func (d *decision) words() []string {
	list := []string{"name=" + d.name, fmt.Sprintf("iov=%d", d.iov), "rdma=" + onOff(d.rdma), "vmmq=" + onOff(!d.noVMMQ),
		fmt.Sprintf("queues=%d", d.queues),
		fmt.Sprintf("vmq=%d", d.vmq)}
	if d.machine != "" {
		list = append(list, "machine="+d.machine)
	}
	if d.passes {
		list = append(list, "vfp=off")
	}
	slices.Sort(list)
	return list
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// set applies those settings that are the adapter's own, all or none, and returns those of its function.
func (d *decision) set(words []string, at *vswitch) (rest []string, err error) {
	next, given := *d, map[string]bool{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || given[name] {
			return nil, api.Wrong("setting", strconv.Quote(w), "NAME=VALUE, each name once")
		}
		given[name] = true
		own, err := next.setOne(name, value)
		if err != nil {
			return nil, err
		}
		if !own {
			rest = append(rest, w)
		}
	}
	if next.machine == "" {
		if given["vfp"] {
			return nil, api.Wrong("vfp", "set for an adapter of the host", "that of a machine's adapter: the filter platform leaves the host's alone")
		}
		next.passes = false
	}
	if next.machine == "" && next.iov > 0 {
		if given["iov"] {
			return nil, api.Wrong("iov", strconv.Itoa(next.iov), "0 for an adapter of the host, which is a virtual port")
		}
		next.iov = 0
	}
	if given["iov"] && next.iov > 0 && !at.IOV {
		return nil, api.Wrong("iov", strconv.Itoa(next.iov), fmt.Sprintf("0: switch %q was made without SR-IOV", at.Name))
	}
	*d = next
	return rest, nil
}

// setOne applies a setting; own is false if it is one of the function.
func (d *decision) setOne(name, value string) (own bool, err error) {
	switch name {
	case "name":
		d.name = value
		return true, printable(name, value)
	case "machine":
		if d.machine = value; value == "none" {
			d.machine = ""
			return true, nil
		}
		return true, printable(name, value)
	case "iov", "vmq":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > mostWeight {
			return true, api.Wrong(name, strconv.Quote(value), fmt.Sprintf("0 to %d", mostWeight))
		}
		if name == "iov" {
			d.iov = n
		} else {
			d.vmq = n
		}
		return true, nil
	case "queues":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > mostQueues {
			return true, api.Wrong(name, strconv.Quote(value), fmt.Sprintf("0 (as the adapter's keys say), 1 to %d", mostQueues))
		}
		d.queues = n
		return true, nil
	case "vfp":
		return true, d.setFilter(value)
	case "rdma", "vmmq":
		if value != "on" && value != "off" {
			return true, api.Wrong(name, strconv.Quote(value), "on, off")
		}
		if name == "rdma" {
			d.rdma = value == "on"
		} else {
			d.noVMMQ = value == "off"
		}
		return true, nil
	}
	return false, nil
}

// kept is what the registry keeps of the adapter.
func (a *adapter) kept() registry.SwitchAdapter {
	return registry.SwitchAdapter{Function: a.function, Configured: a.configured, Settings: a.words()}
}

func (a *adapter) describe(v *vswitch, f api.FunctionStatus) api.SwitchAdapter {
	return api.SwitchAdapter{Function: f.Name, Name: a.name, Machine: a.machine, Configured: a.configured, IOVWeight: a.iov,
		RDMA: !f.NoRDMA, VMQWeight: a.vmq, VMMQ: !a.noVMMQ, VFP: !a.passes, Blocked: a.blocked(v),
		Status: f}
}

// AddSwitchAdapter implements server.VirtualSwitchSource.
func (s *Switches) AddSwitchAdapter(q api.SwitchAdapterRequest) (api.SwitchAdapter, error) {
	s.ops.Lock()
	defer s.ops.Unlock()
	v, err := s.named(q.Switch)
	if err != nil {
		return api.SwitchAdapter{}, err
	}
	a, f, err := s.add(v, q, false)
	if err != nil {
		return api.SwitchAdapter{}, err
	}
	return a.describe(v, f), nil
}

// add makes an adapter of a switch. It is kept before its function is: what has no function is forgotten. The caller holds ops.
func (s *Switches) add(v *vswitch, q api.SwitchAdapterRequest, configured bool) (*adapter, api.FunctionStatus, error) {
	var f api.FunctionStatus
	if err := s.prune(v); err != nil {
		return nil, f, err
	}
	if _, taken := s.functions()[strings.ToLower(q.Function)]; taken {
		return nil, f, api.Wrong("name", strconv.Quote(q.Function), "one that no virtual function has, in capitals or not")
	}
	if err := printable("name", q.Function); err != nil { // the function has more to say of it
		return nil, f, err
	}
	a := &adapter{function: q.Function, configured: configured, decision: standard(q.Function)}
	words := q.Settings
	rest, err := a.set(words, v)
	if err != nil {
		return nil, f, err
	}
	if v.IOV && a.machine != "" && !names(words, "iov") {
		a.iov = 100
	}
	rest = append(rest, "rdma="+onOff(a.hasRDMA()))
	if n := a.hostQueues(); n > 0 {
		rest = append(rest, fmt.Sprintf("queues=%d", n))
	}
	if err := s.cfg.Registry.Apply(v.KeepAdapter(a.kept())...); err != nil {
		return nil, f, err
	}
	s.mu.Lock()
	v.adapters = append(v.adapters, a)
	s.mu.Unlock()
	f, err = s.cfg.Functions.CreateFunction(api.FunctionRequest{Adapter: v.Adapter, Name: q.Function, Settings: rest})
	if err != nil {
		return nil, f, errors.Join(named(err), s.forget(v, a))
	}
	return a, f, nil
}

// names reports whether settings name one.
func names(words []string, setting string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, setting+"=") })
}

// named adds the adapter's own settings to an error that lists those of its function.
func named(err error) error {
	var f *api.FieldError
	if errors.As(err, &f) && f.Field == "setting" && strings.HasPrefix(f.Allowed, "mac,") {
		return api.Wrong(f.Field, f.Value, "name, machine, iov, vmq, vmmq, vfp, "+f.Allowed)
	}
	return err
}

// adapterOf finds an adapter of a switch by its function.
func (s *Switches) adapterOf(name, function string) (*vswitch, *adapter, error) {
	v, err := s.named(name)
	if err != nil {
		return nil, nil, err
	}
	if err := s.prune(v); err != nil {
		return nil, nil, err
	}
	var names []string
	for _, a := range v.adapters {
		if strings.EqualFold(a.function, function) {
			return v, a, nil
		}
		names = append(names, strconv.Quote(a.function))
	}
	allowed := fmt.Sprintf("switch %q has no network adapters", v.Name)
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return nil, nil, api.Wrong("network adapter", strconv.Quote(function), allowed)
}

// SetSwitchAdapter implements server.VirtualSwitchSource.
func (s *Switches) SetSwitchAdapter(q api.SwitchAdapterRequest) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	v, a, err := s.adapterOf(q.Switch, q.Function)
	if err != nil {
		return err
	}
	if len(q.Settings) == 0 {
		return api.Wrong("settings", "empty", "name=, machine=, iov=, vmq=, vmmq=, vfp=, rdma=, and those of virtual functions")
	}
	return s.change(v, a, q.Settings, a.configured)
}

// change changes an adapter, all or nothing. The caller holds ops.
func (s *Switches) change(v *vswitch, a *adapter, words []string, configured bool) error {
	before, was := a.decision, a.configured
	next := before
	rest, err := next.set(words, v)
	if err != nil {
		return err
	}
	if f := s.functions()[strings.ToLower(a.function)]; f.NoRDMA == next.hasRDMA() {
		rest = append(rest, "rdma="+onOff(next.hasRDMA()))
	}
	if n := next.hostQueues(); n != before.hostQueues() {
		rest = append(rest, fmt.Sprintf("queues=%d", n))
	}
	anew := next.virtualPort() != before.virtualPort()
	s.decide(a, next, configured)
	if err := s.cfg.Registry.Apply(v.KeepAdapter(a.kept())...); err != nil {
		s.decide(a, before, was)
		return err
	}
	if anew && len(rest) == 0 { // the function is told nothing else
		rest = append(rest, fmt.Sprintf("queues=%d", next.hostQueues()))
	}
	if next.vmq != before.vmq {
		defer s.cfg.Reweigh(a.function)
	}
	if len(rest) == 0 {
		if (&adapter{decision: before}).blocked(v) == a.blocked(v) {
			return nil
		}
		err = s.cfg.Functions.FollowSwitch(a.function, false)
	} else {
		err = s.cfg.Functions.SetFunction(api.FunctionRequest{Name: a.function, Settings: rest, Anew: anew})
	}
	if err == nil {
		return nil
	}
	s.decide(a, before, was)
	return errors.Join(named(err), s.cfg.Registry.Apply(v.KeepAdapter(a.kept())...))
}

func (s *Switches) decide(a *adapter, d decision, configured bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.decision, a.configured = d, configured
}

// RemoveSwitchAdapter implements server.VirtualSwitchSource.
func (s *Switches) RemoveSwitchAdapter(name, function string) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	v, a, err := s.adapterOf(name, function)
	if err == nil && a.configured {
		err = api.Wrong("network adapter", fmt.Sprintf("%q, which the driver's configuration has", a.function), "one that was added by command")
	}
	if err != nil {
		return err
	}
	return s.drop(v, a)
}
