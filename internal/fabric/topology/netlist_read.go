package topology

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// netlistError says where a netlist cannot be read.
type netlistError struct {
	Line    int    // from 1; 0 if it is not about one line
	Field   string // such as "remote port"
	Problem string // what is wrong, and what is allowed
}

// Error implements error.
func (e *netlistError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("netlist: %s %s", e.Field, e.Problem)
	}
	return fmt.Sprintf("netlist line %d: %s %s", e.Line, e.Field, e.Problem)
}

const maxNetlistLine = 1 << 16

// ReadNetlist reads a topology in the format of ibnetdiscover, or as written by hand for ibsim
// (docs/fabric.md describes it). The error is a *netlistError, or that of r.
func ReadNetlist(r io.Reader) (*Topology, error) {
	p := netlistReader{
		topology: &Topology{}, byID: map[string]int{}, node: -1,
		next: map[mad.NodeType]uint64{mad.NodeCA: firstCAGUID, mad.NodeSwitch: firstSwitchGUID, mad.NodeRouter: firstRouterGUID},
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxNetlistLine)
	for s.Scan() {
		p.line++
		if err := p.read(s.Text()); err != nil {
			return nil, err
		}
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		p.line++
		return nil, p.fail("line", "is longer than %d bytes", maxNetlistLine)
	} else if err != nil {
		return nil, err
	}
	if err := p.join(); err != nil {
		return nil, err
	}
	if len(p.topology.Nodes) == 0 {
		return nil, &netlistError{0, "file", "has no node; want lines that begin with Switch, Ca, Hca or Rt"}
	}
	return p.topology, p.topology.uniqueGUIDs(p.lines)
}

// end is a port line: the link as seen from one of its two ends.
type end struct {
	line                 int
	node, port, peerPort int
	peer                 string
	width                mad.Width // 0: not given
	speed                mad.Speed
}

type netlistReader struct {
	topology *Topology
	lines    []int // line numbers of the nodes
	byID     map[string]int
	ends     []end
	ports    int
	line     int
	node     int // node to which port lines belong, or -1
	// What precedes a node and belongs to it, and what applies to all that follow.
	next             map[mad.NodeType]uint64
	portGUID, sysimg uint64
	vendor           uint32
	device           uint16
	width            mad.Width
	speed            mad.Speed
}

func (p *netlistReader) fail(field, problem string, args ...any) error {
	return &netlistError{p.line, field, fmt.Sprintf(problem, args...)}
}

// read reads one line.
func (p *netlistReader) read(line string) error {
	text, comment, commented := strings.Cut(line, "#")
	text = strings.TrimSpace(text)
	if text == "" {
		if !commented {
			p.node = -1
		}
		return nil
	}
	if text[0] == '[' {
		return p.port(text, comment)
	}
	if name, value, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(name, " \t\"") {
		return p.assign(name, strings.TrimSpace(value))
	}
	word, rest := text, ""
	if i := strings.IndexAny(text, " \t\"-"); i > 0 {
		word, rest = text[:i], text[i:]
	}
	switch word {
	case "Switch":
		return p.newNode(mad.NodeSwitch, rest, comment)
	case "Ca", "Hca":
		return p.newNode(mad.NodeCA, rest, comment)
	case "Rt":
		return p.newNode(mad.NodeRouter, rest, comment)
	case "Chassis", "Non", "DR": // lines that ibnetdiscover prints between nodes
		return nil
	case "include", "module", "do", "pdebug":
		return p.fail("word", "%q is of ibsim and not supported here; write one file", word)
	}
	return p.fail("word", "%q is not known; want Switch, Ca, Hca, Rt, a port as [1], or vendid=, devid=, sysimgguid=, switchguid=, caguid=, rtguid=, width=, speed=, extspeed=", text)
}

