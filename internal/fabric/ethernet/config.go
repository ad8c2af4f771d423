package ethernet

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// Priorities is the number of priorities of a frame, and of queues of a port (IEEE 802.1Q, 8.6.6).
	Priorities = 8
	// MostPorts is the number of ports that a switch can have.
	MostPorts = bridge.MostPorts

	// Defaults of a Config.
	DefaultBuffer  = 12 << 20
	DefaultEntries = 256
	DefaultStorm   = 100 * time.Millisecond

	// Defaults of a PortConfig.
	DefaultRate   = 100e9
	DefaultMTU    = 9216
	DefaultQuanta = 0xffff

	// Defaults of a Group and a Queue.
	DefaultGroupAlpha = 1. / 8
	DefaultQueueAlpha = 1

	leastBuffer = 64 << 10
	mostBuffer  = 1 << 30
	leastShared = 32 << 10
	leastRate   = 1e6
	mostRate    = 1e12
	leastMTU    = 576
	mostDelay   = 10 * time.Second
	leastAlpha  = 1. / 128
	mostAlpha   = 64
	mostWeight  = 100
	mostMTU     = mostBytes - eth.EthernetLen - eth.VLANLen

	// onWire is what a frame takes on the wire besides its bytes: preamble, frame check sequence and the gap to the next.
	onWire = 8 + 4 + 12
	// quantumBytes is how much a link carries in a quantum, 512 bit times.
	quantumBytes = 64
	// shortest is the length of the shortest frame, without frame check sequence.
	shortest = 60
)

// DefaultMAC is that of a switch which is not configured: local, and of no station.
var DefaultMAC = eth.MAC{0x02, 0x73, 0x77, 0, 0, 1}

// Config describes a switch. The zero value is the default.
type Config struct {
	// MAC is the switch's own: frames to it are routed, and its pauses come from it; zero: DefaultMAC.
	MAC eth.MAC
	// Buffer is how many bytes of frames the ports have in common, headroom included, 64 KB to 1 GB; 0: DefaultBuffer.
	Buffer int
	// Ageing is after which time a source is forgotten, and Entries how many are known at each port: those of bridge.Config, but
	// that 0 of Entries means DefaultEntries.
	Ageing  time.Duration
	Entries int
	// Storm is how long a queue in which frames wait is paused without a break before that is reported, 1 ms or more; 0:
	// DefaultStorm.
	Storm time.Duration
	// Seed makes the choices of ECMP and bundles differ from those of other switches.
	Seed uint64
	// Random is the source of the choice which frames are marked; nil: none is unless its queue has reached Kmax.
	Random func() uint64
}

// Trust says what gives a frame its priority.
type Trust uint8

// The ways of trust. A frame without what is trusted, without a tag or an IP header, has the priority PortConfig.Default.
const (
	TrustPCP  Trust = iota // the priority of the VLAN tag
	TrustDSCP              // the DSCP of the IP header, of other frames the tag
	TrustNone              // every frame has the default
)

// FlowControl says which pauses a port sends and obeys.
type FlowControl uint8

// The ways of flow control. What a port does not obey it counts.
const (
	NoFlowControl FlowControl = iota
	GlobalPause               // of the whole link (IEEE 802.3, annex 31B): all priorities are one group, of the settings of priority 0
	PriorityPause             // of the priorities in PortConfig.Lossless (IEEE 802.1Q, clause 36)
)

// PortConfig describes a port. The zero value is the default.
type PortConfig struct {
	// Rate is in bits per second, 1 Mb/s to 1 Tb/s; 0: DefaultRate.
	Rate uint64
	// Delay is how long a bit takes to the other end, at most 10 s.
	Delay time.Duration
	// MTU is the longest IP packet in bytes, 576 to 16 KB less 18 bytes; 0: DefaultMTU.
	MTU int
	// Limit is the longest IP packet that the port takes and sends, 576 to MTU, as Port.SetMTU changes it while it runs; 0: MTU. What is
	// reckoned by the longest frame (headroom, Xon) follows MTU.
	Limit int
	// PVID is the VLAN of frames without a tag (native, access), as of bridge.PortConfig. None, and no Tagged: bridge.DefaultVLAN.
	PVID uint16
	// Routed says that the port is in no VLAN: it takes only frames to the switch's MAC, and sends only those that a route leads there.
	Routed bool
	// Peer is the MAC to which routed frames go that leave by the port and whose route names none.
	Peer eth.MAC

	// Trust says what gives a frame that arrives its priority.
	Trust Trust
	// Default is the priority of frames that PCP and DSCP give none, 0 to 7.
	Default uint8

	// FlowControl is which pauses are sent and obeyed, Lossless for which priorities: bit p for priority p.
	FlowControl FlowControl
	Lossless    uint8
	// Quanta is for how long the other end is paused at a time, in quanta of 512 bit times, and half of which later again; 0:
	// DefaultQuanta.
	Quanta uint16

	// PCP is the priority of each priority of a tag; nil: the same.
	PCP *[8]uint8
	// DSCP is the priority of each DSCP; nil: its upper three bits.
	DSCP *[64]uint8

	// Groups are the settings for what arrives at each priority, and Queues for what leaves.
	Groups [Priorities]Group
	Queues [Priorities]Queue

	// Tagged are the VLANs of frames that come and go with a tag (trunk), as of bridge.PortConfig.
	Tagged bridge.VLANs
}

