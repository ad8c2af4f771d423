// Package ibportstate is the tool that shows the state of a port and its peer, and sets it.
package ibportstate

import (
	"context"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// placeholderLID replaces LID 0 in a Set, because nodes refuse that.
const placeholderLID ib.LID = 0x1234

// operation is an operation on a port.
type operation int

const (
	query operation = iota
	enable
	reset
	disable
	on
	off
	down
	arm
	active
)

var operations = map[string]operation{
	"query": query, "enable": enable, "reset": reset, "disable": disable, "on": on, "off": off, "down": down, "arm": arm, "active": active,
}

// value is a setting with its limits.
type value struct {
	high    uint64
	low     uint64
	also    uint64 // allowed in addition to low to high; 0: nothing
	put     func(*mad.PortInfo, uint64)
	enabled bool // of speed and width, which are set every time
}

var values = map[string]value{
	"speed":     {high: 15, enabled: true, put: func(p *mad.PortInfo, v uint64) { p.LinkSpeedEnabled = uint8(v) }},
	"espeed":    {high: 31, enabled: true, put: func(p *mad.PortInfo, v uint64) { p.LinkSpeedExtEnabled = uint8(v) }},
	"width":     {high: 31, also: 255, enabled: true, put: func(p *mad.PortInfo, v uint64) { p.LinkWidthEnabled = uint8(v) }},
	"vls":       {low: 1, high: 5, put: func(p *mad.PortInfo, v uint64) { p.OperationalVLs = uint8(v) }},
	"mtu":       {low: 1, high: 5, put: func(p *mad.PortInfo, v uint64) { p.NeighborMTU = ib.MTU(v) }},
	"lid":       {low: 1, high: 0xbfff, put: func(p *mad.PortInfo, v uint64) { p.LID = ib.LID(v) }},
	"smlid":     {low: 1, high: 0xbfff, put: func(p *mad.PortInfo, v uint64) { p.MasterSMLID = ib.LID(v) }},
	"lmc":       {high: 7, put: func(p *mad.PortInfo, v uint64) { p.LMC = uint8(v) }},
	"mkey":      {high: 1<<64 - 1, put: func(p *mad.PortInfo, v uint64) { p.MKey = v }},
	"mkeylease": {high: 0xffff, put: func(p *mad.PortInfo, v uint64) { p.MKeyLeasePeriod = uint16(v) }},
	"mkeyprot":  {high: 3, put: func(p *mad.PortInfo, v uint64) { p.MKeyProtectBits = uint8(v) }},
}

const allowed = "enable, disable, on, off, reset, speed, espeed, width, query, down, arm, active, vls, mtu, lid, smlid, lmc, mkey, mkeylease, mkeyprot"

// change is what the arguments request.
type change struct {
	op       operation
	opGiven  bool
	settings map[string]uint64
}

// changes reports whether anything is set.
func (c change) changes() bool { return c.op != query || len(c.settings) > 0 }

// state is a run of ibportstate.
type state struct {
	*ibdiag.Session
	to   ibdiag.Route
	port uint8
}

// Main runs ibportstate.
func Main(ctx context.Context, env tool.Env) int {
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<dest dr_path|lid|guid> <portnum> [<op> ...]\n\nOperations: " + allowed,
		About: "Shows the state of a port, and of a switch's port its peer's, with a warning where both could be faster; or sets it.\n" +
			"The speed FDR10 (fdr10) is not supported.",
		Examples: []string{"-D 0 1               # query by a directed route", "3 1 reset", "3 1 speed 1", "3 1 width 1",
			"-D 0 1 lid 0x1234 arm"},
		Least: 2, Most: -1,
		Work: func(s *ibdiag.Session, args []string) error {
			port, err := ibdiag.ParseNumber("the port", args[1], 0, 254)
			if err != nil {
				return err
			}
			c, err := parse(args[2:])
			if err != nil {
				return err
			}
			r := &state{Session: s, port: uint8(port)}
			if r.to, err = s.Resolve(args[0]); err != nil {
				return err
			}
			return r.run(c)
		},
	})
}

