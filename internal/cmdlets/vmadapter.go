package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// kindPort are the records of whose adapters virtual functions are, by the names of the functions.
const kindPort = "VMNetworkAdapter"

// hostPort is the name of an adapter of a virtual machine unless it is given another one, as Hyper-V has it.
const hostPort = "Network Adapter"

// vmPort is an adapter at the switch in a port: a virtual function.
type vmPort struct {
	api.FunctionStatus
	machine string // empty: it is the host's
	name    string
	at      string // the switch; empty: it has no name
	made    bool   // by Add-VMNetworkAdapter
}

// ports returns the adapters at the switches in ports.
func (r *run) ports(st *api.Status) (out []vmPort, err error) {
	switches, err := r.portSwitches(st)
	if err != nil {
		return nil, err
	}
	records, err := r.records(kindPort)
	if err != nil {
		return nil, err
	}
	for i := range st.Adapters {
		at := ""
		for _, s := range switches {
			if s.adapter.Name == st.Adapters[i].Name {
				at = s.name
			}
		}
		for _, f := range st.Adapters[i].Functions {
			p := vmPort{FunctionStatus: f, name: f.Name, at: at}
			if x, ok := find(records, f.Name); ok {
				p.made, p.machine, p.name = true, x.fields["VMName"], x.fields["Name"]
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// object shows an adapter at a switch.
func (p *vmPort) object() *powershell.Object {
	var machine any
	if p.machine != "" {
		machine = p.machine
	}
	status := map[bool]string{true: "Ok", false: "NotConnected"}[p.Up]
	return powershell.NewObject("VMNetworkAdapter", "Name", "IsManagementOs", "VMName", "SwitchName", "MacAddress", "Function").With("Name", p.name).
		With("IsManagementOs", p.machine == "").With("VMName", machine).With("SwitchName", p.at).With("MacAddress", bareMAC(p.MAC)).
		With("Function", p.FunctionStatus.Name).With("Status", status).With("IovWeight", int64(100)).With("VlanId", int64(p.VLAN)).
		With("MaximumBandwidth", int64(p.Max*1e6)).With("MinimumBandwidthAbsolute", int64(p.Min*1e6)).With("VirtualSubnetId", int64(0))
}

// bareMAC is a MAC as Hyper-V writes it: 12 digits.
func bareMAC(mac string) string { return strings.ToUpper(strings.ReplaceAll(mac, ":", "")) }

func (r *run) getPorts() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	list, err := r.ports(st)
	if err != nil {
		return err
	}
	wanted := func(name, at, machine string) bool {
		want := r.Text("SwitchName")
		names, machines := r.Texts("Name"), r.Texts("VMName")
		return (want == "" || strings.EqualFold(want, at)) && (len(names) == 0 || like(name, names)) &&
			(len(machines) == 0 || machine != "" && like(machine, machines)) && (!r.Bool("ManagementOS") || machine == "")
	}
	for _, p := range list {
		if wanted(p.name, p.at, p.machine) {
			r.Emit(p.object())
		}
	}
	if err := r.knownMachines(list); err != nil {
		return err
	}
	for _, s := range st.Switches {
		for _, p := range s.Ports {
			if wanted(p.Adapter, s.Name, "") {
				r.Emit(ownPort(st, s.Name, p))
			}
		}
	}
	return nil
}

// ownPort shows a port of one of the driver's own switches.
func ownPort(st *api.Status, at string, p api.SwitchPortStatus) *powershell.Object {
	mac := ""
	if a, err := st.Adapter("", p.Adapter); err == nil {
		mac = bareMAC(a.MAC)
	}
	return powershell.NewObject("VMNetworkAdapter", "Name", "IsManagementOs", "VMName", "SwitchName", "MacAddress", "Function").With("Name", p.Adapter).
		With("IsManagementOs", true).With("VMName", nil).With("SwitchName", at).With("MacAddress", mac).With("Function", nil).
		With("VlanId", int64(p.PVID)).With("InFrames", int64(p.InFrames)).With("OutFrames", int64(p.OutFrames))
}

// knownMachines refuses names of virtual machines that have no adapter here.
func (r *run) knownMachines(list []vmPort) error {
	for _, n := range r.Texts("VMName") {
		if !strings.ContainsAny(n, "*?") && !slices.ContainsFunc(list, func(p vmPort) bool { return strings.EqualFold(p.machine, n) }) {
			return fmt.Errorf("no adapter here is of a virtual machine %q; Add-VMNetworkAdapter makes one", n)
		}
	}
	return nil
}

// chosenPorts returns the adapters that a command means: the one that comes through the pipe, or those of its parameters.
func (r *run) chosenPorts() (out []vmPort, err error) {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return nil, err
	}
	list, err := r.ports(st)
	if err != nil {
		return nil, err
	}
	names, machines := r.Texts("Name"), r.Texts("VMName")
	functions, err := r.functionsMeant()
	if err != nil {
		return nil, err
	}
	if len(functions) == 0 && len(names) == 0 && len(machines) == 0 && !r.Bool("ManagementOS") {
		return nil, &powershell.ParameterError{Parameter: "which adapters is missing",
			Allowed: "-VMName, -Name, -Function, -ManagementOS, or from Get-VMNetworkAdapter"}
	}
	for _, p := range list {
		switch {
		case len(functions) > 0 && !like(p.FunctionStatus.Name, functions), len(names) > 0 && !like(p.name, names),
			len(machines) > 0 && (p.machine == "" || !like(p.machine, machines)), r.Bool("ManagementOS") && p.machine != "":
			continue
		}
		out = append(out, p)
	}
	if err := r.knownMachines(list); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no such adapter; Get-VMNetworkAdapter lists them")
	}
	return out, nil
}

// functionsMeant are the virtual functions of -Function, or that of an object of Get-VMNetworkAdapter; none: there is neither.
func (r *run) functionsMeant() ([]string, error) {
	v := r.Value("VMNetworkAdapter")
	o, ok := v.(*powershell.Object)
	switch {
	case !ok && v != nil && !r.HasInput:
		return nil, &powershell.ParameterError{Parameter: "-VMNetworkAdapter", Value: powershell.Text(v), Allowed: "what Get-VMNetworkAdapter returns"}
	case !ok:
		return r.Texts("Function"), nil
	}
	f, _ := o.Get("Function")
	if powershell.Text(f) == "" {
		return nil, fmt.Errorf("%w: a port of the driver's own switches is set with its adapter", api.ErrUnsupported)
	}
	return []string{powershell.Text(f)}, nil
}

// addPort creates a virtual function at the port of a switch's adapter.
func (r *run) addPort() error {
	machine, name := r.Text("VMName"), r.Text("Name")
	if (machine == "") != r.Bool("ManagementOS") {
		return &powershell.ParameterError{Parameter: "whose adapter it is to be", Value: machine, Allowed: "either -VMName NAME or -ManagementOS"}
	}
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	switches, err := r.portSwitches(st)
	if err != nil {
		return err
	}
	s := switchNamed(switches, r.Text("SwitchName"))
	if s == nil {
		return r.noSwitch(switches)
	}
	q := api.FunctionRequest{Adapter: s.adapter.Name, Settings: []string{}}
	if r.Given("StaticMacAddress") {
		mac, err := colonMAC("StaticMacAddress", r.Text("StaticMacAddress"))
		if err != nil {
			return err
		}
		q.Settings = append(q.Settings, "mac="+mac)
	}
	switch {
	case name == "" && machine != "":
		name = hostPort
	case name == "":
		name = s.name
	}
	q.Name = freeFunction(st, machine, name)
	if !r.Should("Add-VMNetworkAdapter", strings.TrimSpace(machine+" "+name)) {
		return nil
	}
	f, err := r.driver.CreateFunction(r.Context, q)
	if err != nil {
		return err
	}
	r.Verbose("it is the virtual function %q: programs have it with SOFTVPI_FUNCTION=%s", f.Name, f.Name)
	if err := r.keep(kindPort, record{f.Name, map[string]string{"VMName": machine, "Name": name}}); err != nil {
		return err
	}
	if r.Bool("Passthru") {
		p := vmPort{f, machine, name, s.name, true}
		r.Emit(p.object())
	}
	return nil
}

// colonMAC is a MAC as settings of virtual functions have it.
func colonMAC(param, text string) (string, error) {
	if err := checkField("MACAddress", text); err != nil {
		return "", &powershell.ParameterError{Parameter: "-" + param, Value: text, Allowed: "12 hexadecimal digits"}
	}
	digits := strings.ToLower(strings.NewReplacer("-", "", ":", "").Replace(text))
	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":"), nil
}