// assign reads a line such as caguid=0x2c903(2c904).
func (p *netlistReader) assign(name, value string) error {
	value, inner, _ := strings.Cut(value, "(")
	v, err := strconv.ParseUint(strings.TrimSpace(value), 0, 64)
	if err != nil {
		return p.fail(name, "is %q, want a number such as 0x2c9", value)
	}
	switch name {
	case "vendid":
		if v >= 1<<24 {
			return p.fail(name, "is %#x, want at most 24 bits", v)
		}
		p.vendor = uint32(v)
	case "devid":
		if v >= 1<<16 {
			return p.fail(name, "is %#x, want at most 16 bits", v)
		}
		p.device = uint16(v)
	case "sysimgguid":
		p.sysimg = v
	case "switchguid", "caguid", "hcaguids", "rtguid":
		if v == 0 {
			return p.fail(name, "is 0, want a GUID")
		}
		p.next[guidNames[name]] = v
		p.portGUID = 0
		if inner != "" {
			if p.portGUID, err = parseGUID(inner); err != nil {
				return p.fail(name, "has the port GUID %q, want a hexadecimal number", inner)
			}
		}
	case "width":
		if v < 1 || v > 31 {
			return p.fail(name, "is %d, want 1 to 31, the bits of LinkWidthEnabled", v)
		}
		p.width = mad.Widest(uint8(v))
	case "speed":
		if v < 1 || v > 7 {
			return p.fail(name, "is %d, want 1 to 7, the bits of LinkSpeedEnabled", v)
		}
		p.speed = (&mad.PortInfo{LinkSpeedActive: uint8(v)}).ActiveSpeed()
	case "extspeed":
		if v > 15 {
			return p.fail(name, "is %d, want 0 to 15, the bits of LinkSpeedExtEnabled", v)
		}
		if v > 0 {
			p.speed = (&mad.PortInfo{LinkSpeedExtActive: uint8(v)}).ActiveSpeed()
		}
	default:
		return p.fail("word", "%q is not known; want vendid, devid, sysimgguid, switchguid, caguid, rtguid, width, speed or extspeed before the =", name)
	}
	return nil
}

var guidNames = map[string]mad.NodeType{"switchguid": mad.NodeSwitch, "caguid": mad.NodeCA, "hcaguids": mad.NodeCA,
	"rtguid": mad.NodeRouter}

// newNode reads what follows Switch, Ca or Rt.
func (p *netlistReader) newNode(t mad.NodeType, text, comment string) error {
	count, quoted, ok := strings.Cut(text, `"`)
	id, _, closed := strings.Cut(quoted, `"`)
	if !ok || !closed || id == "" {
		return p.fail("node id", "is missing; want it in quotes, as in Switch 8 \"sw1\"")
	}
	ports, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil || ports < 1 || ports > MaxNodePorts {
		return p.fail("number of ports", "is %q, want 1 to %d", strings.TrimSpace(count), MaxNodePorts)
	}
	if _, ok := p.byID[id]; ok {
		return p.fail("node id", "%q stands twice", id)
	}
	if p.ports += ports + 1; p.ports > maxPorts || len(p.topology.Nodes) >= maxNodes {
		return p.fail("node", "is one too many; want at most %d nodes with %d ports", maxNodes, maxPorts)
	}
	description, rest := quotedComment(comment)
	if len(description) > mad.NodeDescriptionLen {
		return p.fail("node description", "has %d bytes, want at most %d", len(description), mad.NodeDescriptionLen)
	}
	if description == "" {
		description = id
	}
	n := NewNode(t, id, description, ports, p.next[t])
	p.next[t] += GUIDs(t, ports)
	n.VendorID, n.DeviceID = p.vendor, p.device
	if p.sysimg != 0 {
		n.SystemImageGUID = p.sysimg
	}
	if t == mad.NodeSwitch {
		n.EnhancedPort0 = strings.Contains(rest, "enhanced port 0")
		if p.portGUID != 0 {
			n.Ports[0].GUID = p.portGUID
		}
		if err := p.lid(&n.Ports[0], rest); err != nil {
			return err
		}
	}
	p.vendor, p.sysimg, p.portGUID = 0, 0, 0
	p.node = len(p.topology.Nodes)
	p.byID[id] = p.node
	p.topology.Nodes = append(p.topology.Nodes, n)
	p.lines = append(p.lines, p.line)
	return nil
}

