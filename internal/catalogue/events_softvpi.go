package catalogue

// soft returns an event that the manuals do not have.
func soft(id uint32, symbol string, s Severity, text string) Event {
	return event(id, symbol, sourceSoftVPI, Both, s, text)
}

// soft5 returns an event that only the manual of mlx4 adapters has, for mlx5 adapters.
func soft5(id uint32, symbol string, s Severity, text string) Event {
	return event(id, symbol, sourceSoftVPI, MLX5, s, text)
}

// IDs of removed events are not reused.
func softEvents() []Event {
	return []Event{
		raised(soft(1, "DriverStarted", Informational, "The driver {Version} has started as process {PID} with {Adapters} adapters.")),
		raised(soft(2, "DriverStopped", Informational, "The driver has stopped.")),
		raised(soft(3, "DriverRecovered", Warning, "The previous driver did not stop cleanly; what it left was cleaned up.")),
		raised(soft(4, "SelfCheckFailed", Error, "The driver does not start, because its self-check failed: {Cause}.")),
		raised(soft(90, "DriverDied", Error, "The previous driver died: {Cause}. Its traceback and last commands are in {Folder}.")),
		raised(soft(91, "RequestPanicked", Error, "The request {Request} to the management interface ended in a panic, a fault of the driver: {Cause}. Its traceback and the last commands are in {Folder}.")),
		raised(soft(5, "AdapterEnabled", Informational, "{Adapter}: the adapter was enabled.")),
		raised(soft(6, "AdapterDisabled", Warning, "{Adapter}: the adapter was disabled; the connections of its programs have ended.")),
		raised(soft(7, "AddressesChanged", Informational, "{Adapter}: the addresses of the port have changed; the GID table now has {Addresses}.")),
		raised(soft(8, "RoCEModeRefused", Warning, "{Adapter}: RoCE mode {Mode} is refused, because {Cause}; {Used} is used.")),
		raised(soft(35, "RoCEModesDiffer", Warning, "{Adapter}: RoCE packets of another mode arrive for the adapter, which uses RoCE {Mode}; both ends of a connection need the same mode.")),
		raised(soft(9, "RegistryValueIgnored", Warning, "{Key} is {Value}, but the allowed values are {Allowed}; the default, {Used}, is used.")),
		raised(soft(10, "RegistrySetAside", Error, "The registry could not be read ({Cause}). It was kept as {File}, and every key has its default.")),
		raised(soft(11, "NothingKept", Warning, "{What} cannot be written to {Directory} ({Cause}). The driver runs without keeping it.")),
		raised(soft(12, "ProgramDied", Warning, "Program {Program}, process {PID}, ended without detaching; its resources were freed.")),
		raised(soft(13, "LogRepaired", Warning, "{Bytes} bytes at the end of {File} were not a complete event and were dropped: a driver ended while writing, or the file is damaged.")),
		raised(soft(14, "Repeated", Informational, "Event {ID} of {Source} came {Count} more times within {Seconds} seconds and was not written.")),
		raised(soft(18, "ProgramDisconnected", Warning, "Program {Program}, process {PID}, was disconnected: {Cause}; its resources were freed.")),
		raised(soft(19, "ProgramRefused", Warning, "Program {Program}, process {PID}, wants more than the driver's limits allow: {Cause}.")),
		raised(soft(30, "AdapterAsleep", Informational, "{Adapter}: the host sleeps until a magic packet or one of {Patterns} patterns wakes it.")),
		raised(soft(31, "AdapterWoken", Informational, "{Adapter}: the host was woken by {Cause}.")),
		raised(soft(33, "DuplicateMAC", Warning, "{Adapter}: somebody else on the wire sends with the adapter's address, {MAC}.")),
		raised(soft(36, "DuplicateAddress", Warning, "{Adapter}: somebody else on the wire, {MAC}, has the adapter's address {Address}.")),
		raised(soft(34, "ManyGroups", Warning, "{Adapter}: its host uses {Groups} multicast addresses, more than the {Limit} that MaxNumOfMCList says are filtered; frames to all groups are received.")),
		raised(soft(32, "WakeCommandFailed", Warning, "{Adapter}: the command {Command} for a wake-up failed: {Cause}.")),
		raised(soft(40, "DCBXAgreed", Informational, "{Adapter}: priorities were agreed with {Peer} by {Protocol}: PFC {PFC} ({PFCFrom}), classes {Classes} with {Bandwidths} ({ETSFrom}), applications {Applications} ({ApplicationsFrom}).")),
		raised(soft(41, "DCBXEnded", Warning, "{Adapter}: the peer {Peer} no longer speaks DCBX; the adapter's own settings of priorities are back.")),
		raised(soft(42, "DCBXConflict", Warning, "{Adapter}: the peer {Peer} is configured differently, and neither or both of the two are willing; not in operation: {Features}.")),
		raised(soft(43, "DCBXMultiplePeers", Warning, "{Adapter}: more than one neighbour speaks DCBX; the adapter's own settings of priorities are used.")),
		raised(soft(44, "LLDPRefused", Warning, "{Adapter}: LLDP and DCBX are switched on, but {Cause}.")),
		raised(soft(45, "FlowControlRefused", Warning, "{Adapter}: flow control is switched on, but {Cause}.")),
		raised(soft(46, "TrustContradicts", Warning, "{Adapter}: received packets have the priority of their DSCP (RxTrustedState 2), but {Cause}. Both directions should agree.")),
		raised(soft(47, "FabricIncident", Warning, "Fabric {Fabric}: {Incident}.")),
		raised(soft(48, "FabricIncidentOver", Informational, "Fabric {Fabric}: {Incident}.")),
		raised(soft(49, "TeamMemberChanged", Informational, "{Adapter}: member {Member} of its team is {Status}, and its role is {Role}.")),
		raised(soft(50, "TeamMemberLost", Warning, "{Adapter}: member {Member} of its team is {Status}; its role is {Role}.")),
		raised(soft(51, "VFReset", Warning, "{Adapter}: virtual function {VF} ({Function}) was reset; the connections of its programs have ended.")),
		raised(soft(56, "MTUChanged", Informational, "{Adapter}: the MTU of {Function} is {MTU} bytes, {Before} before, and the path MTU of its RoCE connections {PathMTU}, {PathBefore} before.")),
		raised(soft(60, "SensorError", Error, "{Adapter}: the sensor {Sensor}, {Mask}, found an error.")),
		raised(soft5(15, "AdapterStartFailed", Error, "{Adapter}: the adapter could not be started: {Cause}.")),
		raised(soft5(16, "AdapterStarted", Informational, "{Adapter}: the adapter has started at {Address}.")),
		raised(soft5(17, "RoCEMode", Informational, "{Adapter}: RoCE {Mode} is in use.")),
	}
}
