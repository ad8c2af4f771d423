package scenario

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/qos"
)

// Switch is how a switch is set: its own settings, and those of all its ports.
type Switch struct {
	Path     string // of the object that says so
	Buffer   int
	Storm    time.Duration
	Flow     ethernet.FlowControl
	Lossless uint8
	Quanta   uint16
	// MTU is the longest IP packet that a port takes and sends; 0: as long as hosts send.
	MTU int
	// Trust gives what arrives its priority, and Default what that leaves.
	Trust   ethernet.Trust
	Default uint8
	// LLDP says that a live switch tells of itself, DCBX that it offers its settings to hosts, and Applications priorities. Weighted says
	// that somebody has chosen the shares of queues.
	LLDP, DCBX, Weighted bool
	Protocol             dcb.Protocol
	Applications         []qos.Application
	// LACP is how the switch aggregates links of a host.
	LACP   LACP
	Groups [ethernet.Priorities]ethernet.Group
	Queues [ethernet.Priorities]ethernet.Queue
}

// Limits of switches, those of internal/fabric/ethernet.
const (
	leastBuffer = 64 << 10
	mostBuffer  = 1 << 30
	leastAlpha  = 1. / 128
	mostAlpha   = 64
	mostWeight  = 100
	leastMTU    = 576
	mostMTU     = ethernet.DefaultMTU
)

// switches reads the settings of all switches, and those of some that differ.
func (s *Scenario) switches(o *object) {
	n := o.r
	base := &Switch{Path: "switch", Buffer: ethernet.DefaultBuffer, Storm: ethernet.DefaultStorm, Trust: ethernet.TrustDSCP, LLDP: true}
	for i := range base.Queues {
		base.Queues[i].ECN.Leaving = true
	}
	x := o.object("switch")
	base.read(x)
	x.end()
	s.Graph.checkLACP(x, base)
	s.Switches = make([]*Switch, len(s.Graph.Nodes))
	for i := range s.Graph.Nodes {
		if !s.Graph.Nodes[i].Host {
			s.Switches[i] = base
		}
	}
	each := o.object("switches")
	if each.n == nil {
		return
	}
	for _, name := range each.n.fields.names {
		i := s.Graph.Find(name)
		x := each.object(name)
		if i < 0 || s.Graph.Nodes[i].Host {
			n.fail(each.n.fields.by[name], each.field(name), "no switch of the topology", s.Graph.names(false))
			return
		}
		own := *base
		own.Path = x.path
		own.read(x)
		x.end()
		s.Graph.checkLACPOf(x, &own, i)
		s.Switches[i] = &own
	}
}

// names lists the hosts or the switches, some of them if they are many.
func (g *Graph) names(hosts bool) (text string) {
	count := 0
	for i := range g.Nodes {
		if g.Nodes[i].Host != hosts {
			continue
		}
		if count++; count > 10 {
			return text + "..."
		}
		if text != "" {
			text += ", "
		}
		text += g.Nodes[i].Name
	}
	return text
}

// read takes over what an object says, and leaves the rest.
func (s *Switch) read(o *object) {
	s.Buffer = int(o.bytes("buffer", int64(s.Buffer), leastBuffer, mostBuffer))
	s.Storm = o.time("storm", s.Storm, time.Millisecond, longest)
	s.Quanta = uint16(o.int("quanta", int(s.Quanta), 0, 0xffff))
	s.MTU = o.int("mtu", s.MTU, leastMTU, mostMTU)
	s.flowControl(o)
	s.Trust, s.Default = o.trust(s.Trust, s.Default)
	s.lldp(o)
	s.LACP.read(o)
	for i := range s.Groups {
		readGroup(&s.Groups[i], o)
		readQueue(&s.Queues[i], o)
	}
	s.weights(o)
	s.Weighted = s.Weighted || o.has("weights") || o.has("strict")
	strict := o.priorities("strict", 0)
	each := o.object("priorities")
	for i := range s.Groups {
		if o.has("strict") {
			s.Queues[i].Strict = strict>>i&1 != 0
		}
		x := each.object(fmt.Sprint(i))
		if x.n == nil {
			continue
		}
		readGroup(&s.Groups[i], x)
		readQueue(&s.Queues[i], x)
		s.Queues[i].Weight = uint8(x.int("weight", int(s.Queues[i].Weight), 0, mostWeight))
		s.Weighted = s.Weighted || x.has("weight")
		x.end()
	}
	each.end()
}

// flowControl reads which pauses there are: pfc, of some priorities, or pause, of whole links.
func (s *Switch) flowControl(o *object) {
	pause := o.bool("pause")
	s.Lossless = o.priorities("pfc", s.Lossless)
	switch {
	case pause && o.has("pfc") && s.Lossless != 0:
		o.r.fail(o.where("pause"), o.field("pause"), "true", "false where pfc has priorities")
	case pause, s.Flow == ethernet.GlobalPause && !o.has("pause") && !o.has("pfc"):
		s.Flow, s.Lossless = ethernet.GlobalPause, 0
	case s.Lossless != 0:
		s.Flow = ethernet.PriorityPause
	default:
		s.Flow = ethernet.NoFlowControl
	}
}

