package ibdiagnet

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// rates are the rates of groups, by code, in Gb/s (IBA 15.2.5.16).
var rates = map[uint8]float64{2: 2.5, 3: 10, 4: 30, 5: 5, 6: 20, 7: 40, 8: 60, 9: 80, 10: 120, 11: 14, 12: 56, 13: 112, 14: 168, 15: 25,
	16: 100, 17: 200, 18: 300}

// multicast reports the groups of IP over InfiniBand, and where their rate does not suit the ports.
func (c *check) multicast() error {
	c.title("IPoIB Subnets Check")
	warnings := 0
	lowest := 0.0
	for _, p := range c.ports(true) {
		if r := p.Info.ActiveSpeed().LaneMbps() / 1000 * float64(mad.Lanes(p.Info.LinkWidthActive)); !p.Node.IsSwitch() &&
			p.Remote != nil && (lowest == 0 || r < lowest) {
			lowest = r
		}
	}
	m := mad.NewSA(mad.MethodGetTable, mad.AttrMCMemberRecord, 0, 0)
	var a *umad.Answer
	sm, err := c.SM()
	if err == nil && !c.skip["ipoib"] && !c.skip["all"] {
		a, err = c.Port.Query(c.Context, sm.Services(), &m, c.Timing)
	}
	switch {
	case err != nil || a != nil && a.Status != mad.StatusOK:
		c.printf("-W- Subnet administration does not report the groups\n")
		warnings++
	case a != nil && a.AttrOffset > 0:
		for b := a.Records; len(b) >= int(a.AttrOffset)*8; b = b[int(a.AttrOffset)*8:] {
			warnings += c.group(b, lowest)
		}
	}
	c.stage("IPoIB Subnets Check", 0, warnings)
	return nil
}

func (c *check) group(b []byte, lowest float64) (warnings int) {
	g, err := mad.ParseMCMemberRecord(b)
	family := map[uint16]string{0x401b: "IPv4", 0x601b: "IPv6"}[uint16(g.MGID[2])<<8|uint16(g.MGID[3])]
	if err != nil || family == "" {
		return 0
	}
	c.printf("-I- Subnet: %s PKey:0x%04x QKey:0x%08x MTU:%sByte rate:%gGbps SL:0x%02x\n", family, uint16(g.PKey)&0x7fff, g.QKey,
		ibdiag.MTU(g.MTU), rates[g.Rate], g.SL)
	switch rate := rates[g.Rate]; {
	case lowest > rate:
		c.printf("-W- Suboptimal rate for group. Lowest member rate:%gGbps > group-rate:%gGbps\n", lowest, rate)
		return 1
	case lowest != 0 && lowest < rate:
		c.printf("-W- Port with a rate of %gGbps cannot join the group of %gGbps\n", lowest, rate)
		return 1
	}
	return 0
}

// topologyMatch reports the differences from the topology file.
func (c *check) topologyMatch() error {
	if c.topo == nil {
		return nil
	}
	c.title("Topology matching results")
	bad := 0
	report := func(format string, args ...any) {
		c.printf("-W- "+format+"\n", args...)
		bad++
	}
	found := map[string]*discovery.Node{}
	for _, n := range c.f.Nodes {
		found[n.Description.String()] = n
	}
	for i := range c.topo.Nodes {
		want := &c.topo.Nodes[i]
		n := found[want.Description]
		if n == nil {
			report("Missing node: %s", want.Description)
			continue
		}
		delete(found, want.Description)
		for num := 1; num < len(want.Ports); num++ {
			if got, w := linkOf(n, num), c.wanted(want, num); got != w {
				report("Port %d of %s is linked to %s, and should be to %s", num, want.Description, orNothing(got), orNothing(w))
			}
		}
	}
	for _, n := range c.f.Nodes {
		if found[n.Description.String()] == n {
			report("Extra node: %s", describe(n))
		}
	}
	if bad == 0 {
		c.printf("-I- The fabric is that of the topology file\n")
	}
	c.stage("Topology Check", 0, bad)
	return nil
}

func orNothing(link string) string {
	if link == "" {
		return "nothing"
	}
	return link
}

func linkOf(n *discovery.Node, num int) string {
	p := n.Port(uint8(num))
	if p == nil || p.Remote == nil {
		return ""
	}
	return fmt.Sprintf("%s port %d", p.Remote.Node.Description, p.Remote.Num)
}

func (c *check) wanted(n *topology.Node, num int) string {
	p := &n.Ports[num]
	if !p.Linked() {
		return ""
	}
	return fmt.Sprintf("%s port %d", c.topo.Nodes[p.Peer].Description, p.PeerPort)
}

