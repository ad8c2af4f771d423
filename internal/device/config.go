package device

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/function/lldp"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/wire/eth"
)

// PathPolicy says which path connections take.
type PathPolicy uint8

// The policies.
const (
	PathAuto   PathPolicy = iota // direct or local if both ends are on this host and nothing needs packets
	PathWire                     // always packets through the link
	PathLocal                    // copied by the adapters; a connection that cannot be local is refused
	PathDirect                   // like PathAuto, but a connection that could only use the wire is refused
)

func (p PathPolicy) String() string {
	switch p {
	case PathAuto:
		return "auto"
	case PathWire:
		return "wire"
	case PathLocal:
		return "local"
	case PathDirect:
		return "direct"
	}
	return "invalid"
}

// RoCE modes of an adapter, numbered as in command.AdapterInfo.
const (
	roceDisabled uint32 = 0
	RoCEv1       uint32 = 1
	RoCEv125     uint32 = 2
	RoCEv2       uint32 = 3
	InfiniBand   uint32 = 4 // not RoCE: an InfiniBand port
)

// Config configures a Host. The zero value is ready to use.
type Config struct {
	// Seed is the seed of everything random (QP numbers, PSNs, key tags, ids of connections and
	// transactions), for tests; 0: the system's random numbers.
	Seed uint64
	// GIDInterval is how often the addresses of the interfaces are checked for the GID tables
	// (UpdateGIDTimerFrequency, WinOF manual 4.6.9.3), 1 ms to 10 s; 0 means the default of 3 s, a
	// negative value never.
	GIDInterval time.Duration
	// Spin is how long the background goroutine keeps looking for work before it sleeps; 0: 50 us,
	// negative: it sleeps at once.
	Spin time.Duration
	// NoBackground leaves the loop to Poll and WaitCQ, for tests that step it.
	NoBackground bool
	// Agreed is told what an LLDP agent has agreed for the port of an adapter, whenever that changes; nil: nobody is. It is called
	// with the loop lock held: it must not block or call into the Host.
	Agreed func(adapter uint32, x lldp.Agreement)
	// DroplessExpired is told that the port of an adapter has left dropless mode because a packet has waited too long for a receive of
	// a queue, likewise.
	DroplessExpired func(adapter uint32, queue uint32)
	// Spoofed is told what spoof protection has dropped, likewise, every ten seconds at most.
	Spoofed func(Spoofed)
	// Resized is told that the MTU of an adapter has changed while it works, or of a virtual function in a virtual subnet, likewise.
	Resized func(Resized)
	// Broken is told that the engines of a port have panicked, likewise: the port has no turns until it is mended (Mend), and all
	// others go on. nil: a panic ends the process.
	Broken func(Breakdown)
	// Now returns the time; nil: the system's monotonic clock.
	Now func() clock.Time
	// Log receives messages for an administrator; nil: none.
	Log *slog.Logger
}

