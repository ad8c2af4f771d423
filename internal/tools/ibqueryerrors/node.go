package ibqueryerrors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/wire/mad"
)

// node is a node whose counters are read.
type node struct {
	*query
	*discovery.Node
	name   string
	caps   mad.ClassPortInfo
	headed bool
}

// route returns the route to a port's counters: a switch has one for all.
func (n *node) route(p *discovery.Port) ibdiag.Route { return ibdiag.LIDRoute(p.BaseLID()) }

// node reports one node.
func (q *query) node(d *discovery.Node) {
	n := &node{query: q, Node: d, name: q.Node.Of(d.Info.NodeGUID, d.Description.String())}
	var ports []*discovery.Port
	for i, p := range d.Ports {
		if p != nil && (i > 0 || d.IsSwitch() && d.Switch.EnhancedPort0) {
			ports = append(ports, p)
		}
	}
	if len(ports) > 0 && ports[0].BaseLID() != 0 {
		n.report(ports)
	}
	q.nodes++
}

func (n *node) report(ports []*discovery.Port) {
	first := uint8(0)
	if !n.IsSwitch() {
		first = ports[0].Num
	}
	together := n.capabilities(n.route(ports[0]), first) && n.caps.CapabilityMask&mad.CapPMAllPortSelect != 0
	if together && !n.only && !n.errors(ports[0], mad.PMAAllPorts) {
		n.query.ports += int(n.Info.NumPorts)
	} else {
		for _, p := range ports {
			if n.only {
				n.counts(p)
			} else {
				n.errors(p, p.Num)
			}
			n.query.ports++
			if !together {
				n.clear(p, p.Num)
			}
		}
	}
	if together {
		n.clear(ports[0], mad.PMAAllPorts)
	}
}

// ask requests an attribute of a port, and warns if there is no good answer.
func (n *node) ask(r ibdiag.Route, where, what string, attribute uint16, port uint8) ([]byte, bool) {
	data, err := n.Perf(r, mad.MethodGet, attribute, []byte{0, port})
	if err != nil {
		n.Warnf(where, "%s query failed on %s, %s port %d", what, n.name, r, port)
		n.failures++
	}
	return data, err == nil
}

func (n *node) capabilities(r ibdiag.Route, port uint8) bool {
	data, ok := n.ask(r, "query_cap_mask", "classportinfo", mad.AttrClassPortInfo, port)
	if ok {
		var err error
		n.caps, err = mad.ParseClassPortInfo(data)
		ok = err == nil
	}
	return ok
}

func (n *node) has(capability uint16) bool { return n.caps.CapabilityMask&capability != 0 }

// wide reports whether the node has counters of 64 bits, wideErrors whether they include errors.
func (n *node) wide() bool { return n.has(mad.CapPMExtendedWidth | mad.CapPMExtendedWidthNoIETF) }

func (n *node) wideErrors() bool { return n.caps.CapabilityMask2&mad.Cap2PMAdditionalExtended != 0 }

// dataCounters returns the names of the data counters, in the order in which they are shown.
func (n *node) dataCounters() []string {
	names := []string{"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts"}
	if n.has(mad.CapPMExtendedWidth) {
		names = append(names, "PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts")
	}
	return names
}

// counts shows the data counters of a port.
func (n *node) counts(p *discovery.Port) {
	a, what := mad.PortCounters, "IB_GSI_PORT_COUNTERS"
	if n.wide() {
		a, what = mad.PortCountersExtended, "IB_GSI_PORT_COUNTERS_EXT"
	}
	data, ok := n.ask(n.route(p), "print_data_cnts", what, a.ID, p.Num)
	if !ok {
		return
	}
	if !n.headed {
		n.Printf("Data Counters for 0x%x \"%s\"\n", n.Info.NodeGUID, n.name)
		n.headed = true
	}
	n.Printf("   GUID 0x%x port %d:", n.Info.NodeGUID, p.Num)
	for _, name := range n.dataCounters() {
		n.Printf(" %s", shown(name, a.Get(data, name)))
	}
	n.Printf("\n")
	if n.query.report {
		n.link(p)
	}
}

// errors shows the counters of a port, or of all together, that exceed their thresholds; false: there are
// none.
func (n *node) errors(p *discovery.Port, port uint8) bool {
	const where = "print_errors"
	r := n.route(p)
	plain, ok := n.ask(r, where, "IB_GSI_PORT_COUNTERS", mad.AttrPortCounters, port)
	if !ok {
		return false
	}
	var wide []byte
	if n.wide() {
		if wide, ok = n.ask(r, where, "IB_GSI_PORT_COUNTERS_EXT", mad.AttrPortCountersExtended, port); !ok {
			return false
		}
	}
	if !n.has(mad.CapPMXmitWait) {
		mad.PortCounters.Put(plain, "PortXmitWait", 0)
	}
	text := n.above(r, port, plain, wide)
	if text == "" {
		return false
	}
	if n.data {
		text += n.dataText(plain, wide)
	}
	n.bad(p, port, text)
	return true
}

