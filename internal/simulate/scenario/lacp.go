package scenario

import (
	"slices"

	"github.com/softvpi/softvpi/internal/lacp"
)

// LACP is how a live switch aggregates the links of a host that has several. The zero value is static: over all that are up.
type LACP struct {
	On, Passive, Fast bool
	Choice            lacp.Choice
}

// Names of the fields, which a switch has and a port.
const (
	fieldLACP    = "lacp"
	fieldRate    = "lacp_rate"
	fieldPartner = "lacp_choice"
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

// SaysLACP reports whether links are to be aggregated by LACP. A simulation has static bundles in their place.
func (s *Scenario) SaysLACP() bool {
	return slices.ContainsFunc(s.Switches, func(w *Switch) bool { return w != nil && w.LACP.On }) ||
		slices.ContainsFunc(s.Ports, func(p Port) bool { return p.OwnLACP && p.LACP.On })
}

// LACPOf returns how a switch aggregates a bundle of ports: as one of them says, or as the switch does.
func (f *Fabric) LACPOf(node int, bundle []int) LACP {
	l := f.Switches[node].LACP
	for i := range f.Ports {
		if p := &f.Ports[i]; p.Node == node && p.OwnLACP && slices.Contains(bundle, p.Port) {
			l = p.LACP
		}
	}
	return l
}
