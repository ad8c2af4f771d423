package catalogue

const groupSystem Group = "Operating system"

var registryTuning = from(winof, "4.9.1.2 Registry Tuning", winof2, "3.5.1.1 Registry Tuning")

// systemKeys belong to Windows itself. The manuals' tuning and troubleshooting set them; SoftVPI does not
// act on them but keeps them for scripts and exports.
func systemKeys() []Key {
	return []Key{
		{
			Name: "SackOpts", Base: Absolute, Path: services + `Tcpip\Parameters`, Group: groupSystem, Generations: Both, Scope: perMachine,
			Type:     DWORD,
			Defaults: always(1), Choices: disableEnable,
			Description: "Selective acknowledgement in TCP. Tuning switches it off to save processor time.",
			Chosen:      "The default, which is Windows'.",
			Sources:     registryTuning,
		},
		{
			Name: "TcpWindowSize", Base: Absolute, Path: services + `Tcpip\Parameters`, Group: groupSystem, Generations: Both,
			Scope: perMachine, Type: DWORD,
			Defaults: automatic("Windows adapts it"), Min: 0, Max: 0x3FFFFFFF, Hex: true, Unit: "bytes",
			Description: "Fixed size of the TCP window. If earlier tuning has left one, connections over fast adapters may fail: it should be removed or set to 0xFFFF.",
			Chosen:      "The limits, which are Windows'.",
			Sources:     from(winof, "6.4 Ethernet Related Troubleshooting", winof2, "5.2 Ethernet Related Troubleshooting"),
		},
		{
			Name: "FastSendDatagramThreshold", Base: Absolute, Path: services + `AFD\Parameters`, Group: groupSystem, Generations: Both,
			Scope: perMachine, Type: DWORD,
			Defaults: always(1024), Unit: "bytes",
			Description: "Datagrams up to this size take the short path through Windows' sockets. Tuning sets 65536.",
			Chosen:      "The default, which is Windows'.",
			Sources:     registryTuning,
		},
		{
			Name: "AllowFlowControlUnderDebugger", Base: Absolute, Path: services + `NDIS\Parameters`, Group: groupSystem, Generations: Both,
			Scope: perMachine, Type: DWORD,
			Defaults: always(0), Choices: disableEnable,
			Description: "Leaves flow control on if a kernel debugger is configured.",
			Chosen:      "The default.",
			Sources:     from(winof, "6.5 Performance Related Troubleshooting", winof2, "5.3 Performance Related Troubleshooting"),
		},
		{
			Name: "RequireSecuritySignature", Base: Absolute, Path: services + `LanmanServer\Parameters`, Group: groupSystem, Generations: Both,
			Scope: perMachine, Type: DWORD,
			Defaults: always(0), Choices: disableEnable,
			Description: "Requires signed SMB. Set to 0 it makes live migration over SMB Direct faster.",
			Chosen:      "The default, which is that of Windows servers that are not domain controllers.",
			Sources:     from(winof, "4.9.1.8 Improving Live Migration", winof2, "3.5.1.3 Improving Live Migration"),
		},
	}
}