// AdapterConfig describes an adapter: a port of a device.
type AdapterConfig struct {
	Name string     // for example "Ethernet 1", which is the pattern if empty
	Addr netip.Addr // the port's address; required, except for InfiniBand ports, which have a GID
	// Addrs are additional addresses for the GID table. With FollowInterface they are taken from the
	// interface that has Addr.
	Addrs           []netip.Addr
	FollowInterface bool
	namespace       uint64 // network namespace of the thread that added the adapter, in which its interface is
	// Networks are those of addresses on a link of whole frames, each with the length of the network that is on the link;
	// for other addresses everybody is. Gateways are the routers to other networks, the first of a family for all.
	Networks []netip.Prefix
	Gateways []netip.Addr
	// NoProbes uses the addresses for which a link of whole frames answers without asking whether others have them.
	NoProbes bool
	UDPPort  uint16 // RoCE v2 destination port (roce_udp_dport); 0: 4791
	// RoCE is the mode, RoCEv1, RoCEv125 or RoCEv2; 0: v2. UDP links support v2 only; InfiniBand ports
	// have none: 0 or InfiniBand.
	RoCE uint32
	// RoceMaxFrameSize is the largest payload of a packet, 256 to 4096; 0: derived from the link's MTU, as
	// if the registry key is absent.
	RoceMaxFrameSize uint32
	// MTU is the largest IP packet in bytes if the link's MTU is larger (*JumboPacket); 0: the link's.
	MTU  uint32
	MAC  [6]byte // the permanent one; 0: the interface's, or derived from the address
	VLAN uint16  // identifier of the VLAN of its frames on a link of whole frames; 0: none
	GUID uint64  // of the port; 0: derived from the MAC
	// Device is the name of the device whose port number Port the adapter is; empty: a device of its own. Port
	// 0 means 1.
	Device string
	Port   uint32
	// Speed is what the port's wire is said to carry, in bit/s; 0: the wire's own speed, and if a wire of whole frames has none,
	// 10 Gb/s, as Linux says of a TAP or veth. Limited: it is slowed down to that.
	Speed    uint64
	Limited  bool
	DeviceID uint32 // as programs see it; 0: that of the ConnectX-4 class
	// Firmware is what programs are told of the device's; SetFirmware changes it. Without a version it has the engine's.
	Firmware   command.Firmware
	Moderation Moderation
	Polling    wait.Polling
	Path       PathPolicy
	Disabled   bool // disabled when added
	// NoFlowControl switches end-to-end credits off for new connections (RoceRcE2EFlowControlEnable = 0).
	NoFlowControl bool
	// NoRawPackets refuses raw packet queue pairs (*PacketDirect = 0).
	NoRawPackets bool
	// NoRDMA offers programs no RDMA: no queue pairs but raw packet ones, no CM ids (*NetworkDirect = 0).
	NoRDMA bool
	// MaxCMRetries is how often a CM message is retransmitted, 1 to 15; 0: 15.
	MaxCMRetries int
	Limits       Limits

	// SATimeout and SARetries apply to requests to the subnet administration of an InfiniBand port
	// (SaTimeout, SaRetries); 0: 1 s and 10.
	SATimeout time.Duration
	SARetries int

	// Link is the link of the port; nil: a UDP link is opened at Addr:UDPPort with SourcePorts and
	// ReceiveBuffer. The adapter closes it. A link without descriptors must call Host.Wake when packets
	// arrive.
	Link link.Link
	// ShareWith is the index of an adapter at whose port this one's function is to be, too: a second function behind one
	// port. With a link of whole frames that has stations they share the link, each with a MAC and addresses of its own;
	// with UDP sockets each has its own. nil: the adapter has a port of its own, with Link.
	ShareWith *uint32
	// Ethernet is the adapter's Ethernet function, on a link of whole frames with stations; nil: none.
	Ethernet *EthernetConfig
	// Virtual makes the adapter a virtual function, which only its own programs see; nil: it is none. See AddFunction.
	Virtual       *Virtual
	virtualOf     uint32 // whose
	aliases       AliasGUIDs
	byLID         bool  // it has a LID of its own at an InfiniBand port
	ofHost        bool  // it is a VLAN interface of an adapter, see AddVLAN
	ofTenant      bool  // it is one of a virtual function
	priority      uint8 // of that
	SourcePorts   int   // sockets to send from at a time; 0: 1024
	ReceiveBuffer int   // bytes; 0: as large as the system allows
	// Frames says whether short packets are sent as Ethernet frames beside the UDP socket.
	Frames packet.Mode
	// AnySourcePort accepts packets of a connection from any UDP port of its peer's address, not only from
	// the first that it used, for peers that vary it.
	AnySourcePort bool
}

// Limits limit the number and size of an adapter's objects. Zero fields mean the values of defaultLimits;
// larger values than those are refused.
type Limits struct {
	QP, CQ, SRQ, MR, MW, PD, AH      uint32
	QPDepth, CQDepth, SRQDepth       uint32
	SGE, Inline                      uint32
	ReadResponder, ReadInitiator     uint32
	Message, Region                  uint64
	DM                               uint64 // bytes of device memory
	ClientObjects, ClientArenaMemory uint64 // of one client on all adapters
}

// Reached is how the loop accesses memory that a client registers: Bytes if it is mapped here, otherwise
// Remote.
type Reached struct {
	Bytes  []byte
	Remote memory.Accessor
	Path   command.MemoryPath
	// Release is called once, when the region is gone and no packet uses it any more. It may be nil. It
	// must not call into the Host.
	Release func()
}

