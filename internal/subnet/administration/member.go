package administration

import (
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// memberRecords handles all requests about groups (IBA 15.2.5.17).
func (a *SA) memberRecords(r *request) {
	rec, err := mad.ParseMCMemberRecord(r.data)
	if err != nil {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	switch r.sa.Method {
	case mad.MethodSet:
		a.join(r, &rec)
	case mad.MethodDelete:
		a.drop(r, &rec)
	case mad.MethodGet, mad.MethodGetTable:
		a.listMembers(r, &rec)
	default:
		a.refuse(r, mad.StatusMethodUnsupported)
	}
}

// listMembers lists groups; only requesters that know the key see the members (IBA 15.2.5.17).
func (a *SA) listMembers(r *request, want *mad.MCMemberRecord) {
	const stride = 56
	var table []byte
	n := 0
	add := func(rec mad.MCMemberRecord) {
		if a.fitsGroup(r, want, &rec) {
			table = append(table, pad(rec.Append(nil), stride)...)
			n++
		}
	}
	for _, gid := range a.sortedGroups() {
		g := a.groups[gid]
		if !r.trusted && partition.Find(a.live.Ports[r.port].PKeys, g.rec.PKey) == 0 {
			continue
		}
		if !r.trusted || len(g.members) == 0 {
			add(g.rec)
			continue
		}
		for _, m := range g.members {
			rec := g.rec
			rec.PortGID, rec.JoinState, rec.ProxyJoin = m.gid, m.state, m.proxy
			add(rec)
		}
	}
	a.respond(r, table, n, stride)
}

// fitsGroup compares a group with a request.
func (a *SA) fitsGroup(r *request, want, g *mad.MCMemberRecord) bool {
	for _, c := range []struct {
		bit  uint64
		same bool
	}{
		{mad.MemberMGID, want.MGID == g.MGID}, {mad.MemberPortGID, want.PortGID == g.PortGID}, {mad.MemberQKey, want.QKey == g.QKey},
		{mad.MemberMLID, want.MLID == g.MLID},
		{mad.MemberTrafficClass, want.TrafficClass == g.TrafficClass}, {mad.MemberPKey, want.PKey&0x7fff == g.PKey&0x7fff},
		{mad.MemberSL, want.SL == g.SL},
		{mad.MemberFlowLabel, want.FlowLabel == g.FlowLabel}, {mad.MemberHopLimit, want.HopLimit == g.HopLimit},
		{mad.MemberScope, want.Scope == g.Scope},
		{mad.MemberJoinState, want.JoinState&g.JoinState == want.JoinState}, {mad.MemberProxyJoin, want.ProxyJoin == g.ProxyJoin},
	} {
		if r.has(c.bit) && !c.same {
			return false
		}
	}
	return a.selectors(r, want, g)
}

// selectors compares MTU, rate and lifetime of a group with the request.
func (a *SA) selectors(r *request, want, g *mad.MCMemberRecord) bool {
	within := func(bits uint64, selector uint8, want, have int) bool {
		if !r.has(bits) {
			return true
		}
		switch selector {
		case mad.SelectGreater:
			return have > want
		case mad.SelectLess:
			return have < want
		case mad.SelectExactly:
			return have == want
		}
		return true
	}
	return within(mad.MemberMTUSelector|mad.MemberMTU, want.MTUSelector, int(want.MTU), int(g.MTU)) &&
		within(mad.MemberRateSelector|mad.MemberRate, want.RateSelector, mbps[want.Rate&63], mbps[g.Rate&63]) &&
		within(mad.MemberLifeSelector|mad.MemberLife, want.LifeSelector, int(want.Life), int(g.Life))
}

// join makes a port a member, and creates the group if necessary.
func (a *SA) join(r *request, rec *mad.MCMemberRecord) {
	if !r.has(mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState) {
		a.refuse(r, mad.SAInsufficientComponents)
		return
	}
	p, _ := a.portOfGID(rec.PortGID)
	if p == topology.None {
		a.refuse(r, mad.SAInvalidGID)
		return
	}
	g := a.groups[rec.MGID]
	if rec.JoinState == 0 || g == nil && rec.JoinState&(mad.JoinFull|mad.JoinSendOnlyFull) == 0 {
		a.refuse(r, mad.SARequestInvalid) // o15-0.1.14: only a full member creates a group
		return
	}
	if p != r.port && partition.Shared(a.live.Ports[p].PKeys, a.live.Ports[r.port].PKeys, 0) == 0 {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	created := g == nil
	if created {
		var status uint16
		if g, status = a.create(r, rec, p); status != mad.StatusOK {
			a.refuse(r, status)
			return
		}
	} else if !a.mayJoin(r, rec, g, p) {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	state := a.add(g, rec, p, p != r.port)
	if created {
		a.groups[g.rec.MGID] = g
		a.notify(mad.TrapMulticastCreated, g.rec.MGID)
	}
	answer := g.rec
	answer.PortGID, answer.JoinState, answer.ProxyJoin = rec.PortGID, state, p != r.port
	a.one(r, answer.Append(nil))
	a.groupsDue = true
}

// add adds a port to a group and returns its state there.
func (a *SA) add(g *group, rec *mad.MCMemberRecord, p int32, proxy bool) uint8 {
	guid := a.live.Ports[p].GUID
	a.revision++
	a.settled(g.rec.MLID, guid)
	for i := range g.members {
		if g.members[i].guid == guid {
			g.members[i].state |= rec.JoinState
			return g.members[i].state
		}
	}
	g.members = append(g.members, member{rec.PortGID, guid, rec.JoinState, proxy})
	return rec.JoinState
}

// mayJoin reports whether a port can be a member of a group as specified by its request.
func (a *SA) mayJoin(r *request, rec *mad.MCMemberRecord, g *group, p int32) bool {
	for _, c := range []struct {
		bit  uint64
		same bool
	}{
		{mad.MemberQKey, rec.QKey == g.rec.QKey}, {mad.MemberPKey, rec.PKey&0x7fff == g.rec.PKey&0x7fff},
		{mad.MemberTrafficClass, rec.TrafficClass == g.rec.TrafficClass},
		{mad.MemberSL, rec.SL == g.rec.SL}, {mad.MemberFlowLabel, rec.FlowLabel == g.rec.FlowLabel},
		{mad.MemberHopLimit, rec.HopLimit == g.rec.HopLimit},
		{mad.MemberMLID, rec.MLID == g.rec.MLID}, {mad.MemberScope, rec.Scope == g.rec.Scope},
	} {
		if r.has(c.bit) && !c.same {
			return false
		}
	}
	return a.selectors(r, rec, &g.rec) && a.able(p, &g.rec)
}

// able reports whether a port has the partition and supports the MTU and the rate of a group.
func (a *SA) able(p int32, g *mad.MCMemberRecord) bool {
	port := &a.live.Ports[p]
	return partition.Find(port.PKeys, g.PKey) != 0 && mtuOf(port) >= g.MTU && mbps[rate(&port.Info)] >= mbps[g.Rate&63]
}

// drop removes a port from a group.
func (a *SA) drop(r *request, rec *mad.MCMemberRecord) {
	if !r.has(mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState) {
		a.refuse(r, mad.SAInsufficientComponents)
		return
	}
	g := a.groups[rec.MGID]
	if g == nil {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	i := slices.IndexFunc(g.members, func(m member) bool { return m.gid == rec.PortGID })
	if i < 0 || g.members[i].state&rec.JoinState == 0 || g.members[i].state&rec.JoinState != rec.JoinState {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	p, _ := a.portOfGID(rec.PortGID)
	if p != r.port && !g.members[i].proxy || p != r.port && p != topology.None && partition.Shared(a.live.Ports[p].PKeys,
		a.live.Ports[r.port].PKeys, 0) == 0 {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	answer := g.rec
	answer.PortGID, answer.ProxyJoin = rec.PortGID, g.members[i].proxy
	answer.JoinState = g.members[i].state &^ rec.JoinState
	a.leave(g, i, rec.JoinState)
	a.one(r, answer.Append(nil))
}

// leave ends some join states of a member: the last one ends the membership, the last full member the
// group.
func (a *SA) leave(g *group, i int, state uint8) {
	a.groupsDue = true
	a.revision++
	a.settled(g.rec.MLID, g.members[i].guid)
	if g.members[i].state &^= state; g.members[i].state != 0 {
		return
	}
	g.members = slices.Delete(g.members, i, i+1)
	full := slices.ContainsFunc(g.members, func(m member) bool { return m.state&(mad.JoinFull|mad.JoinSendOnlyFull) != 0 })
	if !full && !g.stays {
		delete(a.groups, g.rec.MGID)
		a.notify(mad.TrapMulticastDeleted, g.rec.MGID)
	}
}