// freeFunction returns a name for a virtual function that none has: that of the machine, or of the adapter, with a number if needed.
func freeFunction(st *api.Status, machine, name string) string {
	if machine != "" {
		name = machine
	}
	const most = 27
	base := strings.Map(func(c rune) rune {
		if c == '.' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '-'
	}, name)
	base = strings.Trim(base[:min(len(base), most)], "-.")
	if base == "" {
		base = "vf"
	}
	free := base
	for n := 2; ; n++ {
		taken := slices.ContainsFunc(st.Adapters, func(a api.AdapterStatus) bool {
			return slices.ContainsFunc(a.Functions, func(f api.FunctionStatus) bool { return f.Name == free })
		})
		if !taken {
			return free
		}
		free = fmt.Sprintf("%s-%d", base, n)
	}
}

func (r *run) removePort() error {
	list, err := r.chosenPorts()
	if err != nil {
		return err
	}
	for _, p := range list {
		if !r.Should("Remove-VMNetworkAdapter", p.name) {
			continue
		}
		if err := r.dropPort(p); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) dropPort(p vmPort) error {
	if err := r.driver.RemoveFunction(r.Context, p.FunctionStatus.Name); err != nil {
		return err
	}
	return r.forget(kindPort, p.FunctionStatus.Name)
}

func (r *run) connectPort() error {
	list, err := r.chosenPorts()
	if err != nil {
		return err
	}
	for _, p := range list {
		if !strings.EqualFold(p.at, r.Text("SwitchName")) {
			return &notYet{"virtual functions that move to another switch", fmt.Sprintf("%q is at %q", p.name, p.at)}
		}
	}
	return nil
}