// above returns the counters that exceed their thresholds.
func (n *node) above(r ibdiag.Route, port uint8, plain, wide []byte) string {
	var b strings.Builder
	for _, name := range errorCounters {
		if slices.Contains(n.suppressed, name) {
			continue
		}
		v, text := mad.PortCounters.Get(plain, name), ""
		if n.wideErrors() {
			v = mad.PortCountersExtended.Get(wide, name)
			text = shown(name, v)
		} else {
			text = fmt.Sprintf("[%s == %d]", name, v)
		}
		if v <= n.limits.values[name] {
			continue
		}
		b.WriteString(" " + text)
		switch {
		case n.details && name == "PortXmitDiscards":
			b.WriteString(n.why(r, port, mad.PortXmitDiscardDetails))
		case n.details && name == "PortRcvErrors":
			b.WriteString(n.why(r, port, mad.PortRcvErrorDetails))
		}
	}
	return b.String()
}

// why returns the details of a counter.
func (n *node) why(r ibdiag.Route, port uint8, a *mad.PMAttribute) (text string) {
	data, ok := n.ask(r, "query_and_dump", a.Name, a.ID, port)
	if !ok {
		return ""
	}
	for _, f := range a.Fields[2:] {
		if v := f.Get(data); v != 0 {
			text += fmt.Sprintf(" [%s == %d]", f.Name, v)
		}
	}
	return text
}

// dataText returns the data counters that are not zero.
func (n *node) dataText(plain, wide []byte) (text string) {
	a, data := mad.PortCounters, plain
	if wide != nil {
		a, data = mad.PortCountersExtended, wide
	}
	for _, name := range n.dataCounters() {
		if v := a.Get(data, name); v != 0 {
			text += " " + shown(name, v)
		}
	}
	return text
}

// bad shows a port with errors. Only switches have a line for all ports together.
func (n *node) bad(p *discovery.Port, port uint8, text string) {
	if !n.headed {
		if n.IsSwitch() {
			n.Printf("Errors for 0x%x \"%s\"\n", p.GUID, n.name)
		} else {
			n.Printf("Errors for \"%s\"\n", n.name)
		}
		n.headed = true
		n.badNodes++
	}
	if port == mad.PMAAllPorts {
		if n.IsSwitch() {
			n.Printf("   GUID 0x%x port ALL:%s\n", p.GUID, text)
		}
		return
	}
	n.Printf("   GUID 0x%x port %d:%s\n", p.GUID, port, text)
	if n.query.report {
		n.link(p)
	}
	n.badPorts++
}

// link shows the link of a port.
func (n *node) link(p *discovery.Port) {
	n.Printf("       Link info: %6d%4d[  ] ==%s==>  ", p.BaseLID(), p.Num, ibdiag.LinkState(p, false))
	r := p.Remote
	if r == nil {
		n.Printf("           [  ] \"\" ( )\n")
		return
	}
	n.Printf("0x%016x %6d %4d[  ] \"%s\" (%s %s)\n", r.GUID, r.BaseLID(), r.Num,
		n.query.Node.Of(r.Node.Info.NodeGUID, r.Node.Description.String()), ibdiag.CouldBeWidth(p), ibdiag.CouldBeSpeed(p))
}

// The counters selected by the masks of a reset.
const (
	maskErrors         = 0xfff
	maskXmitWait       = 1 << 16
	maskData           = 0xf000
	maskWideData       = 0x0f
	maskWideCasts      = 0xff
	maskWideErrors     = 0xfff0000
	maskWideXmitWait   = 1 << 28
	maskDiscardDetails = 0xf
	maskErrorDetails   = 0x3f
)

// clear resets what the options request.
func (n *node) clear(p *discovery.Port, port uint8) {
	r := n.route(p)
	reset := func(a *mad.PMAttribute, mask uint64) {
		if mask != 0 && n.ClearCounters(r, a, port, mask) != nil {
			n.Warnf("clear_port", "Failed to reset %s of %s port %d", a.Name, n.name, port)
		}
	}
	var plain, wide uint64
	if n.clearErrors {
		plain |= maskErrors
		if n.has(mad.CapPMXmitWait) {
			plain |= maskXmitWait
		}
		if n.details {
			reset(mad.PortXmitDiscardDetails, maskDiscardDetails)
			reset(mad.PortRcvErrorDetails, maskErrorDetails)
		}
		if n.wideErrors() {
			wide |= maskWideErrors
			if n.has(mad.CapPMXmitWait) {
				wide |= maskWideXmitWait
			}
		}
	}
	if n.clearCounts {
		plain |= maskData
		wide |= maskWideData
		if n.has(mad.CapPMExtendedWidth) {
			wide |= maskWideCasts
		}
	}
	reset(mad.PortCounters, plain)
	if n.wide() {
		reset(mad.PortCountersExtended, wide)
	}
}

// shown returns a counter with its value also in a readable unit.
func shown(name string, v uint64) string {
	f, unit := human(v, strings.HasSuffix(name, "Data"))
	return fmt.Sprintf("[%s == %d (%5.3f%s)]", name, v, f, unit)
}

// human scales a count by powers of 1,024; data is counted in units of four bytes.
func human(v uint64, data bool) (float32, string) {
	units := []string{"", "K", "M", "G", "T", "P", "E", "Z"}
	step, div := 0, float32(1)
	for n := v / 1024; n > 0; n /= 1024 {
		step++
		div *= 1024
	}
	f := float32(v)
	if !data {
		return f / div, units[step]
	}
	f *= 4
	if f/div > 1024 {
		step++
		div *= 1024
	}
	return f / div, units[step] + "B"
}
