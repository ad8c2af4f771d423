package ethernet

import (
	"fmt"
	"strconv"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// Automatic is the value of a key that follows from something else.
const Automatic = -1

// Config is how a function works. Defaults fills it in; each field with a name of a registry key has that key's values and
// meaning.
type Config struct {
	Generation catalogue.Generation
	// MAC is the function's address (NetworkAddress, else the permanent one).
	MAC eth.MAC

	JumboPacket     int // *JumboPacket, bytes without FCS and tags
	ReceiveBuffers  int // *ReceiveBuffers, packets in each receive ring
	TransmitBuffers int // *TransmitBuffers, packets in each send ring
	MaxNumOfMCList  int

	LsoV1IPv4, LsoV2IPv4, LsoV2IPv6                                    int
	LSOSize, LSOMinSegment, LSOTcpOptions, LSOIpOptions                int
	IPChecksumIPv4, TCPUDPChecksumIPv4, TCPUDPChecksumIPv6             int // *IPChecksumOffloadIPv4...
	RscIPv4, RscIPv6                                                   int
	TunnelNVGRE, TunnelVXLAN, VxlanUDPPort                             int // *EncapsulatedPacketTaskOffload...
	HeaderDataSplit                                                    int
	PriorityVLANTag, PromiscuousVlan, VlanID, IgnoreFCS                int
	RSS, NumRSSQueues, MaxRSSProcessors                                int
	RssBaseProcNumber, RssBaseProcGroup, RssMaxProcNumber              int
	NumaNodeID, RSSProfile, UseRSSForUDP, UseRSSForRawIP               int
	DefaultRecvRingProcessor                                           int // Automatic: the first
	RxSmallPacketBypass                                                int
	RssMonitoringEnabled, RssCountersActivatedAtStartup                int
	TxHashDistribution                                                 int
	InterruptModeration, RxIntModeration                               int
	RxIntModerationProfile, TxIntModerationProfile                     int
	RxPacketCount, RxPacketTime, TxPacketCount, TxPacketTime           int // RxIntModerationPacketCount...
	PktRateLow, PktRateHigh                                            int
	RecvCompletionMethod, SendCompletionMethod                         int
	ThreadPoll, AverageFactor, AveragePollThreshold, ThisPollThreshold int
	AsyncReceiveIndicate, RfdReservationFactor                         int
	WakeOnMagicPacket, WakeOnPattern                                   int // *WakeOnMagicPacket...
	ReturnPacketThreshold                                              int // 0: two thirds of *ReceiveBuffers
	NumTcb                                                             int // for the host, which has the buffers
	CheckForHang, MaxNoProgress                                        int // SHCheckForHangTimeInSeconds, CheckForHangCQMaxNoProgress
	TxForwardingProcessor, TxInterruptProcessor                        int // for who drives the function; Automatic: any of RSS
	MaxNumRssCpus                                                      int // most receive queues, as *NumRSSQueues
	MaximumWorkingThreads                                              int // for the host: threads of receive queues at a time

	// Parameters of driverparams (WinOF 5.50, 5.5.3.9).
	MaxIndicateDPC, MaxIndicateThread     int // MaxNumberOfPacketsToIndicateDPC...: packets
	MaxCallsToNdisIndicate                int
	MaxNumTxPacketsToIndicateComplete     int
	NicMinRfd                             int // packets for which a ring keeps memory at least
	ReceivesMoveToDPC, TransmitsMoveToDPC int // UponMaxConsumedReceivesMoveToDPC...

	// Machine are the machine's processors, of which RSS takes some for its queues; none: as many as the keys ask for, on one
	// node.
	Machine []rss.Processor
	// Virtual is the receive queue of a virtual port; nil: the function is none, or has its rings as the keys say.
	Virtual *VirtualQueue
	// Host is what the host takes and gives.
	Host Abilities
}

// Abilities are what a host can do with frames beside what every host can.
type Abilities struct {
	// Large hosts take frames of joined segments and whole large sends, and hand in large sends.
	Large bool
	// Datagrams says that Large includes bursts of UDP datagrams.
	Datagrams bool
	// Tunnels says that Large includes large packets of TCP inside tunnels over UDP.
	Tunnels bool
	// Partial hosts take frames whose transport checksum is still to be made, because they never were on a wire.
	Partial bool
}

// ConfigError is an invalid value of a Config: of a field, or of the registry key of that name.
type ConfigError struct {
	Field string
	Value string
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s is %s, want %s", e.Field, e.Value, e.Want)
}

// Defaults returns the configuration of an adapter for which no key is set.
func Defaults(g catalogue.Generation) Config {
	c := Config{Generation: g, Host: Abilities{Large: true, Partial: true}}
	for i := range keys {
		*keys[i].field(&c) = keys[i].standard(g)
	}
	return c
}

// Set sets the field of a registry key. It reports whether there is one: the others are not the function's. The value is
// checked by Check.
func (c *Config) Set(name string, value int) bool {
	for i := range keys {
		if keys[i].name == name {
			*keys[i].field(c) = value
			return true
		}
	}
	return false
}

// Check checks all values. The error is a *ConfigError.
func (c *Config) Check() error {
	if c.MAC[0]&1 != 0 || c.MAC == (eth.MAC{}) {
		return &ConfigError{"MAC", c.MAC.String(), "an address of one station that is not 0"}
	}
	for i := range keys {
		if err := keys[i].check(c); err != nil {
			return err
		}
	}
	if c.Host.Large && !c.Host.Partial {
		return &ConfigError{"Host.Large", "true", "false without Host.Partial: joined segments have a checksum to be made"}
	}
	return nil
}

// changes checks that a configuration can follow c while the function works. The error is a *ConfigError.
func (c *Config) changes(to *Config) error {
	if err := to.Check(); err != nil {
		return err
	}
	if c.MAC != to.MAC {
		return &ConfigError{"MAC", to.MAC.String(), c.MAC.String() + " until the function starts again"}
	}
	if c.Generation != to.Generation {
		return &ConfigError{"Generation", strconv.Itoa(int(to.Generation)), strconv.Itoa(int(c.Generation))}
	}
	for i := range keys {
		if k := &keys[i]; fixed[k.name] && *k.field(c) != *k.field(to) {
			return &ConfigError{k.name, strconv.Itoa(*k.field(to)), strconv.Itoa(*k.field(c)) + " until the function starts again"}
		}
	}
	return nil
}

// filter returns how the function filters.
func (c *Config) filter() filter.Config {
	return filter.Config{
		MAC: c.MAC, Groups: c.MaxNumOfMCList, MaxFrame: c.JumboPacket, Tags: uint8(c.PriorityVLANTag), AnyVLAN: c.PromiscuousVlan != 0,
		VLAN: uint16(c.VlanID),
	}
}

// Bits of the checksum keys, *FlowControl and the like.
const (
	tx = 1
	rx = 2
)

// lso returns the most bytes of a large send; 0: there are none (WinOF 5.50, 4.6.4: "If LSOSize is smaller than MTU+1024, LSO
// will be disabled").
func (c *Config) lso() int {
	const least, most = 1024, 64000
	switch {
	case c.LSOSize < c.JumboPacket-eth.EthernetLen+least:
		return 0
	case c.LSOSize == most && c.Host.Tunnels && c.TunnelVXLAN != 0:
		// The host's tunnels know nothing of the limit: their packets would all be a little larger, and cut. The largest value is none.
		return offload.MaxPacket
	}
	return c.LSOSize
}
