package ibnetdiscover

import (
	"context"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

// links is a run of iblinkinfo.
type links struct {
	*ibdiag.Session
	scan                        ibdiag.Scan
	all, down, line, additional bool
	switches, adapters          bool
	hops                        int
	guid                        uint64
	route                       string
	diff, filter                string
	checks                      map[string]bool
	was, ignored                *discovery.Fabric
}

// LinkInfo runs iblinkinfo.
func LinkInfo(ctx context.Context, env tool.Env) int {
	l := &links{checks: map[string]bool{"port": true, "state": true}}
	options := append([]ibdiag.Option{
		ibdiag.WithNames,
		ibdiag.Number(&l.guid, "switch", 'S', "<port_guid>", "show the node with this port GUID only", 1, 1<<64-1),
		ibdiag.Number(&l.guid, "port-guid", 'G', "<port_guid>", "the same", 1, 1<<64-1),
		ibdiag.Text(&l.route, "Direct", 'D', "<dr_path>", "show the node at the end of a directed route only"),
		ibdiag.Flag(&l.all, "all", 'a', "with the above: show all nodes found around it"),
		ibdiag.Number(&l.hops, "hops", 'n', "<hops>", "how far to walk from there", 1, 63),
		ibdiag.Flag(&l.down, "down", 'd', "show links that are down only"),
		ibdiag.Flag(&l.line, "line", 'l', "show all about a link on one line"),
		ibdiag.Flag(&l.additional, "additional", 'p', "show HOQ life and VL stall count, too"),
		ibdiag.Text(&l.diff, "diff", 0, "<file>", "show what differs from a cache of ibnetdiscover"),
		ibdiag.Keys(&l.checks, "diffcheck", "what --diff compares: port, state, lid, nodedesc", "port", "state", "lid", "nodedesc"),
		ibdiag.Text(&l.filter, "filterdownports", 0, "<file>", "leave out links that are down in a cache of ibnetdiscover, too"),
		ibdiag.Flag(&l.switches, "switches-only", 0, "show switches only"),
		ibdiag.Flag(&l.adapters, "cas-only", 0, "show adapters only"),
	}, l.scan.Options()...)
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		About:   "Walks the fabric and shows its links, node by node.",
		Options: options, Without: "aDdGgKLlnpRS", Offline: true,
		Work: func(s *ibdiag.Session, _ []string) error {
			l.Session = s
			return l.run()
		},
	})
}

func (l *links) run() (err error) {
	if l.route != "" && l.scan.Cache != "" {
		return tool.Usagef("--Direct and --load-cache are given; allowed: one of them")
	}
	for file, to := range map[string]**discovery.Fabric{l.diff: &l.was, l.filter: &l.ignored} {
		if file != "" {
			if *to, err = ibdiag.LoadCache(file); err != nil {
				return err
			}
		}
	}
	f, one, err := l.walk()
	if err != nil {
		return err
	}
	switch {
	case one != nil && !l.all:
		l.nodes(f, []*discovery.Node{one})
	case l.switches:
		l.nodes(f, f.Backwards(mad.NodeSwitch))
	case l.adapters:
		l.nodes(f, f.Backwards(mad.NodeCA))
	default:
		l.nodes(f, f.Backwards())
	}
	return nil
}

// walk walks the fabric, or just around the requested node, which it returns.
func (l *links) walk() (*discovery.Fabric, *discovery.Node, error) {
	if l.route != "" {
		path, err := ibdiag.ParsePath(l.route)
		if err != nil {
			return nil, nil, err
		}
		f, err := l.Fabric(l.scan, discovery.Options{From: path, MaxHops: max(l.hops, 1)})
		if err != nil {
			return nil, nil, err
		}
		return f, f.From, nil
	}
	f, err := l.Fabric(l.scan, discovery.Options{MaxHops: l.wholeHops()})
	if err != nil || l.guid == 0 {
		return f, nil, err
	}
	p := f.PortByGUID(l.guid)
	if p == nil {
		return nil, nil, ibdiag.Failf("Failed to find port: 0x%016x", l.guid)
	}
	if l.all && l.scan.Cache == "" {
		f, err = l.Fabric(l.scan, discovery.Options{From: p.Node.Path, MaxHops: max(l.hops, 1)})
	}
	return f, p.Node, err
}

// wholeHops returns how far a walk from here goes.
func (l *links) wholeHops() int {
	if l.guid != 0 {
		return 0
	}
	return l.hops
}

func (l *links) nodes(f *discovery.Fabric, list []*discovery.Node) {
	if l.was != nil {
		l.compare(f, list)
		return
	}
	for _, n := range list {
		l.node(n, "")
	}
}

// node shows the ports of a node.
func (l *links) node(n *discovery.Node, prefix string) {
	headed := false
	for _, p := range n.Ports[1:] {
		if p == nil || l.down && p.Info.PortState != mad.PortDown {
			continue
		}
		l.head(n, prefix, &headed)
		l.port(p, prefix)
	}
}

