package dcb

import (
	"math/bits"
	"reflect"
	"slices"

	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/lldp"
)

// Subtypes of sockets and EtherTypes in the table of CEE.
const (
	ceeEtherType lldp.Selector = 0
	ceePort      lldp.Selector = 1
)

// ceeState is what CEE's control machine knows (DCBX 1.01, 3.2.1).
type ceeState struct {
	sequence     uint32 // of what is said; 0: nothing was
	acknowledged uint32 // the peer's that was heard last
	heard        uint32 // ours that the peer has heard
	peer         bool
	said         lldp.CEE // features
	// Errors of features.
	groups, pfc, applications bool
}

// settleCEE works out the operative settings. Of each feature (3.2.2): without a peer's the port does as it is configured. If
// just one of the two is willing, both do as the other is configured. If both or neither are, both have to be configured alike;
// otherwise the feature is in error, and does not work.
func (d *dcbx) settleCEE(c *Config, counters *Counters, n *Neighbour) {
	s := &d.cee
	s.groups, s.pfc, s.applications = false, false, false
	var peer *lldp.CEE
	if n != nil {
		peer = n.CEE
	}
	if s.peer = peer != nil; s.peer {
		d.peer, d.state = n.MAC, Agreed
		s.acknowledged, s.heard = peer.Sequence, peer.Acknowledged
		d.follow(c, counters, peer)
	}
	want := desired(c)
	want.Groups.Error, want.PFC.Error, want.Applications.Error = s.groups, s.pfc, s.applications
	if s.groups || s.pfc || s.applications {
		d.state = Conflict
	}
	// What is said changes only when the peer has heard what was said before.
	if s.sequence == 0 || !reflect.DeepEqual(want, s.said) && (!s.peer || s.heard == s.sequence) {
		s.sequence++
		s.said = want
	}
}

// follow works out each feature with a peer.
func (d *dcbx) follow(c *Config, counters *Counters, peer *lldp.CEE) {
	s, o, want, none := &d.cee, &d.operative, desired(c), qos.Defaults()
	if g := peer.Groups; g != nil {
		e, ok := fromGroups(g)
		alike := g.Group == want.Groups.Group && g.Percent == want.Groups.Percent
		switch v := compare(c.Willing, &g.Feature, alike); {
		case v == theirs && !ok:
			counters.DCBXInvalid++
		case v == theirs:
			o.ETS, o.ETSFrom = e, qos.FromPeer
		case v != ours:
			s.groups = v == differ
			o.ETS, o.ETSFrom = none.ETS, qos.FromDefault
		}
	}
	if p := peer.PFC; p != nil {
		switch v := compare(c.Willing, &p.Feature, p.Enabled == want.PFC.Enabled); v {
		case theirs:
			o.PFC, o.PFCFrom = p.Enabled, qos.FromPeer
		case differ, off:
			s.pfc = v == differ
			o.PFC, o.PFCFrom = none.PFC, qos.FromDefault
		}
	}
	if a := peer.Applications; a != nil {
		switch v := compare(c.Willing, &a.Feature, compatible(a.Table, want.Applications.Table)); v {
		case theirs:
			o.Applications, o.ApplicationsFrom = fromCEETable(a.Table), qos.FromPeer
		case differ, off:
			s.applications = v == differ
			o.Applications, o.ApplicationsFrom = none.Applications, qos.FromDefault
		}
	}
}

// verdict is whose configuration a feature works with.
type verdict uint8

const (
	ours verdict = iota
	theirs
	differ // nobody's: they are not alike
	off    // nobody's: the peer has it off, or in error
)

func compare(willing bool, peer *lldp.Feature, alike bool) verdict {
	switch {
	case !peer.Enable:
		return off
	case willing && !peer.Willing:
		return theirs
	case willing == peer.Willing && !alike:
		return differ
	case peer.Error:
		return off
	}
	return ours
}

// compatible reports whether two tables have the same priorities for the applications that both have.
func compatible(a, b []lldp.CEEApplication) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Protocol == y.Protocol && x.Selector == y.Selector && x.Priorities != y.Priorities {
				return false
			}
		}
	}
	return true
}

