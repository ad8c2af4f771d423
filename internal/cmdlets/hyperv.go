package cmdlets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// notYet is a feature that is not in yet. Commands name it, and what there is in its place.
type notYet struct{ feature, instead string }

// Error implements error.
func (e *notYet) Error() string { return e.feature + ": not in yet; " + e.instead }

// Unwrap makes it an error of what is not supported.
func (e *notYet) Unwrap() error { return api.ErrUnsupported }

var (
	noSwitch = &notYet{"a switch between an adapter and virtual machines (eSwitch)",
		"the driver's own switches are made with it (softvpi up --adapter NAME=...,switch=SWITCH)"}
	noMachines = &notYet{"the control of virtual machines",
		"QEMU connects one to an adapter (docs/ethernet.md)"}
)

func hyperV() []cmdlet {
	text := func(name, help string, position int) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.String, Position: position, Help: help}
	}
	flag := func(name, help string) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Bool, Help: help}
	}
	number := func(name, help string, most int64) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Number, Max: most, Help: help}
	}
	on := func(name, help string) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Switch, Help: help}
	}
	one := func(name, help string, changes bool, do func(*run) error, params ...powershell.Param) cmdlet {
		c := powershell.Cmdlet{Name: name, Help: help, Changes: changes, Params: params}
		return cmdlet{c, do}
	}
	fail := func(e error) func(*run) error { return func(*run) error { return e } }
	pipe := powershell.Param{Name: "VMNetworkAdapter", Kind: powershell.Any, Piped: true, Help: "From Get-VMNetworkAdapter."}
	machine := []powershell.Param{{Name: "Name", Kind: powershell.Strings, Position: 1, Mandatory: true, Help: "The virtual machines."},
		on("Force", "Without asking."), on("TurnOff", "At once.")}
	return []cmdlet{
		one("Get-VMHost", "Show whether virtual functions can be had, and why not.", false, getVMHost),
		one("New-VMSwitch", "Not in yet.", true, fail(noSwitch), text("Name", "Name of the switch.", 1), text("NetAdapterName", "The adapter.", 0),
			flag("AllowManagementOS", "Whether the host has a port."), flag("EnableIov", "Whether it has virtual functions."),
			flag("EnablePacketDirect", "Whether it uses PacketDirect."), text("SwitchType", "Internal or Private.", 0)),
		one("Get-VMSwitch", "List the virtual switches of the driver.", false, (*run).getSwitches,
			powershell.Param{Name: "Name", Kind: powershell.Strings, Position: 1, Help: "Names, with wildcards."}),
		one("Remove-VMSwitch", "Not in yet.", true, fail(noSwitch), text("Name", "Name of the switch.", 1), on("Force", "Without asking.")),
		one("Enable-VMSwitchExtension", "Not in yet.", true, fail(noSwitch), text("VMSwitchName", "The switch.", 2), text("Name", "The extension.", 1)),
		one("Get-VMNetworkAdapter", "List the ports of the driver's virtual switches.", false, (*run).getPorts,
			powershell.Param{Name: "VMName", Kind: powershell.Strings, Position: 1, Help: "Of virtual machines, of which the driver knows none."},
			powershell.Param{Name: "Name", Kind: powershell.Strings, Help: "Of adapters, with wildcards."},
			text("SwitchName", "Of one switch.", 0), on("ManagementOS", "Of the host."), on("All", "All.")),
		one("Add-VMNetworkAdapter", "Not in yet.", true, fail(noSwitch), text("VMName", "The virtual machine.", 1), text("SwitchName", "The switch.", 0),
			text("Name", "Name of the adapter.", 0), text("StaticMacAddress", "Its MAC.", 0), on("ManagementOS", "Of the host.")),
		one("Connect-VMNetworkAdapter", "Not in yet.", true, fail(noSwitch), text("VMName", "The virtual machine.", 1), text("SwitchName", "The switch.", 0),
			text("Name", "Name of the adapter.", 0), pipe),
		one("Set-VMNetworkAdapter", "Not in yet: the message names the feature.", true, (*run).setPort, text("VMName", "The virtual machine.", 1),
			text("Name", "Name of the adapter.", 0), number("VmqWeight", "Whether it has a queue of its own (VMQ).", 100),
			number("IovWeight", "Whether it has a virtual function.", 100), number("IovQueuePairsRequested", "Queues of its virtual function.", 1<<20),
			flag("VmmqEnabled", "Whether it has several queues (VMMQ)."), number("VmmqQueuePairs", "How many.", 1<<20),
			number("VirtualSubnetId", "Its virtual subnet.", 16777214), text("StaticMacAddress", "Its MAC.", 0),
			number("MaximumBandwidth", "Bits in a second.", 1<<50), flag("MacAddressSpoofing", "Whether it may have other MACs."), pipe),
		one("Get-VMNetworkAdapterRdma", "Not in yet.", false, fail(&notYet{"RDMA of virtual machines", "programs in one use an adapter over a wire"}),
			text("VMName", "The virtual machine.", 1), text("Name", "Name of the adapter.", 0)),
		one("Set-VMNetworkAdapterRdma", "Not in yet.", true, fail(&notYet{"RDMA of virtual machines", "programs in one use an adapter over a wire"}),
			text("VMName", "The virtual machine.", 1), text("Name", "Name of the adapter.", 0), number("RdmaWeight", "Whether it has RDMA.", 100)),
		one("Start-VM", "Not in yet.", true, fail(noMachines), machine...),
		one("Stop-VM", "Not in yet.", true, fail(noMachines), machine...),
		one("Get-VM", "Not in yet.", false, fail(noMachines), powershell.Param{Name: "Name", Kind: powershell.Strings, Position: 1, Help: "The virtual machines."}),
	}
}

