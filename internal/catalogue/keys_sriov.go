package catalogue

import "fmt"

const (
	groupSRIOV Group = "SR-IOV"
	groupSpoof Group = "Spoof protection"
	groupDHCP  Group = "DHCP redirection"
	groupVFMon Group = "VF monitoring"
)

var (
	sriovSources = from(winof, "4.6.9.1 SR-IOV Registry Keys", winof,
		"4.5.3.4.2 Enabling SR-IOV in Mellanox WinOF Package (Ethernet SR-IOV Only)")
	vfMonSources   = from(virtualization, "VF Monitoring")
	spoofMLX4      = from(winof, "4.5.3.5.3.1 Ethertype Spoof Protection Registry Keys")
	spoofMLX5      = from(virtualization, "VF Spoof Protection")
	sriovPortModes = []Choice{
		{0, "auto_port1", "port 1 has all that the device's configuration allows; port 2 has none and is plain Ethernet"},
		{1, "auto_port2", "port 2 has all that the device's configuration allows; port 1 has none and is plain Ethernet"},
		{2, "manual", "MaxVFPort1 and MaxVFPort2 say how many each port has"},
	}
)

// sriovKeys are WinOF's device keys: once for the machine, which take precedence, and once for each
// device.
func sriovKeys() []Key {
	return append(deviceAndMachine(
		Key{
			Name: "PermitSriov", Defaults: always(1), Choices: disableEnable,
			Description: "Allows virtual functions.",
		},
		Key{
			Name: "SriovPortMode", Defaults: always(2), Choices: sriovPortModes,
			Description: "How the device's virtual functions are divided between its ports. A port never has more than its interface is allowed.",
		},
		Key{
			Name: "MaxVFPort1", Aliases: []string{"SriovPort1NumVFs"}, Defaults: always(16), Min: 0, Max: 126, Bound: VirtualFunctions,
			Unit:        "virtual functions",
			Description: "Number of virtual functions of port 1, in manual mode. If both ports together ask for more than the device's configuration allows, each has its share of that.",
			Chosen:      "The upper limit, which is that of the device.",
		},
		Key{
			Name: "MaxVFPort2", Aliases: []string{"SriovPort2NumVFs"}, Defaults: always(16), Min: 0, Max: 126, Bound: VirtualFunctions,
			Unit:        "virtual functions",
			Description: "Number of virtual functions of port 2, in manual mode. If both ports together ask for more than the device's configuration allows, each has its share of that.",
			Chosen:      "The upper limit, which is that of the device.",
		},
	),
		Key{
			Name: "*SRIOV", Base: AdapterClass, Group: groupSRIOV, Generations: Both, Scope: physical, Type: NumericString,
			Defaults: always(1), Choices: disableEnable, UI: true, Title: "SR-IOV", Status: Built,
			Description: "Offers virtual functions on the adapter, if the device's configuration (SRIOV_EN) allows them.",
			Chosen:      "The default, as nothing happens before SRIOV_EN is set, and that WinOF has it too.",
			Sources:     from(winof2, "3.3.3.3.2 Enabling SR-IOV in Mellanox WinOF-2 Package (Ethernet SR-IOV Only)"),
		},
		Key{
			Name: "*NumVFs", Base: AdapterClass, Group: groupSRIOV, Generations: Both, Scope: physical, Type: NumericString,
			Defaults: always(32), Min: 0, Max: 127, Bound: VirtualFunctions, Unit: "virtual functions", UI: true, Title: "Number of VFs",
			Status:      Built,
			Description: "Number of virtual functions that the operating system allows the interface (Set-NetAdapterSriov -NumVFs).",
			Chosen:      "The name: the manuals print the command.",
			Sources:     from(virtualization, "Enabling SR-IOV in Firmware", winof, "4.6.9.1 SR-IOV Registry Keys"),
		},
		Key{
			Name: "MaxFWPagesUsagePerVF", Base: AdapterClass, Group: groupSRIOV, Generations: MLX5, Scope: physical, Type: DWORD,
			Status:   Built,
			Defaults: always(250000), Unit: "pages of 4 KB",
			Description: "Most memory that the driver gives the programs of a virtual function for their resources; 0: no limit. A request beyond it fails with an error event.",
			Chosen:      "The default, and 0.",
			Sources:     from(virtualization, "Configuring Host Memory Limit per VF"),
		},
	)
}

