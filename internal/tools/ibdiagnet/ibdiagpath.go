package ibdiagnet

import (
	"context"
	"os"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// path is a run of ibdiagpath.
type path struct {
	*local
	names, lids, route string
	hops               []uint8 // of route
	f                  *discovery.Fabric
}

// Path runs ibdiagpath.
func Path(ctx context.Context, env tool.Env) int {
	p := &path{local: newLocal(os.TempDir())}
	options := append(p.options(),
		ibdiag.Text(&p.names, "name", 'n', "<[src,]dst>", "names of the ends, of the topology file, or of nodes"),
		ibdiag.Text(&p.lids, "lid", 'l', "<[src,]dst>", "LIDs of the ends"),
		ibdiag.Text(&p.route, "direct", 'd', "<p1,p2,...>", "directed route: the ports by which to leave each node"))
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		About:   "Follows one path, hop by hop, and shows the error counters on it. Without a source it begins at this node.",
		Options: options, Without: "PLGDsKCde", OneDash: true,
		Ready: p.ready,
		Work: func(s *ibdiag.Session, _ []string) error {
			p.Session = s
			return p.run()
		},
	})
}

// ready checks how the ends are addressed.
func (p *path) ready() error {
	given := 0
	for _, a := range []string{p.names, p.lids, p.route} {
		if a != "" {
			given++
		}
	}
	if given != 1 {
		return tool.Usagef("%d ways to address the ends are given; allowed: one of -n, -l and -d", given)
	}
	if p.route != "" {
		hops, err := ibdiag.ParsePath("0," + strings.TrimPrefix(p.route, "0,"))
		if err != nil {
			return err
		}
		p.hops = hops[1:]
		return p.local.ready()
	}
	text, valid := p.lids, func(text string) error { _, err := ibdiag.ParseLID(text); return err }
	if p.names != "" {
		text, valid = p.names, func(text string) error { _, _, err := cutPort(text); return err }
	}
	words := strings.Split(text, ",")
	if len(words) > 2 {
		return tool.Usagef("the ends are %q; allowed: a destination, or a source and a destination with a comma", text)
	}
	for _, word := range words {
		if err := valid(word); err != nil {
			return err
		}
	}
	return p.local.ready()
}

func (p *path) run() error {
	if err := p.begin(); err != nil {
		return err
	}
	f, faults, err := discovery.Discover(p.Context, p.Port, discovery.Options{}, discovery.Asking{Timing: p.Timing, MKey: p.MKey})
	if err != nil {
		return ibdiag.Failf("discover failed: %s", err)
	}
	for _, f := range faults {
		p.Warnf("discover", "%s", f)
	}
	p.f = f
	if p.route != "" {
		return p.direct(p.hops)
	}
	source, target, err := p.ends()
	if err != nil {
		return err
	}
	if source != nil {
		here := p.f.From.Port(p.f.FromPort)
		if err := p.leg("Traversing the path from local to source", here, source); err != nil {
			return err
		}
		return p.leg("Traversing the path from source to destination", source, target)
	}
	return p.leg("Traversing the path from local to destination", p.f.From.Port(p.f.FromPort), target)
}

// ends returns the ports that the options name; without a source it is the own port.
func (p *path) ends() (source, target *discovery.Port, err error) {
	text, find := p.lids, p.byLID
	if p.names != "" {
		text, find = p.names, p.byName
	}
	words := strings.Split(text, ",")
	if target, err = find(words[len(words)-1]); err == nil && len(words) == 2 {
		source, err = find(words[0])
	}
	return source, target, err
}

func (p *path) byLID(text string) (*discovery.Port, error) {
	lid, err := ibdiag.ParseLID(text)
	if err != nil {
		return nil, err
	}
	for _, n := range p.f.Nodes {
		for i, q := range n.Ports {
			if q != nil && q.Known && (i == 0) == n.IsSwitch() && lid >= q.BaseLID() && lid < q.BaseLID()+1<<q.LMC && q.BaseLID() != 0 {
				return q, nil
			}
		}
	}
	return nil, ibdiag.Failf("no port has LID %d", lid)
}

