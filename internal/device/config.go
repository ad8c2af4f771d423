package device

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/memory"
)

// PathPolicy says which path new connections take and running ones keep.
type PathPolicy uint8

// The policies.
const (
	PathAuto   PathPolicy = iota // direct or local where both ends are on this host and nothing needs packets
	PathWire                     // packets through the link, always
	PathLocal                    // copied by the adapters; a connection that cannot be local is refused
	PathDirect                   // like PathAuto; a connection that can only go over the wire is refused
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
	RoCEDisabled uint32 = 0
	RoCEv1       uint32 = 1
	RoCEv125     uint32 = 2
	RoCEv2       uint32 = 3
	InfiniBand   uint32 = 4 // none: the port is InfiniBand's
)

// Config says how a Host runs. The zero value is ready to use.
type Config struct {
	// Seed of everything random (QP numbers, PSNs, key tags, transaction ids); 0:
	// taken from the system.
	Seed uint64
	// GIDInterval is how often the addresses of the interfaces are looked at for
	// the GID tables (UpdateGIDTimerFrequency, WinOF manual 4.6.9.3), 1 ms to
	// 10 s; 0 means the default of 3 s, negative: never.
	GIDInterval time.Duration
	// Spin is how long the background goroutine looks for work after the last work
	// before it sleeps; 0: 50 us, negative: it sleeps at once.
	Spin time.Duration
	// NoBackground leaves the loop to Poll and WaitCQ: for tests that step it.
	NoBackground bool
	// Now reads the clock; nil: the monotonic clock of the system.
	Now func() clock.Time
	// Log receives what an administrator wants to know; nil: nothing.
	Log *slog.Logger
}

// AdapterConfig describes an adapter with its one port.
type AdapterConfig struct {
	Name string     // "Ethernet 1"; empty: numbered so
	Addr netip.Addr // the port's address; needed, but for InfiniBand's, which have a GID
	// Addrs are further addresses for the GID table, taken with FollowInterface
	// from the interface that has Addr.
	Addrs           []netip.Addr
	FollowInterface bool
	UDPPort         uint16 // RoCE v2 destination port (roce_udp_dport); 0: 4791
	// RoCE is the mode, RoCEv1, RoCEv125 or RoCEv2; 0: v2. UDP links carry v2 only, those
	// of InfiniBand ports none: 0 or InfiniBand.
	RoCE uint32
	// RoceMaxFrameSize is the largest payload of a packet, 256 to 4096; 0: derived
	// from the link's MTU, as where the registry key is absent.
	RoceMaxFrameSize uint32
	// MTU is the largest IP packet in bytes where the link's is larger (*JumboPacket); 0: the link's.
	MTU        uint32
	MAC        [6]byte // the permanent one; 0: the interface's, or made from the address
	GUID       uint64  // 0: made from the MAC
	Moderation Moderation
	Polling    Polling
	Path       PathPolicy
	Disabled   bool // added disabled
	// NoFlowControl switches end-to-end credits off for new connections
	// (RoceRcE2EFlowControlEnable = 0).
	NoFlowControl bool
	// MaxCMRetries is how often a CM message is sent again, 1 to 15; 0: 15.
	MaxCMRetries int
	Limits       Limits

	// SATimeout and SARetries are those of requests to the subnet administration of an
	// InfiniBand port (SaTimeout, SaRetries); 0: 1 s and 10.
	SATimeout time.Duration
	SARetries int

	// Link is what the port is plugged into; nil: a UDP link is opened at
	// Addr:UDPPort with SourcePorts and ReceiveBuffer. The adapter closes it. A
	// link without descriptors must call Host.Wake when packets arrive.
	Link          link.Link
	SourcePorts   int // sockets to send from; 0: 16
	ReceiveBuffer int // bytes; 0: as large as the system allows
	// Frames says whether short packets go as Ethernet frames beside the UDP socket.
	Frames packet.Mode
}

// Limits bound the objects of an adapter. Zero fields mean the defaults of
// DefaultLimits; larger values than those are refused.
type Limits struct {
	QP, CQ, SRQ, MR, MW, PD, AH      uint32
	QPDepth, CQDepth, SRQDepth       uint32
	SGE, Inline                      uint32
	ReadResponder, ReadInitiator     uint32
	Message, Region                  uint64
	ClientObjects, ClientArenaMemory uint64 // of one client over all adapters
}

// Reached is how the loop reaches memory that a client registers: Bytes where
// it is mapped here, otherwise Remote.
type Reached struct {
	Bytes  []byte
	Remote memory.Accessor
	Path   uint32 // as command.Memory.Path
	// Release is called once, when the region is gone and no packet uses it any
	// more. It may be nil. It must not call into the Host.
	Release func()
}

// ClientConfig describes a program.
type ClientConfig struct {
	Name     string // of the program, for status
	PID, UID int
	// NewArena makes the memory of ring arena id, size bytes, zeroed, which the
	// program maps too; nil: private memory of this process.
	NewArena func(id uint32, size int) ([]byte, error)
	// FreeArena gives the memory of an arena back when the client is closed; nil
	// for private memory.
	FreeArena func(id uint32, mem []byte)
	// Reach finds the memory that the client registers; nil: the addresses are
	// addresses of this process, and the client keeps the memory where it is until
	// the region is destroyed.
	Reach func(command.RegisterMemory) (Reached, error)
	// Notify is told when an event was raised on a CQ whose program may sleep in
	// another process (futex on the sequence word of the ring in arena at
	// offset). It is called holding the baton: it must not block or call into the
	// Host. Nil for embedded clients.
	Notify func(arena uint32, offset uint64)
	// News is told, before the baton is given back, that the program has events: it takes
	// them with TakeEvents as far as that needs no waiting, and the reader of Events is woken for what is
	// left. It is called as Notify is. Nil: that reader takes them all.
	News func()
	// WakeFD is a descriptor that becomes readable when the program rang a
	// doorbell while the loop slept; 0: none. The loop reads it empty.
	WakeFD int
	// Direct is the program's part in the direct path; nil: it takes none.
	Direct Neighbour
	// Attached marks a program in another process: its doorbell queue is looked at
	// by every iteration of the loop.
	Attached bool
	// MemoryPath is how memory of the program is reached, for status ("mapped",
	// "process_vm", "copier"); empty: "mapped".
	MemoryPath string
}

// complete checks an adapter's configuration and puts in the defaults.
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
		c.UDPPort = defaultUDPPort
	}
	if m := c.RoceMaxFrameSize; m != 0 && (m < 256 || m > 4096 || m&(m-1) != 0) {
		return command.Errorf(command.Invalid, "RoceMaxFrameSize is %d, want 256, 512, 1024, 2048 or 4096", m)
	}
	if c.MTU != 0 && c.MTU < leastMTU {
		return command.Errorf(command.Invalid, "MTU is %d, want at least %d", c.MTU, leastMTU)
	}
	if c.Polling.Weight > 256 {
		return command.Errorf(command.Invalid, "Polling.Weight is %d, want at most 256", c.Polling.Weight)
	}
	if c.MaxCMRetries < 0 || c.MaxCMRetries > 15 {
		return command.Errorf(command.Invalid, "MaxCMRetries is %d, want 1 to 15", c.MaxCMRetries)
	}
	if c.Path > PathDirect {
		return command.Errorf(command.Invalid, "Path is %d, want auto, wire, local or direct", c.Path)
	}
	return c.Limits.complete()
}
