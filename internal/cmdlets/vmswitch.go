package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

func getVMHost(r *run) error {
	list, err := r.adapters(nil)
	if err != nil {
		return err
	}
	granted, reasons := false, []any{}
	for _, a := range list {
		switch v := a.SRIOV; {
		case v == nil:
			reasons = append(reasons, a.Name+": the port is InfiniBand, whose virtual functions are not in yet")
		case v.Support == "Supported":
			granted = true
		default:
			reasons = append(reasons, a.Name+": "+v.Cause)
		}
	}
	if granted {
		reasons = []any{"OK"}
	}
	o := powershell.NewObject("VMHost", "Name", "IovSupport", "IovSupportReasons")
	o.List = true
	r.Emit(o.With("Name", "localhost").With("IovSupport", granted).With("IovSupportReasons", reasons))
	return nil
}

func switchNamed(list []api.VirtualSwitch, name string) *api.VirtualSwitch {
	i := slices.IndexFunc(list, func(s api.VirtualSwitch) bool { return strings.EqualFold(s.Name, name) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// newSwitch makes a virtual switch over an adapter.
func (r *run) newSwitch() error {
	a, err := r.switchAdapter()
	if err != nil {
		return err
	}
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	name := r.Text("Name")
	own := func(s api.SwitchStatus) bool { return strings.EqualFold(s.Name, name) }
	if switchNamed(st.VirtualSwitches, name) != nil || slices.ContainsFunc(st.Switches, own) {
		return fmt.Errorf("there is a switch %q", name)
	}
	for _, s := range st.VirtualSwitches {
		if s.Adapter == a.Name {
			return fmt.Errorf("there is a switch over %q, %q; Remove-VMSwitch takes it away", a.Name, s.Name)
		}
	}
	if !r.Should("New-VMSwitch", name) {
		return nil
	}
	if r.Given("AllowManagementOS") && !r.Bool("AllowManagementOS") {
		r.Warn("the adapter's own function stays at the switch: adapter %q is used as before", a.Name)
	}
	s, err := r.driver.CreateVirtualSwitch(r.Context, api.SwitchRequest{Name: name, Adapter: a.Name, IOV: r.Bool("EnableIov"),
		PacketDirect: r.Bool("EnablePacketDirect")})
	if err == nil {
		r.Emit(overObject(&s))
	}
	return err
}

// switchAdapter returns the adapter of New-VMSwitch, or says what is not in yet.
func (r *run) switchAdapter() (*api.AdapterStatus, error) {
	names := r.Texts("NetAdapterName")
	kind := r.Text("SwitchType")
	switch {
	case r.Bool("EnableEmbeddedTeaming"), len(names) > 1:
		return nil, &notYet{"teams of adapters below a virtual switch (SET)", "give -NetAdapterName one adapter"}
	case kind == "Internal", kind == "Private":
		return nil, &notYet{"virtual switches without an adapter, by command",
			"the driver makes its own with its adapters (softvpi up --adapter NAME=...,switch=SWITCH)"}
	case len(names) == 0:
		return nil, &powershell.ParameterError{Parameter: "-NetAdapterName is missing", Allowed: "the name of an adapter"}
	}
	list, err := r.adapters(names)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, &powershell.ParameterError{Parameter: "-NetAdapterName", Value: names[0], Allowed: "the name of one adapter"}
	}
	a := list[0]
	switch {
	case a.InfiniBand != nil:
		return nil, &notYet{"virtual functions of InfiniBand ports", "choose an Ethernet adapter"}
	case a.SRIOV != nil && a.SRIOV.Support == "NoVfBarSpace":
		return nil, fmt.Errorf("%w: %s", api.ErrUnsupported, a.SRIOV.Cause)
	}
	return a, nil
}

// overObject shows a switch over an adapter.
func overObject(s *api.VirtualSwitch) *powershell.Object {
	return switchObject(s.Name, "External", s.Adapter, 1+len(s.Adapters)).With("IovEnabled", s.IOV).With("PacketDirectEnabled", s.PacketDirect)
}

func switchObject(name, kind, adapter string, ports int) *powershell.Object {
	return powershell.NewObject("VMSwitch", "Name", "SwitchType", "NetAdapterInterfaceDescription", "Ports").With("Name", name).
		With("SwitchType", kind).With("NetAdapterInterfaceDescription", adapter).With("Ports", int64(ports)).
		With("IovEnabled", false).With("PacketDirectEnabled", false).With("EmbeddedTeamingEnabled", false)
}

func (r *run) getSwitches() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	names := r.Texts("Name")
	found := map[string]bool{}
	show := func(name string, o *powershell.Object) {
		if len(names) == 0 || like(name, names) {
			found[strings.ToLower(name)] = true
			r.Emit(o)
		}
	}
	for _, s := range st.Switches {
		show(s.Name, switchObject(s.Name, "Private", "", len(s.Ports)))
	}
	for i := range st.VirtualSwitches {
		show(st.VirtualSwitches[i].Name, overObject(&st.VirtualSwitches[i]))
	}
	for _, n := range names {
		if !strings.ContainsAny(n, "*?") && !found[strings.ToLower(n)] {
			return fmt.Errorf("there is no switch %q; Get-VMSwitch lists those of the driver", n)
		}
	}
	return nil
}

// like reports whether a name is one of several, with wildcards.
func like(name string, of []string) bool {
	return slices.ContainsFunc(of, func(n string) bool { return powershell.Like(name, n) })
}

// removeSwitch removes a virtual switch with its adapters.
func (r *run) removeSwitch() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	name := r.Text("Name")
	s := switchNamed(st.VirtualSwitches, name)
	if s == nil {
		if slices.ContainsFunc(st.Switches, func(s api.SwitchStatus) bool { return strings.EqualFold(s.Name, name) }) {
			return fmt.Errorf("%w: switch %q is one of the driver's own, and ends with it", api.ErrUnsupported, name)
		}
		return r.noSwitch(st.VirtualSwitches)
	}
	if !r.Should("Remove-VMSwitch", s.Name) {
		return nil
	}
	return r.driver.RemoveVirtualSwitch(r.Context, s.Name)
}

// noSwitch says which switches there are in place of that of a parameter.
func (r *run) noSwitch(list []api.VirtualSwitch) error {
	param := "SwitchName"
	if !r.Given(param) {
		param = "Name"
	}
	if len(list) == 0 {
		return fmt.Errorf("there is no switch %q; New-VMSwitch makes one", r.Text(param))
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return fmt.Errorf("there is no switch %q over an adapter; allowed: %s", r.Text(param), strings.Join(names, ", "))
}
