package ibdiagnet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// ports returns the known ports of all nodes: with ends those that have a LID (of a switch port 0),
// otherwise all except ports 0.
func (c *check) ports(ends bool) (list []*discovery.Port) {
	for _, n := range c.f.Nodes {
		for i, p := range n.Ports {
			if p == nil || !p.Known || ends && n.IsSwitch() && i > 0 || !ends && i == 0 {
				continue
			}
			list = append(list, p)
		}
	}
	return list
}

// list returns the links, each once, in the format of the file .lst.
func (c *check) list() string {
	var b strings.Builder
	node := func(p *discovery.Port) string {
		n, i := p.Node, &p.Node.Info
		kind := map[mad.NodeType]string{mad.NodeCA: "CA", mad.NodeSwitch: "SW", mad.NodeRouter: "RT"}[i.NodeType]
		if kind == "CA" && p.Info.CapabilityMask&mad.CapIsSM != 0 {
			kind = "CA-SM"
		}
		return fmt.Sprintf("{ %s Ports:%02d SystemGUID:%016x NodeGUID:%016x PortGUID:%016x VenID:%08X DevID:%04X Rev:%08X {%s} LID:%04x PN:%02d }",
			kind, i.NumPorts, i.SystemImageGUID, i.NodeGUID, p.GUID, i.VendorID, i.DeviceID, i.Revision, describe(n), uint16(p.BaseLID()),
			p.Num)
	}
	for _, p := range c.ports(false) {
		r := p.Remote
		if r == nil || c.before(r, p) {
			continue
		}
		fmt.Fprintf(&b, "%s %s PHY=%dx LOG=%s SPD=%g\n", node(p), node(r), mad.Lanes(p.Info.LinkWidthActive), logical(p.Info.PortState),
			p.Info.ActiveSpeed().LaneMbps()/1000)
	}
	return b.String()
}

// before reports whether end a of a link is shown first: the one found first is.
func (c *check) before(a, b *discovery.Port) bool {
	i, j := c.place[a.Node], c.place[b.Node]
	return i < j || i == j && a.Num < b.Num
}

func logical(s mad.PortState) string {
	return map[mad.PortState]string{mad.PortDown: "DWN", mad.PortInit: "INI", mad.PortArmed: "ARM", mad.PortActive: "ACT"}[s]
}

// identities looks for missing and duplicate LIDs and GUIDs.
func (c *check) identities() error {
	c.title("Bad Guids/LIDs Info")
	bad := c.duplicates()
	guids, lids := map[uint64]*discovery.Port{}, map[ib.LID]*discovery.Port{}
	for _, p := range c.ports(true) {
		if !p.Node.IsSwitch() && p.Remote == nil && p.Num != c.f.FromPort {
			continue
		}
		if !c.skip["zero_guids"] && !c.skip["all"] && (p.GUID == 0 || p.Node.Info.NodeGUID == 0 || p.Node.Info.SystemImageGUID == 0) {
			c.printf("-E- Port with a GUID of zero: %s (%s)\n", shown(p), describe(p.Node))
			bad++
		}
		if !c.skip["dup_guids"] && !c.skip["all"] {
			if q := guids[p.GUID]; q != nil {
				c.printf("-E- Duplicate port GUID: %s and %s\n", shown(p), shown(q))
				bad++
			}
			guids[p.GUID] = p
		}
		if p.Info.LID == 0 && p.Info.PortState == mad.PortActive {
			c.printf("-E- Port with LID zero: %s (%s)\n", shown(p), describe(p.Node))
			bad++
		}
		for lid := range 1 << p.LMC {
			l := p.BaseLID() + ib.LID(lid)
			if q := lids[l]; q != nil && l != 0 {
				c.printf("-E- Duplicate LID 0x%04x: %s and %s\n", uint16(l), shown(p), shown(q))
				bad++
			}
			lids[l] = p
		}
	}
	if bad == 0 {
		c.printf("-I- No bad Guids were found\n")
	}
	c.stage("Bad GUIDs/LIDs Check", bad, 0)
	return nil
}

// duplicates looks for nodes that claim to be the same one: a port of theirs was met at the ends of two
// cables.
func (c *check) duplicates() (bad int) {
	if c.skip["dup_guids"] || c.skip["all"] {
		return 0
	}
	for _, p := range c.ports(false) {
		if len(c.met[p]) < 2 {
			continue
		}
		bad++
		c.printf("-E- Duplicate node GUID 0x%016x: its port %d is at the ends of these direct routes:\n", p.Node.Info.NodeGUID, p.Num)
		slices.SortFunc(c.met[p], slices.Compare)
		for _, path := range c.met[p] {
			c.printf("    \"%s\"\n", ibdiag.PathString(path))
		}
	}
	return bad
}