// Group is how much of the buffer frames may use that came in at a port with one priority. It matters for lossless priorities.
type Group struct {
	// Xoff is how many bytes make the group pause the other end; 0: a share of the free buffer, Alpha, 1/128 to 64; 0:
	// DefaultGroupAlpha.
	Xoff  int
	Alpha float64
	// Xon is by how many bytes the group must be below Xoff for the other end to go on; 0: two of the longest frames.
	Xon int
	// Headroom is how many bytes there are for what arrives after Xoff; 0: as Headroom says, -1: none.
	Headroom int
}

// Queue is how frames of one priority leave a port.
type Queue struct {
	// Strict queues go before all that are not, and before strict ones of lower priorities.
	Strict bool
	// Weight is the share of a queue that is not strict, relative to the others that have something to send; 0 to 100, where 0
	// means 1.
	Weight uint8
	// Most is how many bytes may wait if the priority is lossy; 0: a share of the free buffer, Alpha, 1/128 to 64; 0:
	// DefaultQueueAlpha.
	Most  int
	Alpha float64
	// ECN marks packets: none while at most Kmin bytes wait, with a probability that grows to Pmax until Kmax bytes, and all
	// above. Kmax of 0: none. Packets whose ends do not take part are not marked.
	ECN ECN
}

// ECN is when packets are marked (RED, as DCQCN has it).
type ECN struct {
	Kmin, Kmax int     // bytes
	Pmax       float64 // 0 to 1
	// Leaving decides about a packet when it leaves, by what waits behind it; false: when it comes, by what waits before it. The
	// first tells its end sooner, by the time that the packet waits.
	Leaving bool
}

// FieldError says which field of a configuration is invalid, and what it may be.
type FieldError = bridge.FieldError

func bad(field string, value any, want string) error {
	return &FieldError{Field: field, Value: value, Want: want}
}

// Headroom returns how many bytes arrive at most after a port has decided to pause the other end, which obeys at once.
func Headroom(rate uint64, delay time.Duration, mtu int) int {
	return pause.Reach{Rate: rate, Delay: delay, Longest: mtu + eth.EthernetLen + eth.VLANLen}.Headroom()
}

func (c *Config) settle() error {
	if c.MAC == (eth.MAC{}) {
		c.MAC = DefaultMAC
	}
	if c.Buffer == 0 {
		c.Buffer = DefaultBuffer
	}
	if c.Entries == 0 {
		c.Entries = DefaultEntries
	}
	if c.Storm == 0 {
		c.Storm = DefaultStorm
	}
	switch {
	case c.MAC[0]&1 != 0:
		return bad("MAC", c.MAC, "the address of a station, not of a group")
	case c.Buffer < leastBuffer || c.Buffer > mostBuffer:
		return bad("Buffer", c.Buffer, fmt.Sprintf("0, or %d to %d", leastBuffer, mostBuffer))
	case c.Storm < time.Millisecond:
		return bad("Storm", c.Storm, "0 or 1 ms or more")
	}
	return nil
}