func (l *links) head(n *discovery.Node, prefix string, headed *bool) {
	if *headed || l.line {
		return
	}
	*headed = true
	name := l.Node.Of(n.Info.NodeGUID, n.Description.String())
	if !n.IsSwitch() {
		l.Printf("%s%s: %s:\n", prefix, nodeKind(n), name)
		return
	}
	guid := n.Info.PortGUID
	if zero := n.Port(0); zero != nil {
		guid = zero.GUID
	}
	l.Printf("%s%s: 0x%016x %s:\n", prefix, nodeKind(n), guid, name)
}

func nodeKind(n *discovery.Node) string {
	switch n.Info.NodeType {
	case mad.NodeCA:
		return "CA"
	case mad.NodeSwitch:
		return "Switch"
	case mad.NodeRouter:
		return "Router"
	}
	return "??"
}

// port prints the line of a port.
func (l *links) port(p *discovery.Port, prefix string) {
	down := p.Info.PortState == mad.PortDown
	if down && l.ignored != nil && l.downBefore(p) {
		return
	}
	var b strings.Builder
	if l.line {
		fmt.Fprintf(&b, "0x%016x \"%30s\" ", p.GUID, l.Node.Of(p.Node.Info.NodeGUID, p.Node.Description.String()))
	} else {
		b.WriteString("      ")
		if !p.Node.IsSwitch() {
			fmt.Fprintf(&b, "0x%016x ", p.GUID)
		}
	}
	fmt.Fprintf(&b, "%6d %4d[  ] ==%s==>  ", p.BaseLID(), p.Num, ibdiag.LinkState(p, l.additional))
	l.Printf("%s%s%s\n", prefix, b.String(), l.remote(p))
}

func (l *links) downBefore(p *discovery.Port) bool {
	n := l.ignored.NodeByGUID(p.Node.Info.NodeGUID)
	if n == nil {
		return false
	}
	was := n.Port(p.Num)
	return was != nil && was.Info.PortState == mad.PortDown
}

// remote returns the text for the other end of the link.
func (l *links) remote(p *discovery.Port) string {
	r := p.Remote
	if r == nil {
		if p.Info.PortState == mad.PortDown {
			return `           [  ] "" ( )`
		}
		return `    "Port not available"`
	}
	guid := ""
	if l.line {
		guid = fmt.Sprintf("0x%016x ", r.GUID)
	}
	lid := r.LID
	if lid == 0 {
		lid = r.Node.LID
	}
	return fmt.Sprintf("%s%6d %4d[  ] \"%s\" (%s %s)", guid, lid, r.Num, l.Node.Of(r.Node.Info.NodeGUID, r.Node.Description.String()),
		ibdiag.CouldBeWidth(p), ibdiag.CouldBeSpeed(p))
}

// compare shows the differences from the cache.
func (l *links) compare(f *discovery.Fabric, list []*discovery.Node) {
	seen := map[uint64]bool{}
	for _, n := range list {
		seen[n.Info.NodeGUID] = true
	}
	whole := len(list) == len(f.Nodes)
	for _, a := range l.was.Backwards() {
		b := f.NodeByGUID(a.Info.NodeGUID)
		switch {
		case !whole && !seen[a.Info.NodeGUID]:
		case b == nil:
			l.node(a, "< ")
		default:
			l.compareNodes(a, b)
		}
	}
	for _, b := range list {
		if l.was.NodeByGUID(b.Info.NodeGUID) == nil {
			l.node(b, "> ")
		}
	}
}

func (l *links) compareNodes(a, b *discovery.Node) {
	headed := false
	if a.IsSwitch() && l.checks["lid"] && a.LID != b.LID || l.checks["nodedesc"] && a.Description != b.Description {
		var no bool
		l.head(a, "< ", &no)
		no = false
		l.head(b, "> ", &no)
		headed = true
	}
	if len(a.Ports) != len(b.Ports) {
		l.head(a, "", &headed)
		l.Printf("< numports = %d\n> numports = %d\n", a.Info.NumPorts, b.Info.NumPorts)
		return
	}
	for i := 1; i < len(a.Ports); i++ {
		p, q := a.Ports[i], b.Ports[i]
		if !l.differ(p, q) {
			continue
		}
		l.head(a, "", &headed)
		if p != nil {
			l.port(p, "< ")
		}
		if q != nil {
			l.port(q, "> ")
		}
	}
}

// differ reports whether to show two ports.
func (l *links) differ(p, q *discovery.Port) bool {
	if p == nil || q == nil {
		return p != q && l.checks["port"]
	}
	if l.checks["state"] && p.Info.PortState != q.Info.PortState {
		return true
	}
	if !l.checks["port"] {
		return false
	}
	r, t := p.Remote, q.Remote
	if r == nil || t == nil {
		return r != t
	}
	return r.GUID != t.GUID || l.checks["lid"] && r.LID != t.LID || l.checks["nodedesc"] && r.Node.Description != t.Node.Description
}