// states looks for links that no subnet manager has activated.
func (c *check) states() error {
	c.title("Links With Logical State = INIT")
	bad := 0
	for _, p := range c.ports(false) {
		if c.skip["logical_state"] || c.skip["all"] {
			break
		}
		if r := p.Remote; r != nil && p.Info.PortState == mad.PortInit && !c.before(r, p) {
			c.printf("-W- link with LOG=INI found\n-I- From: %s\n-I- To:   %s\n", shown(p), shown(r))
			bad++
		}
	}
	if bad == 0 {
		c.printf("-I- No bad Links (with logical state = INIT) were found\n")
	}
	c.stage("Link State Active Check", 0, bad)
	return nil
}

// general shows what devices report about themselves; these nodes report nothing more.
func (c *check) general() error {
	c.title("General Device Info")
	c.stage("General Devices Info Report", 0, 0)
	return nil
}

// counterNames are ibutils' names of the error counters.
var counterNames = map[string]string{
	"symbol_error_counter": "SymbolErrorCounter", "link_error_recovery_counter": "LinkErrorRecoveryCounter",
	"link_down_counter": "LinkDownedCounter",
	"port_rcv_errors":   "PortRcvErrors", "port_rcv_remote_physical_errors": "PortRcvRemotePhysicalErrors",
	"port_rcv_switch_relay_errors": "PortRcvSwitchRelayErrors",
	"port_xmit_discard":            "PortXmitDiscards", "port_xmit_constraint_errors": "PortXmitConstraintErrors",
	"port_rcv_constraint_errors":  "PortRcvConstraintErrors",
	"local_link_integrity_errors": "LocalLinkIntegrityErrors", "excesive_buffer_errors": "ExcessiveBufferOverrunErrors",
	"vl15_dropped": "VL15Dropped",
}

// readCounters returns the counters of a port; ok reports whether it answers.
func (l *local) readCounters(p *discovery.Port) (data []byte, ok bool) {
	data, err := l.Perf(ibdiag.LIDRoute(p.BaseLID()), mad.MethodGet, mad.AttrPortCounters, []byte{0, p.Num})
	return data, err == nil
}

// allCounters returns the counters of a port as lines, with the specification's names.
func allCounters(data []byte) (text string) {
	for _, f := range mad.PortCounters.Fields {
		if f.Name != "PortSelect" && !f.Mask {
			text += fmt.Sprintf("      %-32s: 0x%x\n", f.Name, f.Get(data))
		}
	}
	return text
}

// tooHigh returns the counters above their limits, as lines.
func tooHigh(data []byte, limits map[string]uint64) (text string) {
	names := make([]string, 0, len(counterNames))
	for n := range counterNames {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		f, _ := mad.PortCounters.Field(counterNames[n])
		v := f.Get(data)
		if v <= limits[n] {
			continue
		}
		overflow := ""
		if v == f.Max() {
			overflow = " (overflow)"
		}
		text += fmt.Sprintf("      %-32s: 0x%x%s\n", n, v, overflow)
	}
	return text
}

// counters looks for ports with errors.
func (c *check) counters() error {
	c.title("PM Counters Info")
	bad := 0
	silent := map[*discovery.Node]bool{} // not asked again, or a node without an agent would hold up the rest
	var file strings.Builder
	for _, p := range c.ports(false) {
		if c.skip["pm"] || c.skip["all"] || p.BaseLID() == 0 || p.Info.PortState < mad.PortArmed || c.Context.Err() != nil ||
			silent[p.Node] {
			continue
		}
		ok := !c.clear || c.ClearCounters(ibdiag.LIDRoute(p.BaseLID()), mad.PortCounters, p.Num, 0) == nil
		text := ""
		var data []byte
		if ok {
			if data, ok = c.readCounters(p); ok {
				text = tooHigh(data, c.limits)
			}
		}
		if !ok {
			silent[p.Node] = true
			c.printf("-W- %s does not report its counters\n", shown(p))
		}
		if text != "" {
			bad++
			c.printf("-W- %s\n      %-32s: Value\n%s", shown(p), "Performance Monitor counter", text)
		}
		if ok && c.all {
			text = allCounters(data)
		}
		if text != "" {
			fmt.Fprintf(&file, "%s\n%s", shown(p), text)
		}
	}
	if bad == 0 {
		c.printf("-I- No illegal PM counters values were found\n")
	}
	c.stage("Performance Counters Report", 0, bad+len(silent))
	return c.write("pm", file.String())
}

