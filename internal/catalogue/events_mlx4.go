package catalogue

// mlx4 returns an event of the list "Reported Driver Events", which prints no IDs.
func mlx4(id uint32, symbol, source string, s Severity, text string) Event {
	return event(id, symbol, source, MLX4, s, text, Source{winof, "6.7 Reported Driver Events"})
}

// mlx4From returns an event from another section of the manual.
func mlx4From(section string, id uint32, symbol, source string, s Severity, text string) Event {
	return event(id, symbol, source, MLX4, s, text, Source{winof, section})
}

const (
	troubleshooting = "6 Troubleshooting"
	fixes           = "3 Bug Fixes"
	history         = "10 Release Notes Change Log History"
	losslessTCP     = "4.1.12.6 Monitoring Lossless TCP State"
	selfHealing     = "4.10.1.3 Logging"
)

func mlx4Events() []Event {
	return []Event{
		mlx4(0x8001, "AdapterReady", sourceMLX4Eth, Informational, "{Adapter}: the adapter is initialized and enabled."),
		raised(published(mlx4(0x0002, "AdapterStartFailed", sourceMLX4Eth, Error, "{Adapter}: the adapter could not be initialized: {Cause}."),
			"WinOF 5.50.53000")),
		raised(mlx4(0x8003, "AdapterStarted", sourceMLX4Eth, Informational,
			"{Adapter}: the adapter is initialized and enabled; its network address is {MAC}, its IP address {Address}.")),
		raised(mlx4(0x8004, "ResetFinished", sourceMLX4Eth, Informational, "{Adapter}: the adapter was reset.")),
		raised(mlx4(0x8005, "ResetFailed", sourceMLX4Eth, Error, "{Adapter}: the adapter could not be reset. Disable and enable it.")),
		raised(mlx4(0x8006, "AdapterStopped", sourceMLX4Eth, Informational, "{Adapter}: the adapter has stopped.")),
		published(mlx4(0x000a, "FirmwareTooOld", sourceMLX4Eth, Error,
			"{Adapter}: the adapter could not be initialized, because its firmware is {Firmware} and the driver needs {Required}."),
			"WinOF 5.50.53000"),
		raised(mlx4(0x8008, "LinkUp", sourceMLX4Eth, Informational, "{Adapter}: the link of port {Port} is up, and the port works.")),
		raised(mlx4(0x8009, "LinkDown", sourceMLX4Eth, Warning, "{Adapter}: the link of port {Port} is down. The cable or the interface may be gone, or the other end may be down.")),
		raised(mlx4(0x800a, "RSSModesDiffer", sourceMLX4Eth, Warning, "{Adapter}: its two ports do not use the same RSS mode, which costs speed with MSI-X. Set both to the same mode.")),
		mlx4(0x800b, "FewInterrupts", sourceMLX4Eth, Warning, "{Adapter}: there are too few MSI-X vectors, so the adapter uses none. Allow at least {Required} in the registry."),
		mlx4(0x800c, "CommandFailed", sourceMLX4Bus, Error, "{Device}: firmware command {Op} failed ({Stage}): status {Status}, error {Error}, token {Token}, input modifier {InModifier}, operation modifier {OpModifier}, parameter {InParam}."),
		mlx4(0x800d, "SRIOVEnabled", sourceMLX4Bus, Informational, "{Device}: SR-IOV is on, and this is the physical function."),
		raised(mlx4(0x800e, "PortTypeNotChanged", sourceMLX4Bus, Warning,
			"{Device}: the type of port {Port} could not be changed to {PortType} and stays as it was.")),
		mlx4(0x800f, "VFInvalidCommand", sourceMLX4Bus, Warning,
			"{Device}: virtual function {VF} issued an invalid command, or one out of sequence (channel {Channel}, fragment {Fragment}, command {Command}, status {Status}); it was not carried out."),
		raised(mlx4From(losslessTCP, 0x0057, "DroplessEntered", sourceMLX4Bus, Informational,
			"{Device}: dropless mode is on for port {Port}; no packets are dropped.")),
		raised(mlx4From(losslessTCP, 0x0058, "DroplessExited", sourceMLX4Bus, Informational,
			"{Device}: dropless mode is off for port {Port}; packets may be dropped.")),
		raised(mlx4From(losslessTCP, 0x0059, "DelayDropTimeout", sourceMLX4Bus, Warning,
			"{Device}: no receive was posted on port {Port} in time; dropless mode is off, and packets may be dropped.")),
		ofBoth(raised(mlx4From(selfHealing, 0x008b, "SelfHealingFailed", sourceMLX4Bus, Error,
			"{Device}: self-healing could not act on sensors {Sensors}, because the software reset failed with error {Error}."))),
		ofBoth(raised(mlx4From(selfHealing, 0x008c, "SelfHealingRestart", sourceMLX4Bus, Warning,
			"{Interface}: restarted because of an error that sensors {Sensors} found; restarts so far: {Restarts}."))),
		ofBoth(raised(mlx4From(selfHealing, 0x008d, "SelfHealingStop", sourceMLX4Bus, Error,
			"{Interface}: stopped because of an error that sensors {Sensors} found."))),
		raised(event(0x0100, "DumpMeNow", sourceMLX4Bus, MLX4, Informational,
			"{Device}: a dump-me-now request wrote its dump to folder {Folder}. Such folders are made in {Root}, which DumpMeNowDirectory sets.",
			Source{winof, "4.7.5 Event Logs"}, Source{winof, selfHealing})),
		raised(mlx4From("4.7.5 Event Logs", 0x0101, "DumpMeNowFailed", sourceMLX4Bus, Error,
			"{Device}: a dump-me-now request could not write all of its dump below {Root}: {Failure}, status {Status}.")),
		mlx4From(fixes+" (1020562)", 156, "InterruptLost", sourceMLX4Bus, Warning, "{Device}: the interrupt of an event queue entry was lost."),
		mlx4From(history+" (1110008)", 273, "VFResourcesShort", sourceMLX4Bus, Error,
			"{Device}: virtual function {VF} cannot be loaded, because too few resources are left for it."),
		ofBoth(raised(mlx4From(history, 0x8010, "SameGUID", sourceMLX4Bus, Error,
			"{Device}: the device does not start, because another one has the GUID {GUID}."))),
		mlx4From(history, 0x8011, "BadCable", sourceMLX4Eth, Warning, "{Adapter}: the cable of port {Port} is bad or not supported."),
		mlx4From(history, 0x8012, "SMBUnsupported", sourceMLX4Bus, Warning, "{Device}: the firmware does not support SMB Direct."),
		raised(mlx4From(history, 0x8013, "RoCEMode", sourceMLX4Bus, Informational, "{Adapter}: RoCE {Mode} is in use.")),
		ofBoth(raised(mlx4From(history, 0x8014, "MTUAboveSubnet", sourceIPoIB, Warning,
			"{Adapter}: the port's MTU of {MTU} bytes is more than the {SubnetMTU} that the subnet manager reports."))),
		ofBoth(raised(mlx4From(fixes+" (676863)", 0x8015, "UnknownProtocol", sourceIPoIB, Warning,
			"{Adapter}: packets of the unknown Ethernet protocol {Protocol} are dropped."))),
		ofBoth(raised(mlx4From("4.1.1 Mode Configuration", 0x8016, "PortsContradict", sourceMLX4Bus, Error,
			"{Device}: port 1 cannot be Ethernet without RoCE while port 2 is InfiniBand; {Action}."))),
		mlx4From(troubleshooting, 0x8017, "RunFirmwareFailed", sourceMLX4Bus, Error,
			"{Device}: RUN_FW failed with error {Error}; the card may have the wrong firmware."),
		mlx4From(troubleshooting, 0x8018, "NDInvalidState", sourceNDFilter, Error,
			"{Device}: NetworkDirect does not work, because its filter and the bus driver have different versions. Close the programs that use it and restart the bus driver."),
		mlx4From(troubleshooting, 0x8019, "VFSelfHealing", sourceMLX4Bus, Error,
			"{Device}: self-healing acted on virtual function {VF} for sensors {Sensors}; its bus driver has to be restarted."),
		published(mlx4From(troubleshooting, 0x0004, "RSSDisabledBySystem", sourceMLX4Eth, Error,
			"{Adapter}: the adapter is set to use RSS but the system's TCP is not, so the port is not started. Turn RSS on in the system, or off for the port."), "WinOF 5.50.53000"),
	}
}

// sensorEvents are the reports of the sensors of self-healing. For the first one the manual prints 3009 in
// one place, and 30009 in the other, which is right.
func sensorEvents() []Event {
	return []Event{
		raised(sensor(30009, "SendHardwareStuck", "no hardware progress in an Ethernet send queue")),
		raised(sensor(30029, "SendSoftwareStuck", "no driver progress in an Ethernet send queue")),
		raised(sensor(30011, "ReceiveSoftwareStuck", "no driver progress in an Ethernet receive queue")),
		raised(sensor(30021, "ReceiveCompletionError", "a receive that completed with an error")),
		raised(sensor(30022, "SendCompletionError", "a send that completed with an error")),
		sensor(30013, "VFChannelError", "an error on the channel to a virtual function"),
	}
}

func sensor(id uint32, symbol, what string) Event {
	return event(id, symbol, sourceOperations, MLX4, Error, "{Device}: the sensor found "+what+".",
		Source{winof, "4.10.1.1.1.1 Miniport Driver Sensors"}, Source{winof, selfHealing})
}