func (c *PortConfig) settle() error {
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.Limit == 0 {
		c.Limit = c.MTU
	}
	if c.Quanta == 0 {
		c.Quanta = DefaultQuanta
	}
	if c.PVID == 0 && c.Tagged == (bridge.VLANs{}) && !c.Routed {
		c.PVID = bridge.DefaultVLAN
	}
	if err := c.check(); err != nil {
		return err
	}
	for i := range Priorities {
		if err := c.Groups[i].settle(c, i); err != nil {
			return err
		}
		if err := c.Queues[i].settle(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *PortConfig) check() error {
	switch {
	case c.Rate < leastRate || c.Rate > mostRate:
		return bad("Rate", c.Rate, "0, or 1 Mb/s to 1 Tb/s")
	case c.Delay < 0 || c.Delay > mostDelay:
		return bad("Delay", c.Delay, "0 to 10 s")
	case c.MTU < leastMTU || c.MTU > mostMTU:
		return bad("MTU", c.MTU, fmt.Sprintf("0, or %d to %d", leastMTU, mostMTU))
	case c.Limit < leastMTU || c.Limit > c.MTU:
		return bad("Limit", c.Limit, fmt.Sprintf("0, or %d to %d", leastMTU, c.MTU))
	case c.PVID > bridge.LastVLAN:
		return bad("PVID", c.PVID, fmt.Sprintf("0 to %d", bridge.LastVLAN))
	case c.Routed && (c.PVID != 0 || c.Tagged != bridge.VLANs{}):
		return bad("Routed", c.Routed, "false where PVID or Tagged are given")
	case c.Trust > TrustNone:
		return bad("Trust", c.Trust, "PCP, DSCP or none")
	case c.Default >= Priorities:
		return bad("Default", c.Default, "0 to 7")
	case c.FlowControl > PriorityPause:
		return bad("FlowControl", c.FlowControl, "none, global pause or priority pause")
	case c.Lossless != 0 && c.FlowControl != PriorityPause:
		return bad("Lossless", c.Lossless, "0 without priority pause")
	case c.FlowControl != NoFlowControl && int(c.Quanta)*quantumBytes/2 < 2*(c.longest()+onWire):
		return bad("Quanta", c.Quanta, fmt.Sprintf("0, or at least %d, so that frames do not delay the next pause too long",
			4*(c.longest()+onWire)/quantumBytes+1))
	case c.Lossless == 0 && c.FlowControl == PriorityPause:
		return bad("Lossless", c.Lossless, "a priority at least")
	}
	for i, p := range deref(c.PCP) {
		if p >= Priorities {
			return bad(fmt.Sprintf("PCP[%d]", i), p, "0 to 7")
		}
	}
	for i, p := range deref(c.DSCP) {
		if p >= Priorities {
			return bad(fmt.Sprintf("DSCP[%d]", i), p, "0 to 7")
		}
	}
	return nil
}

// deref returns what p points to, or zero.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// longest is the port's longest frame, without frame check sequence.
func (c *PortConfig) longest() int { return c.MTU + eth.EthernetLen + eth.VLANLen }

// scope is which pauses the port obeys and sends.
func (c *PortConfig) scope() pause.Scope {
	switch c.FlowControl {
	case GlobalPause:
		return pause.Whole
	case PriorityPause:
		return pause.Only(c.Lossless)
	}
	return pause.Scope{}
}

// groups returns the groups that can pause the other end.
func (c *PortConfig) groups() uint8 {
	if c.FlowControl == GlobalPause {
		return 1
	}
	return c.Lossless
}

func (g *Group) settle(c *PortConfig, i int) error {
	field := func(name string) string { return fmt.Sprintf("Groups[%d].%s", i, name) }
	if g.Xoff == 0 && g.Alpha == 0 {
		g.Alpha = DefaultGroupAlpha
	}
	if g.Xon == 0 {
		g.Xon = 2 * c.longest()
	}
	switch {
	case g.Xoff < 0 || g.Xoff > mostBuffer:
		return bad(field("Xoff"), g.Xoff, fmt.Sprintf("0 to %d", mostBuffer))
	case g.Xoff > 0 && g.Alpha != 0:
		return bad(field("Alpha"), g.Alpha, "0 where Xoff is given")
	case g.Xoff == 0 && !(g.Alpha >= leastAlpha && g.Alpha <= mostAlpha):
		return bad(field("Alpha"), g.Alpha, "0, or 1/128 to 64")
	case g.Xon < 0 || g.Xon > mostBuffer:
		return bad(field("Xon"), g.Xon, fmt.Sprintf("0 to %d", mostBuffer))
	case g.Headroom < -1 || g.Headroom > mostBuffer:
		return bad(field("Headroom"), g.Headroom, fmt.Sprintf("-1 to %d", mostBuffer))
	}
	switch {
	case g.Headroom == -1:
		g.Headroom = 0
	case g.Headroom == 0:
		g.Headroom = Headroom(c.Rate, c.Delay, c.MTU)
	}
	return nil
}

func (q *Queue) settle(i int) error {
	field := func(name string) string { return fmt.Sprintf("Queues[%d].%s", i, name) }
	if q.Most == 0 && q.Alpha == 0 {
		q.Alpha = DefaultQueueAlpha
	}
	q.Weight = max(q.Weight, 1)
	switch e := q.ECN; {
	case q.Weight > mostWeight:
		return bad(field("Weight"), q.Weight, "0 to 100")
	case q.Most < 0 || q.Most > mostBuffer:
		return bad(field("Most"), q.Most, fmt.Sprintf("0 to %d", mostBuffer))
	case q.Most > 0 && q.Alpha != 0:
		return bad(field("Alpha"), q.Alpha, "0 where Most is given")
	case q.Most == 0 && !(q.Alpha >= leastAlpha && q.Alpha <= mostAlpha):
		return bad(field("Alpha"), q.Alpha, "0, or 1/128 to 64")
	case e.Kmin < 0 || e.Kmin > e.Kmax:
		return bad(field("ECN.Kmin"), e.Kmin, "0 to Kmax")
	case e.Kmax > mostBuffer:
		return bad(field("ECN.Kmax"), e.Kmax, fmt.Sprintf("0 to %d", mostBuffer))
	case !(e.Pmax >= 0 && e.Pmax <= 1):
		return bad(field("ECN.Pmax"), e.Pmax, "0 to 1")
	}
	return nil
}
