package ibnetdiscover

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/wire/mad"
)

func (n *network) printf(format string, args ...any) { fmt.Fprintf(n.w, format, args...) }

// topology prints everything as a topology file.
func (n *network) topology(f *discovery.Fabric) {
	n.printf("#\n# Topology file: generated on %s\n#\n", time.Now().Format(time.ANSIC))
	if n.hops {
		n.printf("# Reported max hops discovered: %d\n# Total MADs used: %d\n", f.MaxHops, f.Asked)
	}
	n.printf("# Initiated from node %016x port %016x\n", f.From.Info.NodeGUID, f.From.Info.PortGUID)
	if n.group {
		n.printf("\nNon-Chassis Nodes\n")
	}
	for _, t := range []mad.NodeType{mad.NodeSwitch, mad.NodeCA, mad.NodeRouter} {
		for _, node := range f.Backwards(t) {
			n.head(node, "", "")
			for _, p := range node.Ports[1:] {
				if p != nil && p.Remote != nil {
					n.link(p, "")
				}
			}
		}
	}
}

// head prints a node's lines above its ports. The first prefix is for the numbers, the second for the
// node's own line.
func (n *network) head(node *discovery.Node, idPrefix, prefix string) {
	i := &node.Info
	n.printf("\n%svendid=0x%x\n%sdevid=0x%x\n", idPrefix, i.VendorID, idPrefix, i.DeviceID)
	if i.SystemImageGUID != 0 {
		n.printf("%ssysimgguid=0x%x\n", idPrefix, i.SystemImageGUID)
	}
	if node.IsSwitch() {
		n.printf("%sswitchguid=0x%x(%x)", idPrefix, i.NodeGUID, i.PortGUID)
		if n.group {
			n.printf("\t# ")
		}
		n.printf("\n")
	} else {
		n.printf("%s%sguid=0x%x\n", idPrefix, word(i.NodeType, "ca", "", "rt"), i.NodeGUID)
	}
	n.detail(node, prefix)
	n.printf("\n")
}

func (n *network) detail(node *discovery.Node, prefix string) {
	if !node.IsSwitch() {
		n.printf("%s%s\t%d %s\t\t# \"%s\"", prefix, word(node.Info.NodeType, "Ca", "", "Rt"), node.Info.NumPorts, id(node),
			ibdiag.Printable(node.Description.String()))
		return
	}
	port0 := "base"
	if node.Switch.EnhancedPort0 {
		port0 = "enhanced"
	}
	n.printf("%sSwitch\t%d %s\t\t# \"%s\" %s port 0 lid %d lmc %d", prefix, node.Info.NumPorts, id(node), n.name(node), port0, node.LID,
		node.LMC)
}

func (n *network) name(node *discovery.Node) string {
	return n.names.Of(node.Info.NodeGUID, node.Description.String())
}

// link prints the line of a port and its peer.
func (n *network) link(p *discovery.Port, prefix string) {
	r := p.Remote
	n.printf("%s[%d]", prefix, p.Num)
	if p.Node.IsSwitch() {
		n.printf("\t%s[%d]", id(r.Node), r.Num)
		if !r.Node.IsSwitch() {
			n.printf("(%x) ", r.GUID)
		}
		n.printf("\t\t# \"%s\" lid %d %s", n.name(r.Node), r.BaseLID(), rate(p))
	} else {
		n.printf("(%x) \t%s[%d]", p.GUID, id(r.Node), r.Num)
		if !r.Node.IsSwitch() {
			n.printf(" (%x) ", r.GUID)
		}
		n.printf("\t\t# lid %d lmc %d \"%s\" lid %d %s", p.LID, p.LMC, n.name(r.Node), r.BaseLID(), rate(p))
	}
	if n.full {
		n.printf(" s=%d w=%d v=%d", p.Info.LinkSpeedActive, p.Info.LinkWidthActive, p.Info.VLCap)
	}
	n.printf("\n")
}

// id returns the name of a node in a topology file.
func id(node *discovery.Node) string {
	return fmt.Sprintf("\"%s-%016x\"", word(node.Info.NodeType, "H", "S", "R"), node.Info.NodeGUID)
}

func word(t mad.NodeType, ca, sw, router string) string {
	switch t {
	case mad.NodeCA:
		return ca
	case mad.NodeSwitch:
		return sw
	case mad.NodeRouter:
		return router
	}
	return "???"
}

// rate returns the width and speed of a link, such as 4xQDR.
func rate(p *discovery.Port) string { return width(p) + speed(p) }

func width(p *discovery.Port) string {
	if l := mad.Lanes(p.Info.LinkWidthActive); l != 0 {
		return fmt.Sprintf("%dx", l)
	}
	return "??"
}

func speed(p *discovery.Port) string {
	switch p.ExtendedSpeed() {
	case 0:
		return plainSpeed(p)
	case 1:
		return "FDR"
	case 2:
		return "EDR"
	case 4:
		return "HDR"
	case 8:
		return "NDR"
	case 32, 32 | 8:
		return "XDR"
	}
	return "???"
}

func plainSpeed(p *discovery.Port) string {
	if _, ok := p.Capabilities(); !ok {
		return "???"
	}
	switch p.Info.LinkSpeedActive {
	case 1:
		return "SDR"
	case 2:
		return "DDR"
	case 4:
		if p.Extended.LinkSpeedActive&mad.FDR10 != 0 {
			return "FDR10"
		}
		return "QDR"
	}
	return "???"
}

// portsReport prints a line for each port.
func (n *network) portsReport(f *discovery.Fabric) {
	for _, node := range f.Backwards() {
		for i := len(node.Ports) - 1; i > 0; i-- {
			p := node.Ports[i]
			if p == nil {
				continue
			}
			w := width(p)
			if _, ok := p.Capabilities(); !ok {
				w = "??"
			}
			n.printf("%s %s %s", end(p), w, speed(p))
			if r := p.Remote; r != nil {
				n.printf(" - %s ( '%s' - '%s' )\n", end(r), n.name(node), n.name(r.Node))
			} else {
				n.printf("%36s'%s'\n", "", n.name(node))
			}
		}
	}
}

// end returns a port as shown in the report of the ports.
func end(p *discovery.Port) string {
	kind := word(p.Node.Info.NodeType, "CA", "SW", "RT")
	if kind == "???" {
		kind = "??"
	}
	return fmt.Sprintf("%2s %5d %2d 0x%016x", kind, p.BaseLID(), p.Num, p.GUID)
}

func (n *network) listNodes(f *discovery.Fabric) {
	for _, t := range n.list {
		for _, node := range f.Backwards(t) {
			n.printf("%s\t : 0x%016x ports %d devid 0x%x vendid 0x%x \"%s\"\n", word(t, "Ca", "Switch", "Router"),
				node.Info.NodeGUID, node.Info.NumPorts, node.Info.DeviceID, node.Info.VendorID, n.name(node))
		}
	}
}
