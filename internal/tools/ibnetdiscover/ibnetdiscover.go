// Package ibnetdiscover holds the tools that show a whole fabric: ibnetdiscover as a topology file,
// iblinkinfo as a list of links; and ibcacheedit, which edits a cache of ibnetdiscover.
package ibnetdiscover

import (
	"bufio"
	"context"
	"io"
	"os"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

// network is a run of ibnetdiscover.
type network struct {
	scan                      ibdiag.Scan
	full, show, group         bool
	ports, hops               bool
	list                      []mad.NodeType
	cache, diff               string
	checks                    map[string]bool
	names                     ibdiag.Names
	w                         *bufio.Writer
	first, second             *discovery.Fabric // for a comparison
	firstPrefix, secondPrefix string
}

var allTypes = []mad.NodeType{mad.NodeCA, mad.NodeSwitch, mad.NodeRouter}

// Main runs ibnetdiscover.
func Main(ctx context.Context, env tool.Env) int {
	n := &network{checks: map[string]bool{"sw": true, "ca": true, "router": true, "port": true}}
	only := func(long string, letter byte, help string, types ...mad.NodeType) ibdiag.Option {
		return ibdiag.Option{Long: long, Letter: letter, Help: help, Set: func(string) error { n.list = types; return nil }}
	}
	options := append([]ibdiag.Option{
		ibdiag.Flag(&n.full, "full", 'f', "also show numbers of speed, width and lanes"),
		ibdiag.Flag(&n.show, "show", 's', "show nodes as they are found"),
		only("list", 'l', "list the nodes", allTypes...),
		ibdiag.Flag(&n.group, "grouping", 'g', "use the format for chassis, of which none are known here"),
		only("Hca_list", 'H', "list the adapters", mad.NodeCA),
		only("Switch_list", 'S', "list the switches", mad.NodeSwitch),
		only("Router_list", 'R', "list the routers", mad.NodeRouter),
		ibdiag.WithNames,
		ibdiag.Text(&n.cache, "cache", 0, "<file>", "save what was found to a file"),
		ibdiag.Text(&n.diff, "diff", 0, "<file>", "show the differences from such a file"),
		ibdiag.Keys(&n.checks, "diffcheck", "what --diff compares: sw, ca, router, port, lid, nodedesc", "sw", "ca", "router", "port",
			"lid", "nodedesc"),
		ibdiag.Flag(&n.ports, "ports", 'p', "show a line for each port"),
		ibdiag.Flag(&n.hops, "max_hops", 'm', "also show the length of the longest route"),
	}, n.scan.Options()...)
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "[topology-file]",
		About:     "Walks the fabric and shows its nodes and links, in the format that ibsim reads.",
		Options:   options, Without: "DGKLs", Most: 1, Offline: true,
		Work: func(s *ibdiag.Session, args []string) error { return n.run(s, args) },
	})
}

func (n *network) run(s *ibdiag.Session, args []string) error {
	n.names, n.w = s.Node, s.Out
	if n.diff != "" {
		var err error
		if n.first, err = ibdiag.LoadCache(n.diff); err != nil {
			return err
		}
	}
	f, err := s.Fabric(n.scan, discovery.Options{Found: n.found(s)})
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if err := n.toFile(args[0], f); err != nil {
			return err
		}
	} else {
		n.print(f)
	}
	return keep(f, n.cache)
}

// found returns a function that shows nodes as they are found.
func (n *network) found(s *ibdiag.Session) func([]uint8, *discovery.Port, bool) {
	if !n.show {
		return nil
	}
	return func(path []uint8, p *discovery.Port, isNew bool) {
		word, num := "known", p.Num
		if isNew {
			word = "new"
		}
		if p.Node.IsSwitch() {
			num = 0
		}
		s.Printf("DR path slid 0; dlid 0; %s -> %s %s {%016x} portnum %d lid %d-%d \"%s\"\n", ibdiag.PathString(path), word,
			ibdiag.NodeType(p.Node.Info.NodeType), p.Node.Info.NodeGUID, num, p.LID, int(p.LID)+(1<<p.LMC)-1,
			ibdiag.Printable(p.Node.Description.String()))
	}
}

func (n *network) toFile(name string, f *discovery.Fabric) error {
	out, err := os.Create(name)
	if err != nil {
		return ibdiag.Failf("can't open file %s for writing", name)
	}
	defer out.Close()
	n.w = bufio.NewWriter(out)
	n.print(f)
	if err := n.w.Flush(); err != nil {
		return err
	}
	return out.Close()
}

func (n *network) print(f *discovery.Fabric) {
	switch {
	case n.ports:
		n.portsReport(f)
	case n.list != nil:
		n.listNodes(f)
	case n.first != nil:
		n.second = f
		n.compare()
	default:
		n.topology(f)
	}
}

// keep writes a fabric to a cache, unless the name is empty.
func keep(f *discovery.Fabric, name string) error {
	if name == "" {
		return nil
	}
	out, err := os.Create(name)
	if err == nil {
		err = write(f, out)
	}
	if err != nil {
		return ibdiag.Failf("caching ibnetdiscover data failed: %s", err)
	}
	return nil
}

func write(f *discovery.Fabric, out io.WriteCloser) error {
	if err := f.WriteCache(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