// parse reads operations and settings.
func parse(args []string) (change, error) {
	c := change{settings: map[string]uint64{}}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if op, ok := operations[word]; ok {
			if c.opGiven {
				return c, tool.Usagef("%s is a second operation; allowed: one of query, enable, disable, on, off, reset, down, arm, active",
					word)
			}
			c.op, c.opGiven = op, true
			continue
		}
		v, ok := values[word]
		if !ok {
			return c, tool.Usagef("invalid operation: %s; allowed: %s", word, allowed)
		}
		if len(args) == 0 {
			return c, tool.Usagef("%s requires an additional parameter; allowed: a number from %d to %d", word, v.low, v.high)
		}
		n, err := ibdiag.ParseNumber(word, args[0], v.low, max(v.high, v.also))
		if err != nil {
			return c, err
		}
		if n > v.high && n != v.also {
			return c, tool.Usagef("%s is %d; allowed: %d to %d, or %d", word, n, v.low, v.high, v.also)
		}
		c.settings[word], args = n, args[1:]
	}
	return c, nil
}

func (s *state) run(c change) error {
	n, err := s.node(s.to)
	if err != nil {
		return err
	}
	isSwitch := n.NodeType == mad.NodeSwitch
	for name := range c.settings {
		if strings.HasPrefix(name, "mkey") && isSwitch && s.port != 0 {
			return ibdiag.Failf("Can't set M_Key fields on switch port != 0")
		}
	}
	kind := "CA/RT"
	if isSwitch {
		kind = "Switch"
	}
	if c.changes() {
		kind = "Initial " + kind
	}
	s.Printf("%s PortInfo:\n", kind)
	p, extended, err := s.show(s.to, s.port, isSwitch)
	switch {
	case err != nil:
		return err
	case c.changes():
		return s.set(c, &p, extended, isSwitch)
	case isSwitch && s.port != 0 && p.PortState == mad.PortActive:
		return s.peer(&p, extended)
	}
	return nil
}

func (s *state) node(r ibdiag.Route) (mad.NodeInfo, error) {
	n, err := s.NodeInfo(r)
	if err != nil && s.Context.Err() == nil {
		err = ibdiag.Failf("smp query nodeinfo failed")
	}
	return n, err
}

// show shows a port. extended reports whether the node supports extended speeds, which a switch reports at
// port 0.
func (s *state) show(r ibdiag.Route, port uint8, isSwitch bool) (p mad.PortInfo, extended bool, err error) {
	var zero mad.PortInfo
	if isSwitch {
		if zero, err = s.PortInfo(r, 0); err != nil {
			return p, false, s.lost(err, "smp query port 0 portinfo failed")
		}
	}
	if p, err = s.PortInfo(r, uint32(port)); err != nil {
		return p, false, s.lost(err, "smp query portinfo failed")
	}
	capabilities := p.CapabilityMask
	if isSwitch {
		capabilities = zero.CapabilityMask
	}
	extended = capabilities&mad.CapIsExtendedSpeedsSupported != 0
	s.lines(r, port, &p, extended, isSwitch)
	return p, extended, nil
}

func (s *state) lost(err error, text string) error {
	if s.Context.Err() != nil {
		return err
	}
	return ibdiag.Failf("%s", text)
}

func (s *state) lines(r ibdiag.Route, port uint8, p *mad.PortInfo, extended, isSwitch bool) {
	labels := []string{
		"LinkState", "PhysLinkState", "Lid", "SMLid", "LMC", "LinkWidthSupported", "LinkWidthEnabled", "LinkWidthActive",
		"LinkSpeedSupported", "LinkSpeedEnabled", "LinkSpeedActive",
	}
	if extended {
		labels = append(labels, "LinkSpeedExtSupported", "LinkSpeedExtEnabled", "LinkSpeedExtActive")
	}
	if !isSwitch || port == 0 {
		labels = append(labels, "Mkey", "MkeyLeasePeriod", "ProtectBits")
	}
	s.Printf("# Port info: %s port %d\n%s", r, port, ibdiag.Lines("", p, ibdiag.Pick(ibdiag.PortInfoFields(s.ShowKeys), labels...)))
}