func getVMHost(r *run) error {
	o := powershell.NewObject("VMHost", "Name", "IovSupport", "IovSupportReasons")
	o.List = true
	r.Emit(o.With("Name", "localhost").With("IovSupport", false).
		With("IovSupportReasons", []any{"Virtual functions (SR-IOV) of software adapters are not in yet."}))
	return nil
}

func (r *run) getSwitches() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	names := r.Texts("Name")
	found := map[string]bool{}
	for _, s := range st.Switches {
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return powershell.Like(s.Name, n) }) {
			continue
		}
		found[strings.ToLower(s.Name)] = true
		r.Emit(powershell.NewObject("VMSwitch", "Name", "SwitchType", "Ports", "KnownAddresses").With("Name", s.Name).With("SwitchType", "Private").
			With("Ports", int64(len(s.Ports))).With("KnownAddresses", int64(len(s.Table))))
	}
	for _, n := range names {
		if !strings.ContainsAny(n, "*?") && !found[strings.ToLower(n)] {
			return fmt.Errorf("there is no switch %q; Get-VMSwitch lists those of the driver", n)
		}
	}
	return nil
}

func (r *run) getPorts() error {
	if vm := r.Texts("VMName"); len(vm) > 0 && !slices.Contains(vm, "*") {
		return fmt.Errorf("the driver knows of no virtual machine %q: %w", strings.Join(vm, ", "), noMachines)
	}
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	names := r.Texts("Name")
	for _, s := range st.Switches {
		if want := r.Text("SwitchName"); want != "" && !strings.EqualFold(want, s.Name) {
			continue
		}
		for _, p := range s.Ports {
			if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return powershell.Like(p.Adapter, n) }) {
				continue
			}
			mac := ""
			if a, err := st.Adapter("", p.Adapter); err == nil {
				mac = strings.ToUpper(strings.ReplaceAll(a.MAC, ":", ""))
			}
			r.Emit(powershell.NewObject("VMNetworkAdapter", "Name", "IsManagementOs", "VMName", "SwitchName", "MacAddress").With("Name", p.Adapter).
				With("IsManagementOs", true).With("VMName", nil).With("SwitchName", s.Name).With("MacAddress", mac).
				With("VlanId", int64(p.PVID)).With("InFrames", int64(p.InFrames)).With("OutFrames", int64(p.OutFrames)))
		}
	}
	return nil
}

// portFeatures are what parameters of Set-VMNetworkAdapter need.
var portFeatures = []struct{ param, feature string }{
	{"VmqWeight", "virtual machine queues (VMQ)"}, {"IovWeight", "virtual functions (SR-IOV)"},
	{"IovQueuePairsRequested", "virtual functions (SR-IOV)"}, {"VmmqEnabled", "several queues of a vPort (VMMQ)"},
	{"VmmqQueuePairs", "several queues of a vPort (VMMQ)"}, {"VirtualSubnetId", "network virtualization (NVGRE)"},
	{"MaximumBandwidth", "limits of vPorts"}, {"MacAddressSpoofing", "spoof protection of vPorts"}, {"StaticMacAddress", "vPorts"},
}

func (r *run) setPort() error {
	var missing []string
	for _, f := range portFeatures {
		if r.Given(f.param) && !slices.Contains(missing, f.feature) {
			missing = append(missing, f.feature)
		}
	}
	if len(missing) == 0 {
		return errors.New("what to set is missing; allowed: -VmqWeight, -IovWeight, -VmmqEnabled and others")
	}
	return &notYet{strings.Join(missing, ", "), "nothing is changed"}
}
