package ibroute

import (
	"bufio"
	"context"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// maxTrace is how many hops are followed before a route is considered endless.
const maxTrace = 63

// trace is a run of ibtracert.
type trace struct {
	*ibdiag.Session
	force, plain bool
	mlid         uint16
	portsFile    string
}

// Trace runs ibtracert.
func Trace(ctx context.Context, env tool.Env) int {
	t := &trace{}
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<src-addr> <dest-addr>",
		About:     "Follows the forwarding tables from one port to another.",
		Examples: []string{
			"4 16                 # from LID 4 to LID 16", "-n 4 16              # in a simple form",
			"-m 0xc000 4 16       # along a multicast tree",
		},
		Options: []ibdiag.Option{
			ibdiag.Flag(&t.force, "force", 'f', "continue if the destination does not answer"),
			ibdiag.Flag(&t.plain, "no_info", 'n', "simple form"),
			ibdiag.Number(&t.mlid, "mlid", 'm', "<mlid>", "follow the tree of a multicast LID", 0xc000, 0xfffe),
			ibdiag.WithNames,
			ibdiag.Text(&t.portsFile, "ports-file", 0, "<file>", "file with pairs of addresses"),
		},
		Without: "DK",
		Most:    2,
		Work: func(s *ibdiag.Session, args []string) error {
			t.Session = s
			if t.portsFile != "" {
				return t.pairs()
			}
			if len(args) < 2 {
				return tool.Usagef("addresses are missing; allowed: <src-addr> <dest-addr>, or --ports-file")
			}
			ok, err := t.between(args[0], args[1])
			if err == nil && !ok {
				err = ibdiag.Failf("Failed to get route information")
			}
			return err
		},
	})
}

// pairs traces between the ports on each line of the file.
func (t *trace) pairs() error {
	f, err := inputfile.Open(t.portsFile, inputfile.Text)
	if err != nil {
		return tool.Usagef("--ports-file: %v", err)
	}
	defer f.Close()
	lines, pairs := bufio.NewScanner(f), 0
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 2 {
			return tool.Usagef("--ports-file: %s, line %d: %q; allowed: two addresses", t.portsFile, n, lines.Text())
		}
		pairs++
		ok, err := t.between(words[0], words[1])
		if err == nil && !ok {
			err = ibdiag.Failf("Failed to get route information at line %d", n)
		}
		if err != nil {
			return err
		}
	}
	t.Printf("%d lid/guid pairs processed from %s\n", pairs, t.portsFile)
	return lines.Err()
}

// between traces from one port to another; false: there is no route, about which it has warned.
func (t *trace) between(from, to string) (bool, error) {
	src, err := t.Resolve(from)
	if err != nil {
		return false, err
	}
	dst, err := t.Resolve(to)
	if err != nil {
		return false, err
	}
	// The route to the source, so that the trace can continue from it by directed routes.
	start, ok := t.follow(ibdiag.DirectRoute(), src, false)
	if !ok {
		t.Warnf("get_route", "can't find a route to the src port")
		return false, t.Context.Err()
	}
	if t.mlid != 0 {
		ok = t.multicast(start, dst)
	} else if _, ok = t.follow(start, dst, true); !ok {
		t.Warnf("get_route", "can't find a route from src to dest")
	}
	return ok, t.Context.Err()
}

// hop is a port on the path, with its node.
type hop struct {
	node mad.NodeInfo
	port mad.PortInfo
	num  uint8 // of the port
	name string
	// of a switch
	sw     mad.SwitchInfo
	out    int // port towards the destination
	hasOut bool
}

func (h *hop) lastLID() int { return int(h.port.LID) + (1 << h.port.LMC) - 1 }

// inactive reports whether the port passes no packets; base port 0 of a switch always does.
func (h *hop) inactive() bool {
	return h.port.PortState != mad.PortActive && (h.node.NodeType != mad.NodeSwitch || h.sw.EnhancedPort0)
}

// at queries the node at the end of a route.
func (t *trace) at(r ibdiag.Route) (*hop, bool) {
	n, err := t.NodeInfo(r)
	if err != nil {
		return nil, false
	}
	d, err := t.NodeDescription(r)
	if err != nil {
		return nil, false
	}
	p, err := t.PortInfo(r, 0)
	if err != nil {
		return nil, false
	}
	return &hop{node: n, port: p, num: n.LocalPortNum, name: t.Node.Of(n.NodeGUID, d.String())}, true
}

// lookUp finds the port to which a switch forwards the LID.
func (t *trace) lookUp(h *hop, r ibdiag.Route, lid ib.LID) bool {
	var err error
	h.hasOut, h.out = true, -1
	if h.sw, err = t.SwitchInfo(r); err != nil {
		return false
	}
	if lid >= ib.LID(h.sw.LinearFDBCap) && lid > ib.LID(h.sw.LinearFDBTop) {
		return false
	}
	const inBlock = ib.LID(len(mad.LinearForwardingTable{}))
	a, err := t.Get(r, mad.AttrLinearForwardingTable, uint32(lid/inBlock))
	if err != nil {
		return false
	}
	h.out = int(a.Data[lid%inBlock])
	return h.out <= int(h.node.NumPorts)
}