// quotedComment returns the text between the first and the last quote of a comment, and the rest after it.
func quotedComment(comment string) (quoted, rest string) {
	from, to := strings.IndexByte(comment, '"'), strings.LastIndexByte(comment, '"')
	if from == to {
		return "", comment
	}
	return comment[from+1 : to], comment[to+1:]
}

// lid reads "lid 2 lmc 0" from a comment.
func (p *netlistReader) lid(port *Port, comment string) error {
	lid, err := p.number(comment, "lid", uint64(ib.LIDMaxUnicast))
	if err != nil {
		return err
	}
	lmc, err := p.number(comment, "lmc", 7)
	port.LID, port.LMC = ib.LID(lid), uint8(lmc)
	return err
}

// number returns the number after the word name, or 0 if there is none.
func (p *netlistReader) number(text, name string, most uint64) (uint64, error) {
	words := strings.Fields(text)
	for i, w := range words {
		if w != name || i+1 == len(words) {
			continue
		}
		v, err := strconv.ParseUint(words[i+1], 0, 16)
		if err != nil || v > most {
			return 0, p.fail(name, "is %q, want 0 to %d", words[i+1], most)
		}
		return v, nil
	}
	return 0, nil
}

// join creates links from the port lines. It is enough if a link is listed at one end. If it is listed at
// both they must agree, and the lesser width and speed apply.
func (p *netlistReader) join() error {
	t := p.topology
	for _, e := range p.ends {
		p.line = e.line
		peer, ok := p.byID[e.peer]
		if !ok {
			return p.fail("remote node", "%q is not in the file", e.peer)
		}
		if most := t.Nodes[peer].NumPorts(); e.peerPort > most {
			return p.fail("remote port", "is %d, want 1 to %d of %q", e.peerPort, most, e.peer)
		}
		if peer == e.node && e.peerPort == e.port {
			return p.fail("remote port", "is the port itself")
		}
		near, far := &t.Nodes[e.node].Ports[e.port], &t.Nodes[peer].Ports[e.peerPort]
		if near.Linked() != far.Linked() || near.Linked() && (int(near.Peer) != peer || int(near.PeerPort) != e.peerPort) {
			return p.fail("remote port", "%q[%d] is not joined to %q[%d] alone; want both ends of a link to agree", e.peer, e.peerPort,
				t.Nodes[e.node].ID, e.port)
		}
		if !near.Linked() {
			t.Link(e.node, e.port, peer, e.peerPort, e.width, e.speed)
			continue
		}
		if mad.Lanes(e.width) > 0 && (near.Width == 0 || mad.Lanes(e.width) < mad.Lanes(near.Width)) {
			near.Width, far.Width = e.width, e.width
		}
		if e.speed > 0 && (near.Speed == 0 || e.speed < near.Speed) {
			near.Speed, far.Speed = e.speed, e.speed
		}
	}
	for i := range t.Nodes {
		for j := range t.Nodes[i].Ports {
			t.Nodes[i].Ports[j].setDefaults()
		}
	}
	return nil
}

// uniqueGUIDs refuses GUIDs that two nodes or two ports have; lines are the nodes' line numbers.
func (t *Topology) uniqueGUIDs(lines []int) error {
	nodes, ports := make(map[uint64]int, len(t.Nodes)), make(map[uint64]int, len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if other, ok := nodes[n.GUID]; ok {
			return &netlistError{lines[i], "node GUID", fmt.Sprintf("%#x is that of %q too", n.GUID, t.Nodes[other].ID)}
		}
		nodes[n.GUID] = i
		first := 1
		if n.Type == mad.NodeSwitch {
			first = 0
		}
		for j := first; j < len(n.Ports) && (first == 1 || j == 0); j++ {
			g := n.Ports[j].GUID
			if other, ok := ports[g]; ok {
				return &netlistError{lines[i], "port GUID", fmt.Sprintf("%#x of port %d is that of a port of %q too", g, j,
					t.Nodes[other].ID)}
			}
			ports[g] = i
		}
	}
	return nil
}