// partitions reports the members of partitions.
func (c *check) partitions() error {
	c.title("Fabric Partitions Report (see ibdiagnet.pkey for a full hosts list)")
	type group struct{ full, limited []*discovery.Port }
	groups := map[ib.PKey]*group{}
	for _, p := range c.ports(true) {
		if p.Node.IsSwitch() || p.Remote == nil || c.skip["part"] || c.skip["all"] {
			continue
		}
		for _, k := range c.pkeys(p) {
			g := groups[k&0x7fff]
			if g == nil {
				g = &group{}
				groups[k&0x7fff] = g
			}
			if k&0x8000 != 0 {
				g.full = append(g.full, p)
			} else {
				g.limited = append(g.limited, p)
			}
		}
	}
	var keys []ib.PKey
	for k := range groups {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var file strings.Builder
	for _, k := range keys {
		g := groups[k]
		hosts := len(g.full) + len(g.limited)
		c.printf("-I-    PKey:0x%04x Hosts:%d full:%d limited:%d\n", uint16(k), hosts, len(g.full), len(g.limited))
		fmt.Fprintf(&file, "GROUP PKey:0x%04x Hosts:%d\n", uint16(k), hosts)
		for i, list := range [][]*discovery.Port{g.full, g.limited} {
			for _, p := range list {
				fmt.Fprintf(&file, "   %s %s/P%d lid=0x%04x guid=0x%016x dev=%d\n", []string{"Full", "Part"}[i],
					firstWord(describe(p.Node)), p.Num, uint16(p.LID), p.GUID, p.Node.Info.DeviceID)
			}
		}
		file.WriteString(strings.Repeat("-", 80) + "\n")
	}
	c.stage("Partitions Check", 0, 0)
	return c.write("pkey", file.String())
}

// pkeys returns the valid P_Keys of an adapter's port.
func (c *check) pkeys(p *discovery.Port) (keys []ib.PKey) {
	for block := 0; block*32 < int(p.Node.Info.PartitionCap); block++ {
		a, err := c.Get(ibdiag.LIDRoute(p.BaseLID()), mad.AttrPKeyTable, uint32(block))
		if err != nil {
			return keys
		}
		t, err := mad.ParsePKeyTable(a.Data[:])
		if err != nil {
			return keys
		}
		empty := true
		for _, k := range t {
			if k&0x7fff != 0 {
				keys, empty = append(keys, k), false
			}
		}
		if empty {
			return keys // tables are filled from the beginning
		}
	}
	return keys
}

// links reports what did not answer in one of the walks.
func (c *check) links() error {
	c.printf("\n%s-I- Bad Links Info\n", rule)
	lost := map[string]int{}
	var order []string
	for _, f := range c.faults {
		path := ibdiag.PathString(f.Path)
		if lost[path] == 0 {
			order = append(order, path)
		}
		lost[path]++
	}
	warnings := 0
	for _, path := range order {
		c.printf("-W- %d packets were lost to the node at the end of the direct route %q\n", lost[path], path)
		warnings++
	}
	for _, p := range c.ports(false) {
		if r := p.Remote; r == nil || c.before(r, p) {
			continue
		}
		if c.width != "" && fmt.Sprintf("%dx", mad.Lanes(p.Info.LinkWidthActive)) != c.width {
			c.printf("-W- link with PHY=%dx, and not %s: %s to %s\n", mad.Lanes(p.Info.LinkWidthActive), c.width, shown(p), shown(p.Remote))
			warnings++
		}
		if c.speed != "" && p.Info.ActiveSpeed() != speedNames[c.speed] {
			c.printf("-W- link with SPD=%g, and not %s: %s to %s\n", p.Info.ActiveSpeed().LaneMbps()/1000, c.speed, shown(p),
				shown(p.Remote))
			warnings++
		}
	}
	if warnings == 0 {
		c.printf("-I- No bad link were found\n")
	} else {
		c.stage("Links Check", 0, warnings)
	}
	c.printf("%s", rule)
	return nil
}