// byName finds a port by the name of a node, or a name and a port: host-a, host-a/P1.
func (p *path) byName(text string) (*discovery.Port, error) {
	name, num, err := cutPort(text)
	if err != nil {
		return nil, err
	}
	description := name
	if p.topo != nil {
		n := p.named(name)
		if n == nil {
			return nil, tool.Usagef("the name %q is not in the topology file; allowed: a node of it", name)
		}
		description = n.Description
	}
	for _, n := range p.f.Nodes {
		if d := n.Description.String(); d != description && firstWord(d) != description {
			continue
		}
		for i, q := range n.Ports {
			if q != nil && q.Known && (n.IsSwitch() && i == 0 || !n.IsSwitch() && (num == 0 || num == uint64(i))) {
				return q, nil
			}
		}
	}
	return nil, ibdiag.Failf("no node of the fabric is %q", text)
}

// cutPort splits host-a/P1; 0 means no port.
func cutPort(text string) (name string, port uint64, err error) {
	name, number, _ := strings.Cut(text, "/P")
	if number != "" {
		port, err = ibdiag.ParseNumber("the port", number, 1, 254)
	}
	return name, port, err
}

func (p *path) title(text string) { p.Printf("\n%s-I- %s\n%s", rule, text, rule) }

// hop shows one link, and returns its far end; false: there is none.
func (p *path) hop(from *discovery.Port) (*discovery.Port, bool) {
	p.Printf("-I- From: %s\n", shown(from))
	if from.Remote == nil {
		p.Printf("-E- There is no link at this port\n")
		return nil, false
	}
	p.Printf("-I- To:   %s\n    \n", shown(from.Remote))
	return from.Remote, true
}

// direct follows a list of ports.
func (p *path) direct(hops []uint8) error {
	p.title("Traversing the path from local to destination")
	here, ports := p.f.From, []*discovery.Port{}
	for _, num := range hops {
		from := here.Port(num)
		if from == nil {
			p.Printf("-E- %s has no port %d\n", describe(here), num)
			return ibdiag.Ended(1)
		}
		to, ok := p.hop(from)
		if !ok {
			return ibdiag.Ended(1)
		}
		ports, here = append(ports, from, to), to.Node
	}
	return p.counters(ports)
}

// leg follows the forwarding tables from one port to another.
func (p *path) leg(title string, from, to *discovery.Port) error {
	p.title(title)
	ports := []*discovery.Port{}
	out := from
	if from.Node.IsSwitch() && from.Node != to.Node {
		var err error
		if out, err = p.next(from.Node, to.BaseLID()); err != nil {
			return err
		}
	}
	for range mad.MaxHops {
		if out.Node == to.Node {
			return p.counters(ports)
		}
		in, ok := p.hop(out)
		if !ok {
			return ibdiag.Ended(1)
		}
		ports = append(ports, out, in)
		if in.Node == to.Node {
			return p.counters(ports)
		}
		if !in.Node.IsSwitch() {
			p.Printf("-E- The path ends at %s\n", shown(in))
			return ibdiag.Ended(1)
		}
		var err error
		if out, err = p.next(in.Node, to.BaseLID()); err != nil {
			return err
		}
	}
	p.Printf("-E- The path goes round in a circle\n")
	return ibdiag.Ended(1)
}

// next returns the port to which a switch forwards a LID.
func (p *path) next(n *discovery.Node, lid ib.LID) (*discovery.Port, error) {
	const inBlock = ib.LID(len(mad.LinearForwardingTable{}))
	a, err := p.Get(ibdiag.DirectRoute(n.Path[1:]...), mad.AttrLinearForwardingTable, uint32(lid/inBlock))
	if err != nil {
		return nil, ibdiag.Failf("%s does not report its forwarding table", describe(n))
	}
	num := a.Data[lid%inBlock]
	q := n.Port(num)
	if q == nil || num == mad.NoPort {
		p.Printf("-E- %s forwards LID %d to port %d, which does not exist\n", switchName(n), lid, num)
		return nil, ibdiag.Ended(1)
	}
	return q, nil
}

// counters shows the errors of the ports on the path.
func (p *path) counters(ports []*discovery.Port) error {
	p.title("PM Counters Info")
	bad := 0
	for _, q := range ports {
		if q.BaseLID() == 0 {
			continue
		}
		data, ok := p.readCounters(q)
		text := ""
		if ok {
			text = tooHigh(data, nil)
		}
		switch {
		case !ok:
			p.Printf("-W- %s does not report its counters\n", shown(q))
			bad++
		case text != "":
			p.Printf("-W- %s\n      %-32s: Value\n%s", shown(q), "Performance Monitor counter", text)
			bad++
		}
	}
	if bad == 0 {
		p.Printf("-I- No illegal PM counters values were found\n")
	}
	return p.Context.Err()
}
