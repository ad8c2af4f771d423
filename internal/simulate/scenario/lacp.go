package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/lacp"
)

// LACP is how a switch aggregates the links of a host that has several, or the host does. The zero value is static: over all that are up.
type LACP struct {
	On, Passive, Fast bool
	Choice            lacp.Choice
}

// HostLACP is how a host aggregates its links.
type HostLACP struct {
	LACP
	// Own is that the host does so whatever its switch does. Otherwise it speaks LACP where its switch does.
	Own bool
	// Keys are those of its links, by which it tells which of them may be one; nil: all have the same.
	Keys []uint16
}

// Names of the fields, which a switch has, a port and, with the last, a host.
const (
	fieldLACP    = "lacp"
	fieldRate    = "lacp_rate"
	fieldPartner = "lacp_choice"
	fieldKeys    = "lacp_keys"
)

// read takes over what an object says, and leaves the rest.
func (l *LACP) read(o *object) {
	if mode := o.choice(fieldLACP, "off", "active", "passive"); o.has(fieldLACP) {
		l.On, l.Passive = mode != "off", mode == "passive"
	}
	if rate := o.choice(fieldRate, "slow", "fast"); o.has(fieldRate) {
		l.Fast = rate == "fast"
	}
	names := []string{lacp.Stable.String(), lacp.Bandwidth.String(), lacp.Count.String()}
	if by := o.choice(fieldPartner, names...); o.has(fieldPartner) {
		l.Choice, _ = lacp.ParseChoice(by)
	}
	for _, name := range []string{fieldRate, fieldPartner} {
		if o.has(name) && !l.On {
			o.r.fail(o.where(name), o.field(name), o.text(name, ""), "none where "+fieldLACP+" is off")
		}
	}
}

// saysLACP reports whether an object has any of the fields.
func (o *object) saysLACP() bool { return o.has(fieldLACP) || o.has(fieldRate) || o.has(fieldPartner) }

const allowedOff = "off where no host has several links: those between switches are no bundles, and flows take all of them anyway"

// checkLACPOf refuses LACP of a single switch that has no bundle.
func (g *Graph) checkLACPOf(o *object, s *Switch, node int) {
	if o.saysLACP() && s.LACP.On && len(g.Bundles(node)) == 0 {
		o.r.fail(o.where(fieldLACP), o.field(fieldLACP), "on at a switch without a bundle", allowedOff)
	}
}

// checkLACP refuses LACP of all switches if several links between two of them are the only ones that it could be meant for.
func (g *Graph) checkLACP(o *object, s *Switch) {
	if !s.LACP.On || slices.ContainsFunc(g.Hosts, func(h int) bool { return len(g.Nodes[h].Links) > 1 }) {
		return
	}
	between := map[[2]int]bool{}
	for i := range g.Links {
		ends := [2]int{min(g.Links[i].A, g.Links[i].B), max(g.Links[i].A, g.Links[i].B)}
		if between[ends] {
			o.r.fail(o.where(fieldLACP), o.field(fieldLACP), "on where only switches have several links to each other", allowedOff)
			return
		}
		between[ends] = true
	}
}

// checkBundle refuses LACP of a port that is none of a bundle, or whose bundle another port has said it of.
func (r *reading) checkBundle(x *object, g *Graph, p *Port, others []Port) {
	if !x.saysLACP() {
		return
	}
	for _, b := range g.Bundles(p.Node) {
		if !slices.Contains(b, p.Port) {
			continue
		}
		p.OwnLACP = true
		for i := range others {
			if o := &others[i]; o.OwnLACP && o.Node == p.Node && slices.Contains(b, o.Port) {
				r.fail(x.at, x.path+"."+fieldLACP, "of a bundle for the second time", "once for all ports of a bundle")
			}
		}
		return
	}
	r.fail(x.at, x.path+"."+fieldLACP, "of a port that is in no bundle", "one of a host with several links")
}

// read takes over what an object says, and leaves the rest.
func (l *HostLACP) read(o *object) {
	if !l.Own {
		l.On = true // if its switch does
	}
	l.LACP.read(o)
	l.Own = l.Own || o.has(fieldLACP)
	l.keys(o)
	if !l.On && o.has(fieldKeys) {
		o.r.fail(o.where(fieldKeys), o.field(fieldKeys), "an array", "none where "+fieldLACP+" is off")
	}
}

// keys reads the keys of a host's links.
func (l *HostLACP) keys(o *object) {
	n := o.get(fieldKeys)
	if n == nil {
		return
	}
	l.Keys = nil
	for _, x := range n.list {
		v, ok := x.scalar.(json.Number)
		key, err := strconv.ParseUint(v.String(), 10, 16)
		if !ok || err != nil || key == 0 {
			o.r.wrong(x, o.field(fieldKeys), allowedKeys)
			return
		}
		l.Keys = append(l.Keys, uint16(key))
	}
	if len(l.Keys) == 0 || len(l.Keys) > mostBundle {
		o.r.wrong(n, o.field(fieldKeys), allowedKeys)
	}
}

const allowedKeys = "an array of a key for each link of a host, 1 to 65535"

// check refuses LACP of a host alone that has one link, and keys that are not as many as its links.
func (l *HostLACP) check(o *object, links int, alone bool) {
	switch {
	case alone && links == 1 && (o.saysLACP() || o.has(fieldKeys)):
		o.r.fail(o.at, o.path+"."+fieldLACP, "of a host with one link", "one of a host with several links")
	case links > 1 && l.Keys != nil && len(l.Keys) != links:
		o.r.fail(o.where(fieldKeys), o.field(fieldKeys), fmt.Sprintf("an array of %d", len(l.Keys)),
			fmt.Sprintf("an array of %d keys, one for each link of a host", links))
	}
}

// IdleLACP reports whether it is said how links are to be aggregated, and there are none that could be.
func (s *Scenario) IdleLACP() bool {
	for _, h := range s.Graph.Hosts {
		if len(s.Graph.Nodes[h].Links) > 1 {
			return false
		}
	}
	return slices.ContainsFunc(s.Switches, func(w *Switch) bool { return w != nil && w.LACP.On }) ||
		slices.ContainsFunc(s.NICs, func(n *NIC) bool { return n != nil && (n.LACP.Own && n.LACP.On || n.LACP.Keys != nil) })
}

// IdleLACP is as of a Scenario, for switches: hosts' ends are not in the file.
func (f *Fabric) IdleLACP() bool {
	if slices.ContainsFunc(f.Bundles, func(of [][]int) bool { return len(of) > 0 }) {
		return false
	}
	return slices.ContainsFunc(f.Switches, func(w *Switch) bool { return w != nil && w.LACP.On })
}

// LACPOf returns how a switch aggregates a bundle of ports: as one of them says, or as the switch does.
func (s *Scenario) LACPOf(node int, bundle []int) LACP {
	return lacpOf(s.Switches, s.Ports, node, bundle)
}

// LACPOf is as of a Scenario.
func (f *Fabric) LACPOf(node int, bundle []int) LACP {
	return lacpOf(f.Switches, f.Ports, node, bundle)
}

func lacpOf(switches []*Switch, ports []Port, node int, bundle []int) LACP {
	l := switches[node].LACP
	for i := range ports {
		if p := &ports[i]; p.Node == node && p.OwnLACP && slices.Contains(bundle, p.Port) {
			l = p.LACP
		}
	}
	return l
}
