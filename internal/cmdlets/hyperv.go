package cmdlets

import (
	"slices"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// notYet is a feature that is not in yet. Commands name it, and what there is in its place.
type notYet struct{ feature, instead string }

// Error implements error.
func (e *notYet) Error() string { return e.feature + ": not in yet; " + e.instead }

// Unwrap makes it an error of what is not supported.
func (e *notYet) Unwrap() error { return api.ErrUnsupported }

// hyperV are the commands of Hyper-V. A virtual switch is over an adapter (docs/virtualization.md), and an adapter of a virtual machine
// there is a function of its port, which whoever stands for that machine uses: programs, or a container.
func hyperV() []cmdlet {
	text := func(name, help string, position int) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.String, Position: position, Help: help}
	}
	must := func(name, help string, position int) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.String, Position: position, Mandatory: true, Help: help}
	}
	texts := func(name, help string, position int) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Strings, Position: position, Help: help}
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
	pipe := powershell.Param{Name: "VMNetworkAdapter", Kind: powershell.Any, Piped: true, Help: "From Get-VMNetworkAdapter."}
	of := []powershell.Param{texts("VMName", "Of these virtual machines, with wildcards.", 1), texts("Name", "Of these names, with wildcards.", 0),
		on("ManagementOS", "Of the host."), pipe,
		{Name: "Function", Kind: powershell.Strings, Piped: true, Help: "Of these virtual functions."}}
	with := func(params ...powershell.Param) []powershell.Param { return append(slices.Clone(of), params...) }
	machines := powershell.Param{Name: "Name", Aliases: []string{"VMName"}, Kind: powershell.Strings, Position: 1, Mandatory: true, Piped: true,
		Help: "The virtual machines, with wildcards."}
	return []cmdlet{
		one("Get-VMHost", "Show whether the adapters' configurations grant virtual functions, and why not.", false, getVMHost),
		one("New-VMSwitch", "Make a virtual switch over an adapter: network adapters for the host and for machines are functions of its port.", true,
			(*run).newSwitch, must("Name", "Name of the switch.", 1), texts("NetAdapterName", "The adapter.", 0),
			flag("AllowManagementOS", "The adapter's own function stays at the switch in any case."), flag("EnableIov", "Adapters of machines are virtual functions, with RDMA."),
			flag("EnablePacketDirect", "Programs of its adapters may have queues of frames."), flag("EnableEmbeddedTeaming", "Not in yet."),
			powershell.Param{Name: "SwitchType", Kind: powershell.String, Allowed: []string{"External", "Internal", "Private"}, Help: "External; the others are made with the driver."}),
		one("Get-VMSwitch", "List the virtual switches of the driver, and those over adapters.", false, (*run).getSwitches,
			texts("Name", "Names, with wildcards.", 1)),
		one("Remove-VMSwitch", "Remove a virtual switch with its network adapters.", true, (*run).removeSwitch,
			must("Name", "Name of the switch.", 1), on("Force", "Without asking.")),
		one("Get-VMNetworkAdapter", "List the network adapters of virtual switches, other virtual functions, and the ports of the driver's own switches.", false, (*run).getPorts,
			texts("VMName", "Of these virtual machines, with wildcards.", 1), texts("Name", "Of these names, with wildcards.", 0),
			text("SwitchName", "Of one switch.", 0), on("ManagementOS", "Of the host."), on("All", "All.")),
		one("Add-VMNetworkAdapter", "Add a network adapter to a virtual switch, for a virtual machine or for the host.", true, (*run).addPort,
			text("VMName", "The virtual machine.", 1), must("SwitchName", "The switch.", 0), text("Name", "Name of the adapter.", 0),
			text("StaticMacAddress", "Its MAC, 12 hexadecimal digits.", 0), on("ManagementOS", "For the host."), on("Passthru", "Show it.")),
		one("Remove-VMNetworkAdapter", "Remove network adapters of virtual switches, and virtual functions.", true, (*run).removePort, of...),
		one("Connect-VMNetworkAdapter", "Say that an adapter is at its switch; it cannot move to another one.", true, (*run).connectPort,
			with(must("SwitchName", "The switch.", 0))...),
		one("Set-VMNetworkAdapter", "Change network adapters of virtual switches; what is not in yet is refused by its name.", true, (*run).setPort,
			with(number("VmqWeight", "Whether a virtual port has a receive queue of its own (VMQ), and before whom; 0: none.", 100),
				number("IovWeight", "Whether a machine's adapter is a virtual function: with 0 it has no RDMA.", 100), powershell.Param{Name: "IovQueuePairsRequested", Kind: powershell.Number, Min: 1, Max: 64, Help: "How many queues the network interface asks for."},
				flag("VmmqEnabled", "Whether one that is no virtual function has several queues (VMMQ)."),
				powershell.Param{Name: "VmmqQueuePairs", Kind: powershell.Number, Min: 1, Max: 64, Help: "How many it asks for."},
				number("VirtualSubnetId", "Its virtual subnet, 4096 to 16777214; 0: none.", 16777214), text("StaticMacAddress", "Its MAC, 12 hexadecimal digits.", 0),
				number("MaximumBandwidth", "Bits that it sends in a second, at most; 0: no limit.", mostBandwidth),
				number("MinimumBandwidthAbsolute", "Bits that it sends in a second before others have more.", mostBandwidth),
				flag("MacAddressSpoofing", "Whether it may send from other MACs, which it may not."))...),
		one("Set-VMNetworkAdapterVlan", "Set the VLAN of network adapters of virtual switches.", true, (*run).setPortVLAN,
			with(on("Untagged", "None."), on("Access", "That of -VlanId."), powershell.Param{Name: "VlanId", Kind: powershell.Number, Min: 1, Max: 4094, Help: "The VLAN."},
				on("Trunk", "Its programs tag frames themselves."), text("AllowedVlanIdList", "With which VLANs: 1-100,200.", 0),
				number("NativeVlanId", "VLAN of frames without a tag: 0, none.", 4094))...),
		one("Get-VMNetworkAdapterRdma", "Show whether network adapters of virtual switches have RDMA.", false, (*run).getPortRDMA, of...),
		one("Set-VMNetworkAdapterRdma", "Switch RDMA of network adapters of virtual switches on or off.", true, (*run).setPortRDMA,
			with(powershell.Param{Name: "RdmaWeight", Kind: powershell.Number, Max: 100, Mandatory: true, Help: "Whether it has RDMA."})...),
		one("Start-VM", "Give the network adapters of virtual machines their link; the machines themselves are whoever's runs them.", true,
			(*run).startMachines, machines, on("Passthru", "Show them.")),
		one("Stop-VM", "Take the link of the network adapters of virtual machines until Start-VM; the machines themselves go on.", true,
			(*run).stopMachines, machines, on("Force", "Without asking."), on("TurnOff", "At once, as it is in any case."), on("Passthru", "Show them.")),
		one("Get-VM", "List the virtual machines that have network adapters here: Off if no adapter of one may have a link.", false,
			(*run).getMachines, texts("Name", "The virtual machines, with wildcards.", 1)),
	}
}