func (t *trace) same(a, b *hop) bool {
	return a.node.PortGUID == b.node.PortGUID || t.force && a.port.LID == b.port.LID
}

// follow follows the forwarding tables from the end of one route to a destination, and returns the
// directed route there.
func (t *trace) follow(from, to ibdiag.Route, show bool) (ibdiag.Route, bool) {
	const where = "find_route"
	start, ok := t.at(from)
	var end *hop
	if ok {
		end, ok = t.at(to)
	}
	if !ok {
		t.Warnf(where, "can't reach to/from ports")
		if !t.force || start == nil {
			return from, false
		}
		t.Warnf(where, "Force: look for lid %d", to.LID)
		end = &hop{}
		end.port.LID = to.LID
	}
	t.endNode(show, "From", start)
	if start.node.NodeType == mad.NodeSwitch && !t.lookUp(start, from, to.LID) {
		return from, t.badTable(start, to.LID)
	}
	here := start
	for range maxTrace {
		if here.inactive() {
			t.Warnf(where, "Bad port state found: node \"%s\" port %d state %d", here.name, here.num, here.port.PortState)
			return from, false
		}
		if t.same(here, end) {
			t.endNode(show, "To", here)
			return from, true
		}
		next, way, out, ok := t.step(here, start, end, from)
		if !ok {
			return from, false
		}
		if next == nil { // the switch itself is the destination
			t.endNode(show, "To", here)
			return way, true
		}
		from = way
		if next.node.NodeType == mad.NodeSwitch && !t.lookUp(next, from, to.LID) {
			return from, t.badTable(next, to.LID)
		}
		if next.inactive() {
			t.Warnf(where, "Bad out port state found: node \"%s\" outport %d state %d", next.name, out, next.port.PortState)
			return from, false
		}
		here = next
		t.showHop(show, here, out)
	}
	t.Warnf(where, "no route found after %d hops", maxTrace+1)
	return from, false
}

// step advances one hop. next is nil if here, a switch, is the destination.
func (t *trace) step(here, start, end *hop, from ibdiag.Route) (next *hop, way ibdiag.Route, out int, ok bool) {
	const where = "find_route"
	fix := false
	switch {
	case here.node.NodeType == mad.NodeSwitch:
		out = here.out
	case !t.same(here, start):
		t.Warnf(where, "can't continue: reached CA or router port %x, lid %d", here.node.PortGUID, here.port.LID)
		return nil, from, 0, false
	default:
		out = int(here.num)
	}
	way = from
	if here.node.NodeType != mad.NodeSwitch && len(from.Path) > 1 {
		// An adapter does not forward packets; back to where it came from.
		way.Path, fix = from.Path[:len(from.Path)-1], true
	} else if way, ok = t.extend(from, out); !ok {
		return nil, from, 0, false
	}
	next, ok = t.at(way)
	if !ok {
		t.Warnf(where, "can't reach port at %s", way)
		return nil, way, 0, false
	}
	if here.node.NodeType == mad.NodeSwitch && out == 0 {
		if !t.same(next, end) {
			return nil, way, 0, t.badTable(here, end.port.LID)
		}
		return nil, way, 0, true
	}
	if fix {
		next.num = from.Path[len(from.Path)-1]
	}
	return next, way, out, true
}

func (t *trace) extend(from ibdiag.Route, port int) (ibdiag.Route, bool) {
	way, err := from.Extend(uint8(port), t.Port.Device().Port.LID)
	if err != nil {
		t.Warnf("find_route", "Direct path too long!")
	}
	return way, err == nil
}

func (t *trace) badTable(h *hop, lid ib.LID) bool {
	t.Warnf("find_route", "Bad forwarding table entry found at: node \"%s\" lid entry %d is %d (top %d)", h.name, lid, h.out,
		h.sw.LinearFDBTop)
	return false
}

func kind(t mad.NodeType) string {
	switch t {
	case mad.NodeCA:
		return "ca"
	case mad.NodeSwitch:
		return "switch"
	case mad.NodeRouter:
		return "router"
	}
	return "???"
}

// shownPort returns the port number of an end; for a switch that is 0.
func (h *hop) shownPort() uint8 {
	if h.node.NodeType == mad.NodeSwitch {
		return 0
	}
	return h.num
}

func (t *trace) endNode(show bool, prompt string, h *hop) {
	switch {
	case !show:
	case t.plain:
		t.Printf("%s {%s}[%d]\n", prompt, ibdiag.Hex64(h.node.NodeGUID), h.shownPort())
	default:
		t.Printf("%s %s {%s} portnum %d lid %d-%d \"%s\"\n", prompt, kind(h.node.NodeType), ibdiag.Hex64(h.node.NodeGUID), h.shownPort(),
			h.port.LID, h.lastLID(), h.name)
	}
}

func (t *trace) showHop(show bool, h *hop, out int) {
	switch {
	case !show && t.Verbose == 0:
	case show && t.plain:
		t.Printf("[%d] -> {%s}[%d]\n", out, ibdiag.Hex64(h.node.PortGUID), h.num)
	default:
		t.Printf("[%d] -> %s port {%s}[%d] lid %d-%d \"%s\"\n", out, kind(h.node.NodeType), ibdiag.Hex64(h.node.PortGUID), h.num,
			h.port.LID, h.lastLID(), h.name)
	}
}