// ClientConfig describes a program.
type ClientConfig struct {
	Name     string // of the program, for status output
	PID, UID int
	// NewArena creates the memory of ring arena id, size bytes, zeroed, which the program maps too; nil:
	// private memory of this process.
	NewArena func(id uint32, size int) ([]byte, error)
	// FreeArena frees the memory of an arena when the client is closed; nil for private memory.
	FreeArena func(id uint32, mem []byte)
	// Reach finds the memory that the client registers; nil: the addresses are addresses of this process,
	// and the client keeps the memory in place until the region is destroyed.
	Reach func(command.RegisterMemory) (Reached, error)
	// OnDemand does so for regions on demand if Reach is nil: of their memory nothing is kept in place, and a missing page
	// must not be a fault of this process; nil: there are no such regions.
	OnDemand func(command.RegisterMemory) (Reached, error)
	// Notify is called when an event was raised on a CQ whose program may be sleeping in another process
	// (futex on the sequence word of the ring in arena at offset). It is called with the loop lock held: it
	// must not block or call into the Host. Nil for embedded clients.
	Notify func(arena uint32, offset uint64)
	// News is called when the program has events, before the loop lock is released: it takes them with
	// TakeEvents as far as that is possible without waiting; for the rest, the reader of Events is woken.
	// The same rules apply as for Notify. Nil: that reader takes them all.
	News func()
	// Account pays for what the program makes this process hold, except rings and memory that it registers,
	// for which NewArena and Reach stand; nil: nobody does.
	Account *budget.Account
	// WakeFD is a descriptor of this program alone that becomes readable when it rings a doorbell while the
	// loop sleeps; 0: none. The loop reads it empty.
	WakeFD int
	// Direct is the program's part in the direct path; nil: it does not take part.
	Direct lease.Neighbour
	// Attached marks a program in another process: every iteration of the loop checks its doorbell queue.
	Attached bool
	// NoRawPackets refuses the program raw packet queue pairs: its user may not send and see whatever he likes.
	NoRawPackets bool
	// Function is the index of a virtual function, which the program sees alone, as adapter 0; nil: it sees all that are none.
	Function *uint32
	// OfDriver marks a part of the driver, for which NoRDMA of an adapter does not hold.
	OfDriver bool
	// MemoryPath is how memory of the program is accessed; 0: mapped.
	MemoryPath command.MemoryPath
}

// complete checks an adapter's configuration and fills in the defaults.
func (c *AdapterConfig) complete() error {
	onFabric := c.Link != nil && c.Link.Capabilities().InfiniBand
	if onFabric {
		if err := c.completeIB(); err != nil {
			return err
		}
	}
	if !c.Addr.IsValid() || c.Addr.IsUnspecified() || c.Addr.IsMulticast() {
		return command.Errorf(command.Invalid, "Addr is %v, want a unicast address of this host", c.Addr)
	}
	c.Addr = c.Addr.Unmap()
	if len(c.Name) > 63 {
		return command.Errorf(command.Invalid, "Name has %d bytes, want at most 63", len(c.Name))
	}
	onFabric = onFabric || c.RoCE == InfiniBand && c.Virtual != nil && c.ShareWith != nil
	if c.RoCE == 0 {
		c.RoCE = RoCEv2
	}
	if c.RoCE > RoCEv2 && !onFabric {
		return command.Errorf(command.Invalid, "RoCE is %d, want 1 (v1), 2 (v1.25) or 3 (v2)", c.RoCE)
	}
	if c.RoCE < RoCEv2 && (c.Link == nil || !c.Link.Capabilities().Raw) {
		return command.Errorf(command.Unsupported, "RoCE is %d: v1 needs a link that carries Ethernet frames; UDP carries v2", c.RoCE)
	}
	if c.UDPPort == 0 {
		c.UDPPort = eth.PortRoCEv2
	}
	if m := c.RoceMaxFrameSize; m != 0 && (m < 256 || m > 4096 || m&(m-1) != 0) {
		return command.Errorf(command.Invalid, "RoceMaxFrameSize is %d, want 256, 512, 1024, 2048 or 4096", m)
	}
	if c.MTU != 0 && c.MTU < LeastMTU {
		return command.Errorf(command.Invalid, "MTU is %d, want at least %d", c.MTU, LeastMTU)
	}
	if c.Polling.Weight > 256 {
		return command.Errorf(command.Invalid, "Polling.Weight is %d, want at most 256", c.Polling.Weight)
	}
	if c.Ethernet != nil && (c.Link == nil && c.ShareWith == nil || c.Link != nil && c.Link.Capabilities().Stations == nil) {
		return command.Errorf(command.Unsupported, "Ethernet: an Ethernet function needs a link of whole Ethernet frames that serves stations")
	}
	if c.VLAN > 4094 {
		return command.Errorf(command.Invalid, "VLAN is %d, want 1 to 4094, or 0 for none", c.VLAN)
	}
	if c.MaxCMRetries < 0 || c.MaxCMRetries > 15 {
		return command.Errorf(command.Invalid, "MaxCMRetries is %d, want 1 to 15", c.MaxCMRetries)
	}
	if c.Path > PathDirect {
		return command.Errorf(command.Invalid, "Path is %d, want auto, wire, local or direct", c.Path)
	}
	return c.Limits.complete()
}