// managers reports the subnet managers.
func (c *check) managers() error {
	var file strings.Builder
	masters := 0
	words := map[mad.SMState]string{mad.SMMaster: "master", mad.SMStandby: "standby", mad.SMDiscovering: "discovering",
		mad.SMNotActive: "not-active"}
	for _, p := range c.ports(true) {
		if p.Info.CapabilityMask&mad.CapIsSM == 0 || p.BaseLID() == 0 {
			continue
		}
		a, err := c.Get(ibdiag.LIDRoute(p.BaseLID()), mad.AttrSMInfo, 0)
		if err != nil {
			continue
		}
		i, err := mad.ParseSMInfo(a.Data[:])
		if err != nil {
			return err
		}
		if i.State == mad.SMMaster {
			masters++
		}
		fmt.Fprintf(&file, "  SM - %s\n    %s/P%d lid=0x%04x guid=0x%016x dev=%d priority:%d\n", words[i.State],
			firstWord(describe(p.Node)), p.Num, uint16(p.BaseLID()), p.GUID, p.Node.Info.DeviceID, i.Priority)
	}
	if c.routes {
		c.title("Summary Fabric SM-state-priority")
		c.printf("%s", file.String())
	}
	if masters != 1 {
		c.printf("-E- %d master subnet managers were found\n", masters)
		c.stage("Subnet Manager Check", 1, 0)
	}
	return c.write("sm", "ibdiagnet fabric SM report\n\n"+file.String())
}

// tables reads the linear forwarding tables of all switches.
func (c *check) tables() (map[*discovery.Node][]uint8, int) {
	all, unread := map[*discovery.Node][]uint8{}, 0
	for _, n := range c.f.Backwards(mad.NodeSwitch) {
		t := make([]uint8, 0, int(n.Switch.LinearFDBTop)+1)
		for block := 0; block <= int(min(n.Switch.LinearFDBTop, uint16(ib.LIDMaxUnicast)))/64; block++ {
			a, err := c.Get(ibdiag.DirectRoute(n.Path[1:]...), mad.AttrLinearForwardingTable, uint32(block))
			if err != nil {
				unread++
				break
			}
			t = append(t, a.Data[:]...)
		}
		all[n] = t
	}
	return all, unread
}

// forwarding follows the tables from every switch to every port.
func (c *check) forwarding() error {
	tables, unread := c.tables()
	var file strings.Builder
	for _, n := range c.f.Nodes {
		if !n.IsSwitch() {
			continue
		}
		fmt.Fprintf(&file, "osm_ucast_mgr_dump_ucast_routes: Switch 0x%016x\nLID    : Port : Hops : Optimal\n", n.Info.NodeGUID)
		for lid, port := range tables[n] {
			if port != mad.NoPort && lid > 0 {
				fmt.Fprintf(&file, "0x%04x : %03d  : 00   : yes\n", lid, port)
			}
		}
		file.WriteString("\n")
	}
	if err := c.write("fdbs", file.String()); err != nil {
		return err
	}
	if c.routes {
		c.title("Fabric qualities report")
	}
	lost, err := c.groups()
	if err != nil || !c.routes {
		return err
	}
	bad, paths := unread, 0
	for _, p := range c.ports(true) {
		if p.BaseLID() == 0 || !p.Node.IsSwitch() && p.Remote == nil {
			continue
		}
		for _, n := range c.f.Nodes {
			if !n.IsSwitch() {
				continue
			}
			paths++
			if why := follow(tables, n, p); why != "" {
				c.printf("-E- No route from %s to %s: %s\n", switchName(n), shown(p), why)
				bad++
			}
		}
	}
	c.printf("-I- Followed %d routes from switches to ports\n", paths)
	if bad == 0 {
		c.printf("-I- All of them end where they should\n")
	}
	c.stage("Fabric Routing Check", bad, 0)
	c.stage("Fabric Multicast Check", lost, 0)
	c.qualities(c.newRouted(tables))
	return nil
}

// switchName returns a switch as reports name it.
func switchName(n *discovery.Node) string {
	return fmt.Sprintf("lid=0x%04x guid=0x%016x dev=%d (%s)", uint16(n.LID), n.Info.NodeGUID, n.Info.DeviceID, describe(n))
}

// follow follows the tables from a switch to a port; it returns why that fails, or "".
func follow(tables map[*discovery.Node][]uint8, n *discovery.Node, to *discovery.Port) string {
	lid := int(to.BaseLID())
	for range mad.MaxHops + 1 {
		if n == to.Node {
			return ""
		}
		t, isSwitch := tables[n]
		if !isSwitch {
			return "it ends at " + describe(n)
		}
		if lid >= len(t) || t[lid] == mad.NoPort {
			return describe(n) + " has no entry"
		}
		p := n.Port(t[lid])
		if p == nil || p.Remote == nil {
			return fmt.Sprintf("port %d of %s has no link", t[lid], describe(n))
		}
		n = p.Remote.Node
	}
	return "it goes round in a circle"
}