// set changes the port. Fields that are not to change are set to the values that mean so (IBA 14.2.5.6).
func (s *state) set(c change, p *mad.PortInfo, extended, isSwitch bool) error {
	if c.op == on {
		if p.PortPhysicalState != mad.PhysicalDisabled {
			s.Printf("Port is already in enable state\n")
			return nil
		}
		c.op = enable
	}
	if p.LID == 0 || p.LID == ib.LIDPermissive {
		p.LID = placeholderLID
	}
	if p.MasterSMLID == 0 || p.MasterSMLID == ib.LIDPermissive {
		p.MasterSMLID = placeholderLID
	}
	p.PortState, p.PortPhysicalState = mad.PortStateNoChange, mad.PhysicalNoChange
	switch c.op {
	case enable, reset:
		p.PortPhysicalState = mad.PhysicalPolling
	case disable, off:
		s.Printf("Disable may be irreversible\n")
		p.PortPhysicalState = mad.PhysicalDisabled
	case down:
		p.PortState = mad.PortDown
	case arm:
		p.PortState = mad.PortArmed
	case active:
		p.PortState = mad.PortActive
	}
	for name, v := range values {
		if n, given := c.settings[name]; given || v.enabled {
			v.put(p, n)
		}
	}
	modifier := uint32(s.port)
	if extended {
		modifier |= 1 << 31
	}
	a, err := s.Set(s.to, mad.AttrPortInfo, modifier, p.Append(nil))
	if err != nil {
		return s.lost(err, "smp set portinfo failed")
	}
	now, err := mad.ParsePortInfo(a.Data[:])
	if err != nil {
		return err
	}
	s.Printf("\nAfter PortInfo set:\n")
	s.lines(s.to, s.port, &now, extended, isSwitch)
	return nil
}

// peer shows the port at the other end of the link, and compares the two.
func (s *state) peer(p *mad.PortInfo, extended bool) error {
	way, err := s.to.Extend(s.port, s.Port.Device().Port.LID)
	if err != nil {
		return err
	}
	n, err := s.node(way)
	if err != nil {
		return err
	}
	s.Printf("Peer PortInfo:\n")
	q, peerExtended, err := s.show(way, n.LocalPortNum, n.NodeType == mad.NodeSwitch)
	if err != nil {
		return err
	}
	s.compare(p, &q, extended && peerExtended)
	return nil
}

// rate is a width or speed that two ports may have in common.
type rate struct {
	bit  uint8
	name string
}

var (
	widths         = []rate{{8, "12x"}, {4, "8x"}, {2, "4x"}, {16, "2x"}, {1, "1x"}}
	speeds         = []rate{{4, "10.0 Gbps"}, {2, "5.0 Gbps"}, {1, "2.5 Gbps"}}
	extendedSpeeds = []rate{{8, "106.25 Gbps"}, {4, "53.125 Gbps"}, {2, "25.78125 Gbps"}, {1, "14.0625 Gbps"}}
)

// compare warns if a link is slower than both of its ports support.
func (s *state) compare(p, q *mad.PortInfo, extended bool) {
	all := func(enabled, every, supported uint8) uint8 {
		if enabled == every {
			return supported
		}
		return enabled
	}
	s.best("validate_width", "width", widths, p.LinkWidthActive,
		all(p.LinkWidthEnabled, 255, p.LinkWidthSupported)&all(q.LinkWidthEnabled, 255, q.LinkWidthSupported))
	s.best("validate_speed", "speed", speeds, p.LinkSpeedActive,
		all(p.LinkSpeedEnabled, 15, p.LinkSpeedSupported)&all(q.LinkSpeedEnabled, 15, q.LinkSpeedSupported))
	if extended {
		s.best("validate_extended_speed", "extended speed", extendedSpeeds, p.LinkSpeedExtActive,
			all(p.LinkSpeedExtEnabled, 31, p.LinkSpeedExtSupported)&all(q.LinkSpeedExtEnabled, 31, q.LinkSpeedExtSupported))
	}
}

func (s *state) best(where, what string, rates []rate, active, common uint8) {
	for _, r := range rates {
		if common&r.bit == 0 {
			continue
		}
		if active != r.bit {
			s.Warnf(where, "Peer ports operating at active %s %d rather than %d (%s)", what, active, r.bit, r.name)
		}
		return
	}
}
