package catalogue

// mlx5 returns an event of the list "Reported Driver Events", which prints no IDs.
func mlx5(id uint32, symbol string, s Severity, text string) Event {
	return event(id, symbol, sourceMLX5, MLX5, s, text, Source{winof2, "5.5 Reported Driver Events"})
}

// published adds the edition of the list that prints IDs as a source.
func published(e Event, manual string) Event {
	e.Sources = append(e.Sources, Source{manual, "Reported Driver Events"})
	return e
}

// mlx5Events is in the order of the manual's list.
func mlx5Events() []Event {
	return []Event{
		mlx5(0x8001, "VFsLimited", Warning, "{Adapter}: {Requested} virtual functions were requested but only {Supported} are supported; there will be {Allowed}."),
		published(mlx5(0x0004, "RSSDisabledBySystem", Error, "{Adapter}: the adapter is set to use RSS but the system's TCP is not, so the port is not started. Turn RSS on in the system, or off for the port."), "WinOF-2 24.10"),
		raised(mlx5(0x8003, "JumboPacketReduced", Warning, "{Adapter}: the registry asks for jumbo packets of {Value} bytes but the device supports {Supported}; {Used} are used.")),
		raised(published(mlx5(0x0006, "MTUTooSmall", Error, "{Adapter}: firmware {Firmware} supports an MTU of at most {Maximum} bytes, which is less than the smallest allowed, {Minimum}."), "WinOF-2 24.10")),
		raised(mlx5(0x8005, "AdapterStopped", Informational, "{Adapter}: the adapter has stopped.")),
		published(mlx5(0x000c, "TooFewInterrupts", Error, "{Adapter}: the adapter does not start, because fewer MSI-X vectors are available than it needs."), "WinOF-2 24.10"),
		raised(mlx5(0x8007, "LinkUp", Informational, "{Adapter}: the link is up, and the port works.")),
		raised(mlx5(0x8008, "LinkDown", Warning, "{Adapter}: the link is down. The cable or the interface may be gone, or the other end may be down.")),
		raised(mlx5(0x8009, "RSSOff", Warning, "{Adapter}: RSS is off for the adapter, which may cost much of its speed.")),
		mlx5(0x800a, "CQErrorEvent", Error, "{Adapter}: error event of type {Type} on completion queue {CQ} of function {Function}; the adapter will be reset."),
		mlx5(0x800b, "CompletionError", Error, "{Adapter}: completion with an error (send: {Send}) on completion queue {CQ}, queue pair {QP} of function {Function}: syndrome {Syndrome}, vendor syndrome {VendorSyndrome}, opcode {Opcode}; the adapter will be reset."),
		ofBoth(raised(mlx5(0x800c, "EventQueueStuck", Warning, "{Adapter}: event queue {EQ} is stuck; the driver tries to recover."))),
		raised(mlx5(0x800d, "SendTimeout", Warning, "{Adapter}: send queue {Queue} of function {Function} makes no progress; the driver tries to recover.")),
		raised(mlx5(0x800e, "ReceiveTimeout", Warning, "{Adapter}: receive queue {Queue} of function {Function} makes no progress; the driver tries to recover.")),
		raised(mlx5(0x800f, "FlowControlOff", Warning, "{Adapter}: flow control is off, and RoCE does not work well without it. Set it on hosts and switches.")),
		raised(mlx5(0x8010, "MulticastAddress", Error, "{Adapter}: {Address} is a multicast address and cannot be the adapter's own. Set NetworkAddress to another one and restart the adapter.")),
		raised(mlx5(0x8011, "ResetByDriver", Warning, "{Adapter}: the driver resets the adapter.")),
		mlx5(0x8012, "ResetBySystem", Warning, "{Adapter}: the system resets the adapter."),
		raised(mlx5(0x8013, "ResetFinished", Informational, "{Adapter}: the reset is done.")),
		raised(mlx5(0x8014, "Identification", Informational, "{Adapter}: vendor {Vendor}, device {Device}, subsystem vendor {SubsystemVendor}, subsystem {Subsystem}, hardware revision {Revision}, firmware {Firmware}, port type {PortType}.")),
		mlx5(0x8015, "QueryCapabilitiesFailed", Error, "{Adapter}: the device does not report its capabilities (QUERY_HCA_CAP: error {Error}) and cannot be used. Its firmware is probably damaged."),
		mlx5(0x8016, "QueryAdapterFailed", Error, "{Adapter}: the device does not identify itself (QUERY_ADAPTER: error {Error}) and cannot be used. Its firmware is probably damaged."),
		mlx5(0x8017, "FewInterrupts", Warning, "{Adapter}: {Requested} MSI-X vectors were requested but only {Allocated} were allocated, which may cost speed."),
		mlx5(0x8018, "CommandFailed", Error, "{Adapter}: firmware command {Op} failed: status {Status}, error {Error}, syndrome {Syndrome}."),
		raised(mlx5(0x8019, "TooManyAddresses", Warning, "{Adapter}: a port supports RoCE on {Limit} IP addresses, and there are more; the others are not used.")),
		mlx5(0x801a, "TooFewEventQueues", Error, "{Adapter}: the adapter does not start, because it needs {Required} event queues, preferably {Recommended}, and only {Available} are available."),
		mlx5(0x801b, "CommandNotExecuted", Error, "{Adapter}: firmware command {Op} could not be carried out: error {Error}."),
		raised(mlx5(0x801c, "UnsupportedPortType", Error, "{Adapter}: the adapter does not start, because the driver does not support port type {PortType}.")),
		mlx5(0x801d, "FirmwareLacks", Error, "{Adapter}: the adapter does not start, because firmware {Firmware} offers less than the driver needs: RSS indirection table {IndirectionTable}, VLAN {VLAN}, receive queues {ReceiveQueues}, send queues {SendQueues}, TIRs {TIRs}."),
		mlx5(0x801e, "FlowTableTooSmall", Error, "{Adapter}: the adapter does not start, because the flow tables of firmware {Firmware} have at most {Entries} entries."),
		mlx5(0x801f, "ReceiveRequestTooLarge", Error, "{Adapter}: the adapter does not start, because it needs receive work requests of {Required} bytes and firmware {Firmware} allows only {Supported}."),
		mlx5(0x8020, "WorkRequestTooSmall", Error, "{Adapter}: the adapter does not start, because firmware {Firmware} allows work requests of only {Size} bytes."),
		mlx5(0x8021, "NoCQModeration", Warning, "{Adapter}: firmware {Firmware} cannot moderate completion queues."),
		mlx5(0x8022, "NoCQRemap", Warning, "{Adapter}: firmware {Firmware} cannot move a completion queue to another event queue."),
		mlx5(0x8023, "NoVPortCounters", Warning, "{Adapter}: firmware {Firmware} has no vPort counters."),
		mlx5(0x8024, "NoLSO", Warning, "{Adapter}: firmware {Firmware} has no large send offload."),
		mlx5(0x8025, "NoChecksumOffload", Warning, "{Adapter}: firmware {Firmware} has no checksum offload."),
		raised(mlx5(0x8026, "ResetFailed", Error, "{Adapter}: the reset requested by the system failed.")),
		raised(mlx5(0x8027, "DumpAfterError", Warning, "{Adapter}: dump {File} was written after a fatal error.")),
		raised(mlx5(0x8028, "DumpOnRequest", Informational, "{Adapter}: dump {File} was written on request.")),
		raised(event(75, "DelayDropTimeout", sourceMLX5, MLX5, Warning,
			"{Adapter}: no receive was posted to queue {Queue} in time, so dropless mode is now off.", droplessSources...)),
		raised(event(77, "DroplessEntered", sourceMLX5, MLX5, Informational, "{Adapter}: dropless mode is on.", droplessSources...)),
		raised(event(78, "DroplessExited", sourceMLX5, MLX5, Informational, "{Adapter}: dropless mode is off.", droplessSources...)),
		raised(event(0x8029, "VFTooManyResources", sourceMLX5, MLX5, Warning,
			"{Adapter}: VF {VF} used too many resources over the last {Seconds} seconds: FwCpuUsage {FwCpuUsage}%, Errors2Fw {Errors2Fw}",
			Source{virtualization, "VF Monitoring"})),
		raised(event(0x802a, "VFTooManyPages", sourceMLX5, MLX5, Error,
			"{Adapter}: virtual function {VF} asked for more than the {Limit} pages that MaxFWPagesUsagePerVF allows.",
			Source{virtualization, "VF Resource Control"})),
		ofBoth(raised(event(0x802b, "VFSpoofed", sourceMLX5, MLX5, Warning,
			"{Adapter}: virtual function {VF} ({Function}) sent {Frames} frames {Cause}; they were dropped.",
			Source{virtualization, "VF Spoof Protection"}, Source{winof, "4.5.3.5.3 Ethertype Spoof Protection"}))),
	}
}

var droplessSources = []Source{{ethernetA, "Dropless Mode"}, {ethernetB, "Dropless Mode"}}
