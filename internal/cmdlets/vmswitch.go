package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// kindSwitch are the records of the names that the switches in adapters' ports have.
const kindSwitch = "VMSwitch"

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

// portSwitch is the switch in the port of an adapter, by the name that New-VMSwitch has given it.
type portSwitch struct {
	name    string
	adapter *api.AdapterStatus
}

// portSwitches returns the switches in the ports of the driver's adapters that have names.
func (r *run) portSwitches(st *api.Status) (out []portSwitch, err error) {
	list, err := r.records(kindSwitch)
	for _, x := range list {
		for i := range st.Adapters {
			if st.Adapters[i].Name == x.fields["NetAdapterName"] {
				out = append(out, portSwitch{x.id, &st.Adapters[i]})
			}
		}
	}
	return out, err
}

func switchNamed(list []portSwitch, name string) *portSwitch {
	i := slices.IndexFunc(list, func(s portSwitch) bool { return strings.EqualFold(s.name, name) })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// newSwitch gives the switch in an adapter's port a name.
func (r *run) newSwitch() error {
	a, err := r.switchAdapter()
	if err != nil {
		return err
	}
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	list, err := r.portSwitches(st)
	if err != nil {
		return err
	}
	name := r.Text("Name")
	own := func(s api.SwitchStatus) bool { return strings.EqualFold(s.Name, name) }
	if switchNamed(list, name) != nil || slices.ContainsFunc(st.Switches, own) {
		return fmt.Errorf("there is a switch %q", name)
	}
	for _, s := range list {
		if s.adapter.Name == a.Name {
			return fmt.Errorf("the switch in the port of %q has a name, %q; Remove-VMSwitch takes it away", a.Name, s.name)
		}
	}
	if !r.Should("New-VMSwitch", name) {
		return nil
	}
	if r.Given("AllowManagementOS") && !r.Bool("AllowManagementOS") {
		r.Warn("the adapter's own function stays at the switch: adapter %q is used as before", a.Name)
	}
	if !r.Bool("EnableIov") {
		r.Warn("what is added to switch %q are virtual functions (SR-IOV): there are no others here", name)
	}
	if err := r.keep(kindSwitch, record{name, map[string]string{"NetAdapterName": a.Name}}); err != nil {
		return err
	}
	r.Emit(switchObject(name, "External", a.Name, len(a.Functions)))
	return nil
}

// switchAdapter returns the adapter of New-VMSwitch, or says what is not in yet.
func (r *run) switchAdapter() (*api.AdapterStatus, error) {
	names := r.Texts("NetAdapterName")
	kind := r.Text("SwitchType")
	switch {
	case r.Bool("EnablePacketDirect"):
		return nil, &notYet{"PacketDirect at virtual switches", "programs have queues of frames at an adapter (docs/ethernet.md)"}
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

func switchObject(name, kind, adapter string, ports int) *powershell.Object {
	return powershell.NewObject("VMSwitch", "Name", "SwitchType", "NetAdapterInterfaceDescription", "Ports").With("Name", name).
		With("SwitchType", kind).With("NetAdapterInterfaceDescription", adapter).With("Ports", int64(ports)).
		With("IovEnabled", kind == "External").With("PacketDirectEnabled", false).With("EmbeddedTeamingEnabled", false)
}

func (r *run) getSwitches() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	named, err := r.portSwitches(st)
	if err != nil {
		return err
	}
	names := r.Texts("Name")
	found := map[string]bool{}
	show := func(name, kind, adapter string, ports int) {
		if len(names) == 0 || like(name, names) {
			found[strings.ToLower(name)] = true
			r.Emit(switchObject(name, kind, adapter, ports))
		}
	}
	for _, s := range st.Switches {
		show(s.Name, "Private", "", len(s.Ports))
	}
	for _, s := range named {
		show(s.name, "External", s.adapter.Name, 1+len(s.adapter.Functions))
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

// removeSwitch removes the virtual functions that were made for a switch, and its name.
func (r *run) removeSwitch() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	list, err := r.portSwitches(st)
	if err != nil {
		return err
	}
	name := r.Text("Name")
	s := switchNamed(list, name)
	if s == nil {
		if slices.ContainsFunc(st.Switches, func(s api.SwitchStatus) bool { return strings.EqualFold(s.Name, name) }) {
			return fmt.Errorf("%w: switch %q is one of the driver's own, and ends with it", api.ErrUnsupported, name)
		}
		return r.noSwitch(list)
	}
	if !r.Should("Remove-VMSwitch", s.name) {
		return nil
	}
	ports, err := r.ports(st)
	if err != nil {
		return err
	}
	for _, p := range ports {
		if p.made && p.at == s.name {
			if err := r.dropPort(p); err != nil {
				return err
			}
		}
	}
	return r.forget(kindSwitch, s.name)
}

// noSwitch says which switches there are in place of that of a parameter.
func (r *run) noSwitch(list []portSwitch) error {
	param := "SwitchName"
	if !r.Given(param) {
		param = "Name"
	}
	if len(list) == 0 {
		return fmt.Errorf("there is no switch %q; New-VMSwitch gives that of an adapter a name", r.Text(param))
	}
	var names []string
	for _, s := range list {
		names = append(names, s.name)
	}
	return fmt.Errorf("there is no switch %q in an adapter's port; allowed: %s", r.Text(param), strings.Join(names, ", "))
}