// unit returns the TLV.
func (s *ceeState) unit() *lldp.CEE {
	u := s.said
	u.Sequence, u.Acknowledged = s.sequence, s.acknowledged
	return &u
}

// status fills in how the features stand.
func (s *ceeState) status(to *DCBXStatus, peer *lldp.CEE) {
	to.Sequence, to.Acknowledged = s.sequence, s.heard
	if peer == nil {
		return
	}
	synchronized := s.heard == s.sequence
	one := func(there bool, f func() *lldp.Feature, failed bool) Feature {
		if !there {
			return Feature{}
		}
		return Feature{Peer: true, PeerWilling: f().Willing, Error: failed, Synchronized: synchronized}
	}
	to.ETS = one(peer.Groups != nil, func() *lldp.Feature { return &peer.Groups.Feature }, s.groups)
	to.PFC = one(peer.PFC != nil, func() *lldp.Feature { return &peer.PFC.Feature }, s.pfc)
	to.Applications = one(peer.Applications != nil, func() *lldp.Feature { return &peer.Applications.Feature }, s.applications)
}

// desired returns how the port is configured, as CEE says it.
func desired(c *Config) lldp.CEE {
	f := lldp.Feature{Enable: true, Willing: c.Willing}
	u := lldp.CEE{
		Groups:       &lldp.CEEGroups{Feature: f, Classes: qos.Classes},
		PFC:          &lldp.CEEPFC{Feature: f, Enabled: c.Settings.PFC, Classes: pfcClasses},
		Applications: &lldp.CEEApplications{Feature: f, Table: toCEETable(c.Settings.Applications)},
	}
	e := &c.Settings.ETS
	for p, class := range e.Class {
		if e.Algorithm[class] == qos.Enhanced {
			u.Groups.Group[p] = class
		} else {
			u.Groups.Group[p] = lldp.StrictGroup
		}
	}
	u.Groups.Percent = e.Bandwidth
	return u
}

// fromGroups returns the classes of a peer's groups; false if they make no sense. The strict group is a class that no group is.
func fromGroups(g *lldp.CEEGroups) (e qos.ETS, ok bool) {
	strict := -1
	for c, percent := range g.Percent {
		if percent == 0 && !slices.Contains(g.Group[:], uint8(c)) {
			strict = c
			continue
		}
		e.Algorithm[c], e.Bandwidth[c] = qos.Enhanced, percent
	}
	for p, n := range g.Group {
		switch {
		case n < qos.Classes:
			e.Class[p] = n
		case n == lldp.StrictGroup && strict >= 0:
			e.Class[p] = uint8(strict)
		default: // no group, or the strict one beside eight that have a share
			return e, false
		}
	}
	return e, e.Check() == nil
}

// toCEETable returns a table as CEE has it: what it has no selector for is left out, and so is what has no room.
func toCEETable(table []qos.Application) (w []lldp.CEEApplication) {
	for _, a := range table {
		x := lldp.CEEApplication{Protocol: a.Protocol, OUI: lldp.OUICEE, Priorities: 1 << a.Priority}
		switch a.Selector {
		case qos.EtherType:
			x.Selector = ceeEtherType
		case qos.Port, qos.TCP, qos.UDP:
			x.Selector = ceePort
		default:
			continue
		}
		i := slices.IndexFunc(w, func(o lldp.CEEApplication) bool { return o.Protocol == x.Protocol && o.Selector == x.Selector })
		switch {
		case i >= 0:
			w[i].Priorities |= x.Priorities
		case len(w) < lldp.MostCEEApplications:
			w = append(w, x)
		}
	}
	return w
}

// fromCEETable returns the entries of a peer that are known; of several priorities the highest counts.
func fromCEETable(w []lldp.CEEApplication) (table []qos.Application) {
	for _, x := range w {
		a := qos.Application{Protocol: x.Protocol, Priority: uint8(bits.Len8(x.Priorities)) - 1}
		switch x.Selector {
		case ceeEtherType:
			a.Selector = qos.EtherType
		case ceePort:
			a.Selector = qos.Port
		}
		if x.Priorities != 0 && a.Selector != 0 {
			table = append(table, a)
		}
	}
	qos.Sort(table)
	return table
}
