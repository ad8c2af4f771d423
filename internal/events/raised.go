package events

import (
	"net"
	"net/netip"
)

// Event is one of the types below: an event with the values of its fields. The type's name is the symbol
// in the catalogue; it has the fields that the texts of both generations use.
type Event interface{ event() }

type (
	// LinkUp says that the port of an adapter passes packets.
	LinkUp struct {
		Adapter string
		Port    uint32
	}
	// LinkDown says that it no longer does.
	LinkDown struct {
		Adapter string
		Port    uint32
	}
	// AdapterStarted says that an adapter is ready.
	AdapterStarted struct {
		Adapter string
		MAC     net.HardwareAddr
		Address netip.Addr
	}
	// AdapterStartFailed says why an adapter could not be created or enabled.
	AdapterStartFailed struct {
		Adapter string
		Cause   error
	}
	// AdapterStopped says that an adapter ended with the driver, or was disabled.
	AdapterStopped struct{ Adapter string }
	// AdapterEnabled says that somebody enabled an adapter.
	AdapterEnabled struct{ Adapter string }
	// AdapterAsleep says that the host of an adapter's Ethernet function sleeps, and by how many patterns frames wake it.
	AdapterAsleep struct {
		Adapter  string
		Patterns uint32
	}
	// AdapterWoken says what has woken it.
	AdapterWoken struct{ Adapter, Cause string }
	// DCBXAgreed says what was agreed with a peer about priorities.
	DCBXAgreed struct{ Adapter, Peer, Protocol, PFC, PFCFrom, Classes, Bandwidths, ETSFrom, Applications, ApplicationsFrom string }
	// DCBXEnded says that a peer is gone, or no longer speaks DCBX.
	DCBXEnded struct{ Adapter, Peer string }
	// DCBXConflict says that features of CEE do not work because both ends are configured differently.
	DCBXConflict struct{ Adapter, Peer, Features string }
	// DCBXMultiplePeers says that more than one neighbour speaks DCBX.
	DCBXMultiplePeers struct{ Adapter string }
	// LLDPRefused says why a port has no LLDP although it is switched on.
	LLDPRefused struct{ Adapter, Cause string }
	// DroplessEntered says that somebody has put a port into dropless mode.
	DroplessEntered struct {
		Adapter, Device string
		Port            int
	}
	// DroplessExited is the opposite of DroplessEntered.
	DroplessExited struct {
		Adapter, Device string
		Port            int
	}
	// DelayDropTimeout says that a packet has waited too long for a receive of a queue, which has ended dropless mode.
	DelayDropTimeout struct {
		Adapter, Device string
		Port            int
		Queue           uint32
	}
	// VFSpoofed says that spoof protection has dropped frames of a virtual function since it was told last.
	VFSpoofed struct {
		Adapter  string
		VF       int
		Function string
		Frames   uint64
		Cause    string
	}
	// VFTooManyResources says that a virtual function made too much work between two readings of its counters.
	VFTooManyResources struct {
		Adapter                 string
		VF, Seconds, FwCpuUsage int
		Errors2Fw               uint64
	}
	// VFTooManyPages says that a virtual function has asked for more memory than it may have.
	VFTooManyPages struct {
		Adapter string
		VF      int
		Limit   uint64
	}
	// VFReset says that a virtual function was reset.
	VFReset struct {
		Adapter  string
		VF       int
		Function string
	}
	// FlowControlRefused says why a port has no flow control although keys ask for it.
	FlowControlRefused struct{ Adapter, Cause string }
	// TrustContradicts says that an adapter trusts the DSCP of what it receives, and what it sends has another.
	TrustContradicts struct{ Adapter, Cause string }
	// DuplicateMAC says that somebody else sends with the address of an adapter's Ethernet function.
	DuplicateMAC struct{ Adapter, MAC string }
	// WakeCommandFailed says why the command of a wake-up failed.
	WakeCommandFailed struct {
		Adapter, Command string
		Cause            error
	}
	// AdapterDisabled says that somebody disabled an adapter.
	AdapterDisabled struct{ Adapter string }
	// Identification identifies an adapter, in the form of PCI IDs.
	Identification struct {
		Adapter                                    string
		Vendor, Device, SubsystemVendor, Subsystem Hex
		Revision, Firmware, PortType               string
	}
	// PortTypeNotChanged says that a port is configured for a protocol that it does not support, and keeps
	// its present one.
	PortTypeNotChanged struct {
		Device   string
		Port     uint32
		PortType string
	}
	// UnsupportedPortType says that an adapter does not start with the protocol that its port is
	// configured for.
	UnsupportedPortType struct{ Adapter, PortType string }
	// RoCEMode says which RoCE mode an adapter started with.
	RoCEMode struct{ Adapter, Mode string }
	// RoCEModeRefused says that an adapter does not support the requested mode, and which one it uses.
	RoCEModeRefused struct {
		Adapter, Mode string
		Cause         error
		Used          string
	}
	// AddressesChanged lists the addresses in a GID table that changed.
	AddressesChanged struct {
		Adapter   string
		Addresses []netip.Addr
	}
	// MTUAboveSubnet says that the MTU of an IPoIB interface is larger than the subnet's, in bytes.
	MTUAboveSubnet struct {
		Adapter        string
		MTU, SubnetMTU int
	}
	// UnknownProtocol says that an IPoIB interface dropped packets of a protocol that it does not carry.
	UnknownProtocol struct {
		Adapter  string
		Protocol Hex
	}
	// DuplicateAddress says that somebody else on the wire of an adapter has one of its IP addresses.
	DuplicateAddress struct {
		Adapter string
		MAC     net.HardwareAddr
		Address netip.Addr
	}
	// ManyGroups says that the host of an adapter uses more multicast addresses than are filtered.
	ManyGroups struct {
		Adapter       string
		Groups, Limit int
	}
	// RoCEModesDiffer says that somebody sends an adapter RoCE packets of another mode than its own.
	RoCEModesDiffer struct{ Adapter, Mode string }
	// RSSOff says that an adapter started with receive side scaling switched off.
	RSSOff struct{ Adapter string }
	// RSSModesDiffer says that an adapter started while the other port of its device works with receive side scaling and it
	// does not, or the other way round.
	RSSModesDiffer struct{ Adapter string }
	// FlowControlOff says that an adapter started RoCE without flow control.
	FlowControlOff struct{ Adapter string }
	// SameGUID says that a device does not start because another one has its GUID.
	SameGUID struct{ Device, GUID string }
	// PortsContradict says that the two ports of a device cannot be what they are set to, and what is done.
	PortsContradict struct{ Device, Action string }
	// JumboPacketReduced says that the configured frame size is larger than the link supports, in bytes.
	JumboPacketReduced struct {
		Adapter                string
		Value, Supported, Used uint32
	}
	// MTUTooSmall says that the MTU of a port's wire has become too small for RoCE, in bytes.
	MTUTooSmall struct {
		Adapter, Firmware string
		Maximum, Minimum  int
	}
	// MTUChanged says that an adapter, or a virtual function in a virtual subnet, has another MTU, in bytes.
	MTUChanged struct {
		Adapter, Function                string
		MTU, Before, PathMTU, PathBefore uint32
	}
	// SendTimeout says that the port takes nothing of a send queue of an Ethernet function, in which frames wait.
	SendTimeout struct {
		Adapter         string
		Queue, Function int
	}
	// ReceiveTimeout says that the host takes nothing of a receive queue of an Ethernet function, in which frames wait.
	ReceiveTimeout struct {
		Adapter         string
		Queue, Function int
	}
	// SendHardwareStuck is SendTimeout of WinOF's sensors.
	SendHardwareStuck struct{ Device string }
	// ReceiveSoftwareStuck is ReceiveTimeout of WinOF's sensors.
	ReceiveSoftwareStuck struct{ Device string }
	// SendSoftwareStuck says that completions of requests stay in the driver.
	SendSoftwareStuck struct{ Device string }
	// ReceiveCompletionError says that the link of a port has failed to receive.
	ReceiveCompletionError struct{ Device string }
	// SendCompletionError says that the link of a port has failed to send.
	SendCompletionError struct{ Device string }
	// EventQueueStuck says that an event of a completion queue is due and is not raised.
	EventQueueStuck struct {
		Adapter string
		EQ      int
	}
	// SensorError says what a sensor has found for which the manuals have no event.
	SensorError struct{ Adapter, Sensor, Mask string }
	// SelfHealingRestart says that self-healing has restarted an adapter, and how often it has.
	SelfHealingRestart struct {
		Interface, Sensors string
		Restarts           uint64
	}
	// SelfHealingFailed says that it could not.
	SelfHealingFailed struct {
		Device, Sensors string
		Error           error
	}
	// SelfHealingStop says that it leaves an adapter off.
	SelfHealingStop struct{ Interface, Sensors string }
	// TooManyAddresses says that a port has more addresses than its GID table has room for.
	TooManyAddresses struct {
		Adapter string
		Limit   int
	}
	// RegistryValueIgnored says that a stored value is not allowed and that the default is used instead.
	RegistryValueIgnored struct{ Key, Value, Allowed, Used string }
	// MulticastAddress says that NetworkAddress is a multicast address, and that the permanent address is
	// used instead.
	MulticastAddress struct{ Adapter, Address string }
	// RegistrySetAside says that the registry could not be read and was renamed.
	RegistrySetAside struct {
		Cause error
		File  string
	}
	// NothingKept says that a directory is not writable.
	NothingKept struct {
		What, Directory string
		Cause           error
	}
	// FabricIncident says what has gone wrong in the fabric that adapters are plugged in at: a pause that does not end, or a deadlock.
	FabricIncident struct{ Fabric, Incident string }
	// FabricIncidentOver says that it is over.
	FabricIncidentOver struct{ Fabric, Incident string }
	// TeamMemberChanged says what a connected member of the team does that an adapter stands on (WinOF 5.50, 4.2.8.3).
	TeamMemberChanged struct{ Adapter, Member, Status, Role string }
	// TeamMemberLost says that a member is disconnected, or disabled.
	TeamMemberLost struct{ Adapter, Member, Status, Role string }
	// DriverStarted says that the driver is up.
	DriverStarted struct {
		Version  string
		PID      int
		Adapters int
	}
	// DriverStopped says that the driver stopped cleanly.
	DriverStopped struct{}
	// DriverRecovered says that the previous driver did not.
	DriverRecovered struct{}
	// DriverDied says why the previous driver did not, and where what it left is; "-": it could not be kept.
	DriverDied struct{ Cause, Folder string }
	// RequestPanicked says which request ended in a panic, and where the traceback is; "-": in the log of the driver alone.
	RequestPanicked struct{ Request, Cause, Folder string }
	// SelfCheckFailed says why the driver did not start.
	SelfCheckFailed struct{ Cause error }
	// ProgramDied says that an attached program ended without detaching.
	ProgramDied struct {
		Program string
		PID     int
	}
	// ProgramDisconnected says that the driver detached a program, and why.
	ProgramDisconnected struct {
		Program string
		PID     int
		Cause   error
	}
	// ProgramRefused says that a limit kept a program from getting what it wanted, once for memory and once for descriptors.
	ProgramRefused struct {
		Program string
		PID     int
		Cause   error
	}
	// ResetByDriver says that a reset of an adapter begins.
	ResetByDriver struct{ Adapter string }
	// ResetFinished says that the reset is done.
	ResetFinished struct{ Adapter string }
	// ResetFailed says that the adapter did not start again as expected.
	ResetFailed struct{ Adapter string }
	// DumpOnRequest says where a requested dump is, on mlx5.
	DumpOnRequest struct{ Adapter, File string }
	// DumpAfterError says where a dump is that an error of the adapter has caused, on mlx5.
	DumpAfterError struct{ Adapter, File string }
	// DumpMeNow says where a dump requested with dump-me-now is, on mlx4.
	DumpMeNow struct{ Device, Folder, Root string }
	// DumpMeNowFailed says why there is no dump.
	DumpMeNowFailed struct {
		Device, Root string
		Failure      error
		Status       int
	}
	// LogRepaired says that a file of the event log contained bytes that are no event.
	LogRepaired struct {
		File  string
		Bytes int64
	}
	// Repeated says how often an event was suppressed because it occurred too often.
	Repeated struct {
		Source  string
		ID      Hex
		Count   uint64
		Seconds uint64
	}
)

