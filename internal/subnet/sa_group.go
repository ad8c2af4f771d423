package subnet

import (
	"bytes"
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// group is a multicast group.
type group struct {
	rec     mad.MCMemberRecord // what all members have in common
	members []member
	stays   bool // also without members: it was configured
}

// member is one port of a group.
type member struct {
	gid   ib.GID
	guid  uint64
	state uint8 // JoinFull and so on
	proxy bool
}

const (
	ipoibQKey   = 0x0b1b
	firstMLID   = ib.LIDFirstMulticast
	lastMLID    = ib.LID(0xfffe)
	maxGroupsOf = int(lastMLID-firstMLID) + 1
)

// makeGroups makes the groups of the partitions.
func (a *administration) makeGroups() {
	for i := range a.sm.cfg.Partitions.List {
		p := &a.sm.cfg.Partitions.List[i]
		if p.IPoIB {
			f := p.Flags
			if !f.HasQKey {
				f.QKey = ipoibQKey
			}
			a.makeGroup(ib.GID{0xff, 0x12, 0x40, 0x1b, byte(p.Key>>8) | 0x80, byte(p.Key), 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}, p.Key, f)
		}
		for _, g := range p.Groups {
			if ipGroup(g.MGID) && !g.Flags.HasQKey {
				g.Flags.QKey = ipoibQKey
			}
			a.makeGroup(g.MGID, p.Key, g.Flags)
		}
	}
}

// makeGroup makes a group that stays, once for each scope.
func (a *administration) makeGroup(gid ib.GID, key ib.PKey, f GroupFlags) {
	scopes := f.Scopes
	if len(scopes) == 0 {
		scopes = []uint8{gid[1] & 15}
	}
	for _, scope := range scopes {
		gid[1] = gid[1]&0xf0 | scope
		if a.groups[gid] != nil {
			continue
		}
		mlid := a.freeMLID()
		if mlid == 0 {
			return
		}
		a.groups[gid] = &group{stays: true, rec: mad.MCMemberRecord{
			MGID: gid, QKey: f.QKey, MLID: mlid, MTUSelector: mad.SelectExactly, MTU: ib.MTU(f.MTU), TrafficClass: f.TClass, PKey: key | 0x8000,
			RateSelector: mad.SelectExactly, Rate: f.Rate, LifeSelector: mad.SelectExactly, Life: packetLife, SL: f.SL, FlowLabel: f.FlowLabel, Scope: scope,
		}}
	}
}

// freeMLID is the first multicast LID that is not taken, 0 when all switches' tables are full.
func (a *administration) freeMLID() ib.LID {
	taken := make(map[ib.LID]bool, len(a.groups))
	for _, g := range a.groups {
		taken[g.rec.MLID] = true
	}
	room := maxGroupsOf
	if n := a.sm.live; n != nil {
		for _, node := range n.Switches {
			if i := n.Nodes[node].SwInfo; i != nil && i.MulticastFDBCap > 0 {
				room = min(room, int(i.MulticastFDBCap))
			}
		}
	}
	for i := range room {
		if l := firstMLID + ib.LID(i); !taken[l] {
			return l
		}
	}
	return 0
}

// receivers are the members of all groups by multicast LID.
func (a *administration) receivers() map[ib.LID][]receiver {
	m := map[ib.LID][]receiver{}
	for _, g := range a.groups {
		for _, x := range g.members {
			m[g.rec.MLID] = append(m[g.rec.MLID], receiver{x.guid, x.state&(mad.JoinFull|mad.JoinNonMember) != 0})
		}
	}
	return m
}

// gone takes a port that has left the subnet out of all groups.
func (a *administration) gone(guid uint64) {
	for _, gid := range a.sortedGroups() {
		g := a.groups[gid]
		for i := len(g.members) - 1; i >= 0; i-- {
			if g.members[i].guid == guid {
				a.leave(g, i, 15)
			}
		}
	}
}

func (a *administration) sortedGroups() []ib.GID {
	list := make([]ib.GID, 0, len(a.groups))
	for g := range a.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(x, y ib.GID) int { return bytes.Compare(x[:], y[:]) })
	return list
}