// lldp reads what live switches say of themselves: lldp, dcbx, applications.
func (s *Switch) lldp(o *object) {
	if lldp := o.bool("lldp"); o.has("lldp") {
		s.LLDP = lldp
	}
	if name := o.choice("dcbx", "off", "auto", "ieee", "cee"); o.has("dcbx") {
		s.DCBX = name != "off"
		s.Protocol, _ = dcb.ParseProtocol(name)
	}
	if s.DCBX && !s.LLDP {
		o.r.fail(o.where("dcbx"), o.field("dcbx"), s.Protocol.String(), "off where lldp is false")
	}
	if text := o.text("applications", qos.None); o.has("applications") {
		var err error
		if s.Applications, err = qos.ParseApplications(text); err != nil {
			o.r.wrong(o.where("applications"), o.field("applications"), "priorities of applications, as port:4791=3,ethertype:0x8915=5")
		}
	}
}

// trust reads what gives frames their priority, and which one what that leaves.
func (o *object) trust(trust ethernet.Trust, otherwise uint8) (ethernet.Trust, uint8) {
	said := o.choice("trust", "pcp", "dscp", "none")
	if o.has("trust") {
		trust = map[string]ethernet.Trust{"pcp": ethernet.TrustPCP, "dscp": ethernet.TrustDSCP, "none": ethernet.TrustNone}[said]
	}
	return trust, uint8(o.int("priority", int(otherwise), 0, ethernet.Priorities-1))
}

// weights reads the shares of the eight priorities (ETS).
func (s *Switch) weights(o *object) {
	n := o.get("weights")
	if n == nil {
		return
	}
	if len(n.list) != ethernet.Priorities {
		o.r.wrong(n, o.field("weights"), "an array of eight weights, 0 to 100, one for each priority")
		return
	}
	for i := range n.list {
		x := &object{r: o.r, n: &node{fields: newFields()}, path: o.field("weights"), at: n}
		x.n.fields.set(fmt.Sprint(i), n.list[i])
		s.Queues[i].Weight = uint8(x.int(fmt.Sprint(i), 1, 0, mostWeight))
	}
}

// readGroup reads when the other end of a link is paused: xoff or alpha, xon, headroom.
func readGroup(g *ethernet.Group, o *object) {
	if o.has("xoff") {
		g.Alpha = 0
	} else if o.has("xoff_alpha") {
		g.Xoff = 0
	}
	g.Xoff = int(o.bytes("xoff", int64(g.Xoff), 0, mostBuffer))
	g.Alpha = o.float("xoff_alpha", g.Alpha, leastAlpha, mostAlpha)
	if g.Xoff > 0 && g.Alpha != 0 {
		o.r.wrong(o.where("xoff_alpha"), o.field("xoff_alpha"), "nothing where xoff is given")
	}
	g.Xon = int(o.bytes("xon", int64(g.Xon), 0, mostBuffer))
	if n := o.get("headroom"); n != nil {
		if n.scalar == "none" {
			g.Headroom = -1
			return
		}
		if n.scalar == "auto" {
			g.Headroom = 0
			return
		}
		if g.Headroom = int(o.bytes("headroom", 0, 0, mostBuffer)); g.Headroom == 0 {
			g.Headroom = -1
		}
	}
}

// readQueue reads how much may wait and what is marked: alpha or most, kmin, kmax, pmax, mark.
func readQueue(q *ethernet.Queue, o *object) {
	if o.has("most") {
		q.Alpha = 0
	} else if o.has("alpha") {
		q.Most = 0
	}
	q.Most = int(o.bytes("most", int64(q.Most), 0, mostBuffer))
	q.Alpha = o.float("alpha", q.Alpha, leastAlpha, mostAlpha)
	if q.Most > 0 && q.Alpha != 0 {
		o.r.wrong(o.where("alpha"), o.field("alpha"), "nothing where most is given")
	}
	e := &q.ECN
	e.Kmin = int(o.bytes("kmin", int64(e.Kmin), 0, mostBuffer))
	e.Kmax = int(o.bytes("kmax", int64(e.Kmax), 0, mostBuffer))
	e.Pmax = o.share("pmax", e.Pmax, 0, 1)
	if e.Kmin > e.Kmax {
		o.r.fail(o.where("kmin"), o.field("kmin"), sizeText(int64(e.Kmin)), fmt.Sprintf("0 to kmax, which is %s", sizeText(int64(e.Kmax))))
	}
	if mark := o.choice("mark", "leaving", "coming"); o.has("mark") {
		e.Leaving = mark == "leaving"
	}
}
