package ibnetdiscover

import (
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/wire/mad"
)

// compare shows the differences between the first and the second fabric.
func (n *network) compare() {
	for _, t := range []struct {
		key  string
		kind mad.NodeType
	}{{"sw", mad.NodeSwitch}, {"ca", mad.NodeCA}, {"router", mad.NodeRouter}} {
		if !n.checks[t.key] {
			continue
		}
		n.firstPrefix, n.secondPrefix = "< ", "> "
		for _, a := range n.first.Backwards(t.kind) {
			if b := n.second.NodeByGUID(a.Info.NodeGUID); b != nil {
				n.compareNodes(a, b)
			} else {
				n.alone(a, n.firstPrefix)
			}
		}
		for _, b := range n.second.Backwards(t.kind) {
			a := n.first.NodeByGUID(b.Info.NodeGUID)
			switch {
			case a == nil:
				n.alone(b, n.secondPrefix)
			case len(a.Ports) != len(b.Ports):
				n.head(b, "", "")
				n.printf("> numports = %d\n< numports = %d\n", b.Info.NumPorts, a.Info.NumPorts)
			}
		}
	}
}

// alone shows a node that exists in only one of the fabrics.
func (n *network) alone(node *discovery.Node, prefix string) {
	n.head(node, prefix, prefix)
	for _, p := range node.Ports[1:] {
		if p != nil && p.Remote != nil {
			n.link(p, prefix)
		}
	}
}

// compareNodes shows the differences at a node that exists in both fabrics.
func (n *network) compareNodes(a, b *discovery.Node) {
	headed := false
	head := func() {
		if !headed {
			n.head(a, "", "")
		}
		headed = true
	}
	if n.checks["lid"] && a.LID != b.LID || n.checks["nodedesc"] && a.Description != b.Description {
		n.head(a, "", n.firstPrefix)
		n.detail(b, n.secondPrefix)
		n.printf("\n")
		headed = true
	}
	if len(a.Ports) != len(b.Ports) {
		head()
		n.printf("%snumports = %d\n%snumports = %d\n", n.firstPrefix, a.Info.NumPorts, n.secondPrefix, b.Info.NumPorts)
		return
	}
	if !n.checks["port"] && !n.checks["lid"] {
		return
	}
	for i := 1; i < len(a.Ports); i++ {
		was, is := n.differ(a.Ports[i], b.Ports[i])
		if was || is {
			head()
		}
		if was {
			n.side(a.Ports[i], n.firstPrefix)
		}
		if is {
			n.side(b.Ports[i], n.secondPrefix)
		}
	}
}

// side shows a port of one of the fabrics, unless it has no link.
func (n *network) side(p *discovery.Port, prefix string) {
	if p.Remote != nil {
		n.link(p, prefix)
	}
}

// differ reports which of two ports to show.
func (n *network) differ(a, b *discovery.Port) (was, is bool) {
	linked := func(p *discovery.Port) bool { return p != nil && p.Remote != nil }
	if n.checks["port"] {
		switch {
		case a != nil && b == nil, linked(a) && !linked(b):
			was = true
		case a == nil && b != nil, !linked(a) && linked(b):
			is = true
		case a != nil && b != nil && (a.GUID != b.GUID || linked(a) && linked(b) && a.Remote.GUID != b.Remote.GUID):
			was, is = true, true
		}
	}
	if a == nil || b == nil {
		return was, is
	}
	both := n.checks["lid"] && a.LID != b.LID
	if n.checks["port"] && linked(a) && linked(b) {
		both = both || n.checks["nodedesc"] && a.Remote.Node.Description != b.Remote.Node.Description ||
			n.checks["lid"] && a.Remote.LID != b.Remote.LID
	}
	return was || both, is || both
}
