package cmdlets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// hostPort is the name of an adapter of a virtual machine unless it is given another one, as Hyper-V has it.
const hostPort = "Network Adapter"

// vmPort is a network adapter of a virtual switch, or a virtual function that is at none.
type vmPort struct {
	api.FunctionStatus
	machine string // empty: it is the host's
	name    string
	at      string // the switch; empty: it is at none
	iov     int
	vmmq    bool
	vmq     int // VmqWeight
}

// ports returns the network adapters of virtual switches, and the virtual functions that are at none.
func (r *run) ports(st *api.Status) (out []vmPort) {
	known := map[string]vmPort{}
	for _, s := range st.VirtualSwitches {
		for _, a := range s.Adapters {
			known[a.Function] = vmPort{machine: a.Machine, name: a.Name, at: s.Name, iov: a.IOVWeight, vmmq: a.VMMQ, vmq: a.VMQWeight}
		}
	}
	for i := range st.Adapters {
		for _, f := range st.Adapters[i].Functions {
			p, ok := known[f.Name]
			if !ok {
				p = vmPort{name: f.Name, iov: 100}
			}
			p.FunctionStatus = f
			out = append(out, p)
		}
	}
	return out
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
		With("Function", p.FunctionStatus.Name).With("Status", status).With("IovWeight", int64(p.iov)).With("VlanId", int64(p.VLAN)).
		With("MaximumBandwidth", int64(p.Max*1e6)).With("MinimumBandwidthAbsolute", int64(p.Min*1e6)).With("VirtualSubnetId", int64(p.VSID)).
		With("VmqWeight", int64(p.vmq)).With("VmqUsage", p.vmqUsage()).
		With("VmmqEnabled", p.vmmq).With("QueuePairsRequested", int64(p.QueuesRequested)).With("QueuePairs", int64(len(p.Rings)))
}

// vmqUsage is how many receive queues of the adapter's it has for itself.
func (p *vmPort) vmqUsage() int64 {
	if p.VMQ != nil && p.VMQ.Number != 0 {
		return 1
	}
	return 0
}

// bareMAC is a MAC as Hyper-V writes it: 12 digits.
func bareMAC(mac string) string { return strings.ToUpper(strings.ReplaceAll(mac, ":", "")) }

func (r *run) getPorts() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	list := r.ports(st)
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
	list := r.ports(st)
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

// addPort adds a network adapter to a virtual switch.
func (r *run) addPort() error {
	machine, name := r.Text("VMName"), r.Text("Name")
	if (machine == "") != r.Bool("ManagementOS") {
		return &powershell.ParameterError{Parameter: "whose adapter it is to be", Value: machine, Allowed: "either -VMName NAME or -ManagementOS"}
	}
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	s := switchNamed(st.VirtualSwitches, r.Text("SwitchName"))
	if s == nil {
		return r.noSwitch(st.VirtualSwitches)
	}
	switch {
	case name == "" && machine != "":
		name = hostPort
	case name == "":
		name = s.Name
	}
	q := api.SwitchAdapterRequest{Switch: s.Name, Function: freeFunction(st, machine, name), Settings: []string{"name=" + name}}
	if machine == "" {
		q.Settings = append(q.Settings, "rdma=off") // until Enable-NetAdapterRdma (WinOF-2 24.4, Configuring NDK for Virtual NICs)
	} else {
		q.Settings = append(q.Settings, "machine="+machine)
	}
	if r.Given("StaticMacAddress") {
		mac, err := colonMAC("StaticMacAddress", r.Text("StaticMacAddress"))
		if err != nil {
			return err
		}
		q.Settings = append(q.Settings, "mac="+mac)
	}
	if !r.Should("Add-VMNetworkAdapter", strings.TrimSpace(machine+" "+name)) {
		return nil
	}
	a, err := r.driver.AddSwitchAdapter(r.Context, q)
	if err != nil {
		return err
	}
	r.Verbose("its function is %q: programs have it with SOFTVPI_FUNCTION=%s", a.Function, a.Function)
	if r.Bool("Passthru") {
		p := vmPort{a.Status, a.Machine, a.Name, s.Name, a.IOVWeight, a.VMMQ, a.VMQWeight}
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
	if p.at == "" {
		return r.driver.RemoveFunction(r.Context, p.FunctionStatus.Name)
	}
	return r.driver.RemoveSwitchAdapter(r.Context, p.at, p.FunctionStatus.Name)
}

// changePort changes an adapter.
func (r *run) changePort(p vmPort, settings []string) error {
	if p.at == "" {
		return r.driver.SetFunction(r.Context, api.FunctionRequest{Name: p.FunctionStatus.Name, Settings: settings})
	}
	return r.driver.SetSwitchAdapter(r.Context, api.SwitchAdapterRequest{Switch: p.at, Function: p.FunctionStatus.Name, Settings: settings})
}

func (r *run) connectPort() error {
	list, err := r.chosenPorts()
	if err != nil {
		return err
	}
	for _, p := range list {
		if !strings.EqualFold(p.at, r.Text("SwitchName")) {
			return &notYet{"network adapters that move to another switch", fmt.Sprintf("%q is at %q", p.name, p.at)}
		}
	}
	return nil
}