// memberRecords handles all requests about groups (IBA 15.2.5.17).
func (a *administration) memberRecords(r *request) {
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

// listMembers shows groups; who their members are is for those who know the key (IBA 15.2.5.17).
func (a *administration) listMembers(r *request, want *mad.MCMemberRecord) {
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
		if !r.trusted && limitedOrFull(a.sm.live.Ports[r.port].PKeys, g.rec.PKey) == 0 {
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
func (a *administration) fitsGroup(r *request, want, g *mad.MCMemberRecord) bool {
	for _, c := range []struct {
		bit  uint64
		same bool
	}{
		{mad.MemberMGID, want.MGID == g.MGID}, {mad.MemberPortGID, want.PortGID == g.PortGID}, {mad.MemberQKey, want.QKey == g.QKey}, {mad.MemberMLID, want.MLID == g.MLID},
		{mad.MemberTrafficClass, want.TrafficClass == g.TrafficClass}, {mad.MemberPKey, want.PKey&0x7fff == g.PKey&0x7fff}, {mad.MemberSL, want.SL == g.SL},
		{mad.MemberFlowLabel, want.FlowLabel == g.FlowLabel}, {mad.MemberHopLimit, want.HopLimit == g.HopLimit}, {mad.MemberScope, want.Scope == g.Scope},
		{mad.MemberJoinState, want.JoinState&g.JoinState == want.JoinState}, {mad.MemberProxyJoin, want.ProxyJoin == g.ProxyJoin},
	} {
		if r.has(c.bit) && !c.same {
			return false
		}
	}
	return a.selectors(r, want, g)
}

// selectors compares MTU, rate and life time of a group with what is asked.
func (a *administration) selectors(r *request, want, g *mad.MCMemberRecord) bool {
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

// join makes a port a member, and the group where there is none.
func (a *administration) join(r *request, rec *mad.MCMemberRecord) {
	if !r.has(mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState) {
		a.refuse(r, mad.SAInsufficientComponents)
		return
	}
	p, _ := a.portOfGID(rec.PortGID)
	if p == none {
		a.refuse(r, mad.SAInvalidGID)
		return
	}
	g := a.groups[rec.MGID]
	if rec.JoinState == 0 || g == nil && rec.JoinState&(mad.JoinFull|mad.JoinSendOnlyFull) == 0 {
		a.refuse(r, mad.SARequestInvalid) // o15-0.1.14: only a full member makes a group
		return
	}
	if p != r.port && shareKey(a.sm.live.Ports[p].PKeys, a.sm.live.Ports[r.port].PKeys, 0) == 0 {
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
	a.sm.groupsChanged = true
	a.sm.proceed()
}

// add puts a port in a group and returns its state there.
func (a *administration) add(g *group, rec *mad.MCMemberRecord, p int32, proxy bool) uint8 {
	guid := a.sm.live.Ports[p].GUID
	for i := range g.members {
		if g.members[i].guid == guid {
			g.members[i].state |= rec.JoinState
			return g.members[i].state
		}
	}
	g.members = append(g.members, member{rec.PortGID, guid, rec.JoinState, proxy})
	return rec.JoinState
}

// mayJoin says whether a port can be a member of a group on the terms of its request.
func (a *administration) mayJoin(r *request, rec *mad.MCMemberRecord, g *group, p int32) bool {
	for _, c := range []struct {
		bit  uint64
		same bool
	}{
		{mad.MemberQKey, rec.QKey == g.rec.QKey}, {mad.MemberPKey, rec.PKey&0x7fff == g.rec.PKey&0x7fff}, {mad.MemberTrafficClass, rec.TrafficClass == g.rec.TrafficClass},
		{mad.MemberSL, rec.SL == g.rec.SL}, {mad.MemberFlowLabel, rec.FlowLabel == g.rec.FlowLabel}, {mad.MemberHopLimit, rec.HopLimit == g.rec.HopLimit},
		{mad.MemberMLID, rec.MLID == g.rec.MLID}, {mad.MemberScope, rec.Scope == g.rec.Scope},
	} {
		if r.has(c.bit) && !c.same {
			return false
		}
	}
	return a.selectors(r, rec, &g.rec) && a.able(p, &g.rec)
}

// able says whether a port has the partition and can do the MTU and the rate of a group.
func (a *administration) able(p int32, g *mad.MCMemberRecord) bool {
	port := &a.sm.live.Ports[p]
	return limitedOrFull(port.PKeys, g.PKey) != 0 && mtuOf(port) >= g.MTU && mbps[rate(&port.Info)] >= mbps[g.Rate&63]
}

// create makes a group on the terms of a request (IBA 15.2.5.17.2).
func (a *administration) create(r *request, rec *mad.MCMemberRecord, p int32) (*group, uint16) {
	const needed = mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel | mad.MemberTrafficClass
	if !r.has(needed) {
		return nil, mad.SAInsufficientComponents
	}
	port := &a.sm.live.Ports[p]
	g := &group{rec: *rec}
	mtu, ok := chosen(r.has(mad.MemberMTUSelector|mad.MemberMTU), rec.MTUSelector, int(rec.MTU), int(mtuOf(port)))
	if !ok || !ib.MTU(mtu).Valid() {
		return nil, mad.SARequestInvalid
	}
	code, ok := rateChosen(r.has(mad.MemberRateSelector|mad.MemberRate), rec.RateSelector, rec.Rate, rate(&port.Info))
	if !ok {
		return nil, mad.SARequestInvalid
	}
	life, ok := lifeChosen(&wish{rec: mad.PathRecord{LifeSelector: rec.LifeSelector, Life: rec.Life}, mask: lifeMask(r)}, packetLife)
	if !ok {
		return nil, mad.SARequestInvalid
	}
	g.rec.MTUSelector, g.rec.MTU, g.rec.RateSelector, g.rec.Rate = mad.SelectExactly, ib.MTU(mtu), mad.SelectExactly, code
	g.rec.LifeSelector, g.rec.Life = mad.SelectExactly, uint8(life)
	if !a.able(p, &g.rec) {
		return nil, mad.SARequestInvalid
	}
	if g.rec.MGID.IsZero() {
		a.nameGroup(r, g)
	} else if !a.validMGID(g.rec.MGID) {
		return nil, mad.SARequestInvalid
	}
	g.rec.Scope, g.rec.JoinState, g.rec.ProxyJoin, g.rec.PortGID = g.rec.MGID[1]&15, 0, false, ib.GID{}
	if g.rec.MLID = a.freeMLID(); g.rec.MLID == 0 {
		return nil, mad.SANoResources
	}
	return g, mad.StatusOK
}

func lifeMask(r *request) uint64 {
	if r.has(mad.MemberLifeSelector | mad.MemberLife) {
		return mad.PathLifeSelector | mad.PathLife
	}
	return 0
}

// rateChosen applies a selector to a rate.
func rateChosen(given bool, selector, want, have uint8) (uint8, bool) {
	switch {
	case !given:
		return have, true
	case mbps[want&63] == 0:
		return 0, false
	case selector == mad.SelectGreater:
		return have, mbps[have] > mbps[want&63]
	case selector == mad.SelectLess:
		c := slower(have, below(mbps[want&63]))
		return c, c != 0
	case selector == mad.SelectExactly:
		return want, mbps[have] >= mbps[want&63]
	}
	return have, true
}

// nameGroup makes an MGID: the signature 0xa01b, the subnet's prefix and a number.
func (a *administration) nameGroup(r *request, g *group) {
	scope := uint8(2)
	if r.has(mad.MemberScope) && g.rec.Scope != 0 {
		scope = g.rec.Scope
	}
	prefix := a.sm.cfg.Prefix
	for n := uint32(1); ; n++ {
		gid := ib.GID{0xff, 0x10 | scope, 0xa0, 0x1b, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
		for i := range 8 {
			gid[4+i] = byte(prefix >> (56 - 8*i))
		}
		if a.groups[gid] == nil {
			g.rec.MGID = gid
			return
		}
	}
}

// validMGID says whether a multicast GID can be of a group that a port makes (IBA 4.1.1, 15.2.5.17.2).
func (a *administration) validMGID(g ib.GID) bool {
	flags, scope := g[1]>>4, g[1]&15
	if g[0] != 0xff || flags&^1 != 0 || scope == 0 || scope == 15 {
		return false
	}
	if g[2] == 0xa0 && g[3] == 0x1b { // the administration's own: with the subnet's prefix, or the link-local one
		if flags != 1 {
			return false
		}
		var prefix uint64
		for i := range 8 {
			prefix = prefix<<8 | uint64(g[4+i])
		}
		return prefix == a.sm.cfg.Prefix
	}
	return true
}

// drop takes a port out of a group.
func (a *administration) drop(r *request, rec *mad.MCMemberRecord) {
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
	if p != r.port && !g.members[i].proxy || p != r.port && p != none && shareKey(a.sm.live.Ports[p].PKeys, a.sm.live.Ports[r.port].PKeys, 0) == 0 {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	answer := g.rec
	answer.PortGID, answer.ProxyJoin = rec.PortGID, g.members[i].proxy
	answer.JoinState = g.members[i].state &^ rec.JoinState
	a.leave(g, i, rec.JoinState)
	a.one(r, answer.Append(nil))
	a.sm.proceed()
}

// leave ends some states of a member, the membership with the last, and the group with the last full member.
func (a *administration) leave(g *group, i int, state uint8) {
	a.sm.groupsChanged = true
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
