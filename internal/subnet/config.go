package subnet

import (
	"fmt"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/wire/ib"
)

// maxLIDs is how many unicast LIDs a subnet has: 0x0001 to 0xbfff (IBA 4.1.3).
const maxLIDs = int(ib.LIDMaxUnicast)

// DefaultPrefix is the default subnet prefix (IBA 4.1.1).
const DefaultPrefix = administration.LinkLocalPrefix

// DefaultSMKey is the default SM_Key, that of OpenSM.
const DefaultSMKey = 1

// LIDRange is the first and the last LID of a port.
type LIDRange struct{ First, Last ib.LID }

// Config configures a subnet manager. The zero value of a field selects its default.
type Config struct {
	Priority uint8  // 0 to 15; the manager with the highest priority becomes master
	SMKey    uint64 // identifies managers to each other; 0: DefaultSMKey
	SAKey    uint64 // for trusted requests to the administration; 0: SMKey
	SL       uint8  // for packets to the subnet manager, 0 to 15
	Prefix   uint64 // subnet prefix; 0: DefaultPrefix

	MKey        uint64 // management key of all ports; 0: none
	MKeyProtect uint8  // 0 to 3 (IBA 14.2.4.1)
	MKeyLease   uint16 // seconds

	LMC          uint8               // 0 to 7
	Reassign     bool                // assign all LIDs anew in the first sweep
	LIDs         map[uint64]LIDRange // by port GUID: earlier LIDs of ports
	HonorLIDs    bool                // use LIDs even when taking over from another master
	Engines      []string            // routing engines by name, in order of preference; none: min-hop
	Roots        []uint64            // node GUIDs of the switches at the top, for up/down
	ConnectRoots bool                // see Options
	MaxLanes     int                 // see Options

	Limits         *Limits           // nil: DefaultLimits
	Partitions     *partition.Config // nil: all ports are full members of the default partition
	Enforce        Enforcement       // of partitions, by switches
	AllowBothPKeys bool
	QoS            *QoS // nil: SL-to-VL and arbitration tables are left as they are, except with DFSSSP

	Policy *administration.QoSPolicy // service levels of paths; nil: 0, or those of the routes

	Window  int           // maximum of SMPs in progress; 0: DefaultWindow
	Timeout time.Duration // of a request; 0: DefaultTimeout
	Retries int           // of a request; negative: none; 0: DefaultRetries
	Sweep   time.Duration // interval between sweeps; 0: sweep only upon traps

	HeavySweeps  bool // make every sweep a thorough one
	IgnoreTraps  bool // do not sweep upon traps
	NoReregister bool // do not ask clients to reregister

	PollInterval time.Duration // interval at which a standby checks that the master is alive; 0: DefaultPoll
	PollRetries  int           // after that many missed answers in a row the master counts as dead; 0: DefaultPollRetries
	IgnoreOthers bool          // act as if there were no other subnet managers
	NoMulticast  bool

	// Recall, if not nil, is called once, when the manager becomes master for the first time, for what
	// ports had registered earlier.
	Recall func() (administration.Registrations, error)

	Virtual Virtualization // of channel adapters' ports

	AssignedGUID uint8                        // the byte after the OUI in GUIDs generated for those who ask for any; 0: none are generated
	PrefixRoutes []administration.PrefixRoute // to other subnets; the first match counts
}

// Defaults of Config, which are those of OpenSM's manual page except the window, which is 4 there. DefaultSweep is for
// whoever runs a manager: without it Config sweeps upon traps only.
const (
	DefaultWindow      = 32
	MaxWindow          = 4096
	DefaultTimeout     = 200 * time.Millisecond
	DefaultRetries     = 3
	DefaultSweep       = 10 * time.Second
	DefaultPoll        = 10 * time.Second
	DefaultPollRetries = 4
)

// ConfigError says which field of Config is wrong.
type ConfigError struct{ Field, Got, Want string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("subnet: %s is %s, want %s", e.Field, e.Got, e.Want)
}

// within checks that a number is in a range. The error is a *ConfigError.
func within(field string, v, low, high int) error {
	if v < low || v > high {
		return &ConfigError{field, fmt.Sprint(v), fmt.Sprintf("%d to %d", low, high)}
	}
	return nil
}

// check refuses wrong fields and fills in defaults.
func (c *Config) check() error {
	for _, f := range []struct {
		name    string
		v, most int
	}{
		{"priority", int(c.Priority), 15}, {"SL", int(c.SL), 15}, {"LMC", int(c.LMC), 7}, {"M_Key protect bits", int(c.MKeyProtect), 3},
		{"window", c.Window, MaxWindow}, {"lanes", c.MaxLanes, 15}, {"poll retries", c.PollRetries, 1000},
		{"retries", max(0, c.Retries), 100}, {"virtualization", int(c.Virtual), int(VirtualEnable)},
	} {
		if err := within(f.name, f.v, 0, f.most); err != nil {
			return err
		}
	}
	if c.Limits == nil {
		l := DefaultLimits()
		c.Limits = &l
	}
	if err := c.Limits.check(); err != nil {
		return err
	}
	if c.QoS != nil {
		if err := c.QoS.check(); err != nil {
			return err
		}
	}
	for _, e := range c.Engines {
		if e != "no_fallback" && !slices.Contains(routing.EngineNames(), e) {
			return &ConfigError{"routing engine", fmt.Sprintf("%q", e), fmt.Sprintf("one of %v", routing.EngineNames())}
		}
	}
	if c.Timeout < 0 || c.Sweep < 0 || c.PollInterval < 0 {
		return &ConfigError{"time", "negative", "0 or more"}
	}
	if c.SMKey == 0 {
		c.SMKey = DefaultSMKey
	}
	if c.SAKey == 0 {
		c.SAKey = c.SMKey
	}
	if c.Prefix == 0 {
		c.Prefix = DefaultPrefix
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Retries == 0 {
		c.Retries = DefaultRetries
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPoll
	}
	if c.PollRetries == 0 {
		c.PollRetries = DefaultPollRetries
	}
	if c.Partitions == nil {
		c.Partitions = partition.Default()
	}
	return nil
}

// Enforcement says in which direction switches enforce partitions at host ports.
type Enforcement uint8

// The directions of enforcement; OpenSM's names are both, in, out and off.
const (
	EnforceBoth Enforcement = iota
	EnforceIn
	EnforceOut
	EnforceOff
)
