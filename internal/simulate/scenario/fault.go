package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
)

// mostFaults is how many faults a scenario may have.
const mostFaults = 1024

// FaultKind is what goes wrong.
type FaultKind string

// The kinds of faults, which have the names of the commands of networks that run live.
const (
	Unlink FaultKind = "unlink" // a link carries nothing
	Loss   FaultKind = "loss"   // a link loses a share of the frames, in both directions
	Slow   FaultKind = "rate"   // a link has a lower rate
	Take   FaultKind = "take"   // a host takes what arrives so fast, or nothing
	Storm  FaultKind = "storm"  // a port pauses priorities of the other end for no reason
	PFC    FaultKind = "pfc"    // a port, or a switch, has other lossless priorities
)

// Fault is something that goes wrong at a time.
type Fault struct {
	Path string // of the object that says so
	Kind FaultKind
	// Node and Port are where; the port -1: at all ports of the switch.
	Node, Port int
	// At is when it begins, and Until when everything is as before; Never: not any more.
	At, Until clock.Time
	Share     float64 // of Loss
	Rate      uint64  // of Slow and Take, in bits per second; 0: nothing at all
	// Priorities are those of Storm and PFC.
	Priorities uint8
	// What says it in words.
	What string
}

// faults reads what goes wrong, in the order of time.
func (r *reading) faults(o *object, s *Scenario) (all []Fault) {
	list := o.objects("faults")
	if len(list) > mostFaults {
		r.fail(o.where("faults"), "faults", fmt.Sprintf("%d faults", len(list)), fmt.Sprintf("0 to %d", mostFaults))
		return nil
	}
	for _, x := range list {
		f := r.fault(x, s)
		x.end()
		if r.err != nil {
			return nil
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return int(min(max(a.At-b.At, -1), 1)) })
	return all
}

func (r *reading) fault(o *object, s *Scenario) Fault {
	kind := o.choice("kind", string(Unlink), string(Loss), string(Slow), string(Take), string(Storm), string(PFC))
	if !o.has("kind") {
		r.fail(o.at, o.field("kind"), "not there", "unlink, loss, rate, take, storm or pfc")
	}
	f := Fault{Path: o.path, Kind: FaultKind(kind), Until: clock.Never}
	f.At = clock.Time(0).Add(o.time("at", 0, 0, longest))
	if o.has("until") {
		f.Until = clock.Time(0).Add(o.time("until", 0, 0, longest))
	} else {
		o.get("until")
	}
	if f.Until <= f.At {
		r.wrong(o.where("until"), o.field("until"), "a time after at")
	}
	name := o.text("port", "")
	r.place(o, s, &f, name)
	if r.err != nil {
		return f
	}
	f.What = kind + " " + name
	switch f.Kind {
	case Loss:
		f.Share = o.share("share", 0.01, 0, 1)
		f.What += fmt.Sprintf(" %g%%", f.Share*100)
	case Slow, Take:
		r.rateOf(o, s, &f)
	case Storm, PFC:
		f.Priorities = o.priorities("priorities", 1<<DefaultPriority)
		f.What += " " + priorityText(f.Priorities)
	}
	return f
}

// place reads where a fault is.
func (r *reading) place(o *object, s *Scenario, f *Fault, name string) {
	g := s.Graph
	n := g.Find(name)
	p, ok := g.port(name)
	switch {
	case n >= 0 && g.Nodes[n].Host:
		f.Node = n
	case n >= 0 && f.Kind == PFC:
		f.Node, f.Port = n, -1
	case ok && f.Kind != Take:
		f.Node, f.Port = p.Node, p.Port
	case f.Kind == Take:
		r.wrong(o.where("port"), o.field("port"), "a host: "+g.names(true))
	case f.Kind == PFC:
		r.wrong(o.where("port"), o.field("port"), "a host, a switch, or a port of one, such as leaf0[1]")
	default:
		r.wrong(o.where("port"), o.field("port"), "a host, or a port of a switch, such as leaf0[1]")
	}
	if f.Kind != PFC || r.err != nil {
		return
	}
	if host := g.Nodes[f.Node].Host; host && s.NICs[f.Node].Pause || !host && s.Switches[f.Node].pauses() {
		r.fail(o.where("kind"), o.field("kind"), `"pfc" where whole links are paused`, "pfc where pause is false")
	}
}

// pauses reports whether whole links are paused.
func (s *Switch) pauses() bool { return s.Flow != 0 && s.Lossless == 0 }

// rateOf reads the rate of a link or receiver.
func (r *reading) rateOf(o *object, s *Scenario, f *Fault) {
	link := &s.Graph.Links[s.Graph.Nodes[f.Node].Links[f.Port]]
	if n := o.get("rate"); f.Kind == Take && n != nil && n.scalar == "none" {
		f.What += " none"
		return
	}
	if f.Rate = o.rate("rate", link.Rate); f.Rate > link.Rate || !o.has("rate") {
		more := ""
		if f.Kind == Take {
			more = `, or "none"`
		}
		r.wrong(o.where("rate"), o.field("rate"), fmt.Sprintf("1 Mb/s to the link's %g Gb/s%s", float64(link.Rate)/1e9, more))
	}
	f.What += fmt.Sprintf(" %gGb/s", float64(f.Rate)/1e9)
}

// priorityText lists priorities as a scenario does.
func priorityText(set uint8) string {
	var all []string
	for i := range 8 {
		if set>>i&1 != 0 {
			all = append(all, fmt.Sprint(i))
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// learning refuses what networks are not that learn, and VLANs where nothing is learned.
func (r *reading) learning(o *object, s *Scenario) {
	vlan := make([]uint16, len(s.Graph.Nodes)) // of hosts
	for i := range vlan {
		vlan[i] = bridge.DefaultVLAN
	}
	for _, p := range s.Ports {
		if p.PVID == 0 && p.Tagged == (bridge.VLANs{}) {
			continue
		}
		if !s.Learning {
			r.fail(o.where("ports"), "ports", "with VLANs", "pvid and trunk where learning is true")
			return
		}
		host, _ := s.Graph.Links[s.Graph.Nodes[p.Node].Links[p.Port]].Other(p.Node)
		vlan[host] = p.PVID
		if x := &s.Graph.Nodes[host]; x.Host && p.PVID == 0 {
			r.fail(o.where("ports"), "ports", "without a pvid at "+x.Name, "a pvid for each host, which send frames without tags")
			return
		}
	}
	if !s.Learning {
		return
	}
	if links := s.Graph.ways(); links >= len(s.Graph.Nodes) {
		r.fail(o.where("learning"), "learning", fmt.Sprintf("true, with %d links between %d nodes", links, len(s.Graph.Nodes)),
			"false where links are in a circle: there is no spanning tree")
		return
	}
	for i := range s.Flows.All {
		f := &s.Flows.All[i]
		a, b := s.Graph.Hosts[f.From], s.Graph.Hosts[f.To]
		if vlan[a] != vlan[b] {
			r.fail(o.where("workload"), "workload", fmt.Sprintf("with a flow from %s in VLAN %d to %s in VLAN %d", s.Graph.Nodes[a].Name, vlan[a],
				s.Graph.Nodes[b].Name, vlan[b]), "flows between hosts of one VLAN, such as by hosts")
			return
		}
	}
}