// deviceAndMachine completes keys of WinOF's SR-IOV, which exist below the driver (for every device) and
// below each device; if both are set the driver's take precedence.
func deviceAndMachine(keys ...Key) []Key {
	var a []Key
	for _, k := range keys {
		k.Group, k.Generations, k.Type, k.Sources, k.Status = groupSRIOV, MLX4, DWORD, sriovSources, Built
		text := k.Description
		k.Base, k.Path, k.Scope, k.Overrides = DriverService, "", perDriver, true
		k.Description = text + " For all devices; takes precedence over the device's own."
		a = append(a, k)
		k.Base, k.Path, k.Scope, k.Overrides = DeviceClass, "Parameters", perAdapter, false
		k.Description = text + " For one device, if nothing is set for all."
		a = append(a, k)
	}
	return a
}

// spoofKeys are the same keys at WinOF's device and at WinOF-2's adapter.
func spoofKeys() []Key {
	return append(
		spoofKeysOf(MLX4, DeviceClass, "Parameters", "The default.", spoofMLX4),
		spoofKeysOf(MLX5, AdapterClass, "", "", spoofMLX5)...)
}

func spoofKeysOf(g Generation, base Base, path, chosen string, sources []Source) []Key {
	a := []Key{{
		Name: "VFAllowedTxEtherTypeListEnable", Base: base, Path: path, Group: groupSpoof, Generations: g, Scope: physicalEthernet,
		Type: DWORD, Status: Built,
		Defaults: always(1), Choices: disableEnable,
		Description: "Lets virtual functions send only frames of the listed EtherTypes; others are dropped. In any case source addresses are checked, and flow control frames (0x8808) refused.",
		Chosen:      chosen,
		Sources:     sources,
	}}
	for i := range 8 {
		a = append(a, Key{
			Name: fmt.Sprintf("VFAllowedTxEtherType%d", i), Base: base, Path: path, Group: groupSpoof, Generations: g,
			Scope: physicalEthernet, Type: DWORD, Status: Built,
			Defaults: automatic("no entry; if none of the eight is set, IPv4, ARP and IPv6 are allowed"), Min: 0, Max: 0xFFFF, Hex: true,
			Description: fmt.Sprintf("Entry %d of the list of EtherTypes that virtual functions may send; 0 allows LLC frames, which have none. FCoE (0x8906) and its initialization protocol (0x8914) go together.", i+1),
			Sources:     sources,
		})
	}
	return a
}

func dhcpKeys() []Key {
	return []Key{
		{
			Name: "RedirectVfDHCPToPF", Base: AdapterClass, Group: groupDHCP, Generations: MLX5, Scope: physicalEthernet, Type: DWORD, Status: Built,
			Defaults: always(0), Choices: disableEnable,
			Description: "Redirects DHCP packets (UDP ports 67 and 68) that virtual functions send or should receive to the physical function, which has to be promiscuous.",
			Sources:     from(virtualization, "VF's DHCP Redirections"),
		},
	}
}

func vfMonitoringKeys() []Key {
	return []Key{
		{
			Name: "VfCpuMonEnable", Base: AdapterClass, Group: groupVFMon, Generations: MLX5, Scope: physical, Type: DWORD,
			Status:   Built,
			Defaults: always(0), Choices: disableEnable, Effect: AtOnce,
			Description: "Watches how much work virtual functions cause in the firmware, and warns in the event log.",
			Chosen:      "Path and default.",
			Sources:     vfMonSources,
		},
		{
			Name: "VfCpuMonBatchPeriodSec", Base: AdapterClass, Group: groupVFMon, Generations: MLX5, Scope: physical, Type: DWORD,
			Status:   Built,
			Defaults: always(60), Min: 1, Max: 86400, Unit: "s", Effect: AtOnce,
			Description: "Time from one reading of the virtual functions' FwCpuUsage and Errors2FW counters to the next.",
			Chosen:      "Path, default and limits.",
			Sources:     vfMonSources,
		},
		{
			Name: "VfCpuMonFwCpuUsageMax", Base: AdapterClass, Group: groupVFMon, Generations: MLX5, Scope: physical, Type: DWORD,
			Status:   Built,
			Defaults: always(20), Min: 1, Max: 100, Unit: "%", Effect: AtOnce,
			Description: "Share of the firmware's time that a virtual function may use in a period before a warning.",
			Chosen:      "Path, default and limits.",
			Sources:     vfMonSources,
		},
		{
			Name: "VfCpuMonErrors2FwMax", Base: AdapterClass, Group: groupVFMon, Generations: MLX5, Scope: physical, Type: DWORD,
			Status:   Built,
			Defaults: always(1000), Min: 1, Max: 1<<32 - 1, Unit: "errors", Effect: AtOnce,
			Description: "Errors that a virtual function may report to the firmware in a period before a warning.",
			Chosen:      "Path, default and limits.",
			Sources:     vfMonSources,
		},
	}
}