func (LinkUp) event()               {}
func (LinkDown) event()             {}
func (AdapterStarted) event()       {}
func (AdapterStartFailed) event()   {}
func (AdapterStopped) event()       {}
func (AdapterEnabled) event()       {}
func (AdapterAsleep) event()        {}
func (DuplicateMAC) event()         {}
func (DCBXAgreed) event()           {}
func (DCBXEnded) event()            {}
func (DCBXConflict) event()         {}
func (DCBXMultiplePeers) event()    {}
func (LLDPRefused) event()          {}
func (DroplessEntered) event()      {}
func (DroplessExited) event()       {}
func (DelayDropTimeout) event()     {}
func (VFSpoofed) event()            {}
func (VFTooManyResources) event()   {}
func (VFTooManyPages) event()       {}
func (VFReset) event()              {}
func (FlowControlRefused) event()   {}
func (TrustContradicts) event()     {}
func (ManyGroups) event()           {}
func (DuplicateAddress) event()     {}
func (RoCEModesDiffer) event()      {}
func (AdapterWoken) event()         {}
func (WakeCommandFailed) event()    {}
func (AdapterDisabled) event()      {}
func (Identification) event()       {}
func (RoCEMode) event()             {}
func (PortTypeNotChanged) event()   {}
func (UnsupportedPortType) event()  {}
func (RoCEModeRefused) event()      {}
func (AddressesChanged) event()     {}
func (JumboPacketReduced) event()   {}
func (MTUAboveSubnet) event()       {}
func (UnknownProtocol) event()      {}
func (SameGUID) event()             {}
func (PortsContradict) event()      {}
func (RSSOff) event()               {}
func (RSSModesDiffer) event()       {}
func (FlowControlOff) event()       {}
func (TooManyAddresses) event()     {}
func (MTUTooSmall) event()          {}
func (MTUChanged) event()           {}
func (SendTimeout) event()          {}
func (ReceiveTimeout) event()       {}
func (SendHardwareStuck) event()    {}
func (ReceiveSoftwareStuck) event() {}
func (RegistryValueIgnored) event() {}
func (MulticastAddress) event()     {}
func (RegistrySetAside) event()     {}
func (NothingKept) event()          {}
func (FabricIncident) event()       {}
func (FabricIncidentOver) event()   {}
func (TeamMemberChanged) event()    {}
func (TeamMemberLost) event()       {}
func (DriverStarted) event()        {}
func (DriverStopped) event()        {}
func (DriverRecovered) event()      {}
func (DriverDied) event()           {}
func (RequestPanicked) event()      {}
func (SelfCheckFailed) event()      {}
func (ProgramDied) event()          {}
func (ProgramDisconnected) event()  {}
func (ProgramRefused) event()       {}
func (ResetByDriver) event()        {}
func (ResetFinished) event()        {}
func (ResetFailed) event()          {}
func (DumpOnRequest) event()        {}
func (DumpAfterError) event()       {}
func (DumpMeNow) event()            {}
func (DumpMeNowFailed) event()      {}
func (LogRepaired) event()          {}
func (Repeated) event()             {}

func (SendSoftwareStuck) event()      {}
func (ReceiveCompletionError) event() {}
func (SendCompletionError) event()    {}
func (EventQueueStuck) event()        {}
func (SensorError) event()            {}
func (SelfHealingRestart) event()     {}
func (SelfHealingFailed) event()      {}
func (SelfHealingStop) event()        {}
