package administration

import (
	"bytes"
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// group is a multicast group.
type group struct {
	rec     mad.MCMemberRecord // what all members have in common
	members []member
	stays   bool // kept without members too: it was configured
}

// member is one port of a group.
type member struct {
	gid   ib.GID
	guid  uint64
	state uint8 // JoinFull and so on
	proxy bool
}

const (
	ipoibQKey = 0x0b1b
	// scopeLinkLocal is the scope of a single subnet. The administration itself chooses the MGIDs of
	// groups with this scope and its own signature.
	scopeLinkLocal = 2
	firstMLID      = ib.LIDFirstMulticast
	maxGroupsOf    = int(LastMLID-firstMLID) + 1
)

// LastMLID is the highest multicast LID that a group can have (IBA 4.1.3).
const LastMLID = ib.LID(0xfffe)

// makeGroups creates the groups of the partitions.
func (a *SA) makeGroups() {
	for i := range a.cfg.Partitions.List {
		p := &a.cfg.Partitions.List[i]
		if p.IPoIB {
			f := p.Flags
			if !f.HasQKey {
				f.QKey = ipoibQKey
			}
			a.makeGroup(ib.GID{0xff, 0x12, 0x40, 0x1b, byte(p.Key>>8) | 0x80, byte(p.Key), 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}, p.Key,
				f)
		}
		for _, g := range p.Groups {
			if partition.IsIP(g.MGID) && !g.Flags.HasQKey {
				g.Flags.QKey = ipoibQKey
			}
			a.makeGroup(g.MGID, p.Key, g.Flags)
		}
	}
}

// makeGroup creates a permanent group, once for each scope.
func (a *SA) makeGroup(gid ib.GID, key ib.PKey, f partition.GroupFlags) {
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
			MGID: gid, QKey: f.QKey, MLID: mlid, MTUSelector: mad.SelectExactly, MTU: ib.MTU(f.MTU), TrafficClass: f.TClass,
			PKey:         key | 0x8000,
			RateSelector: mad.SelectExactly, Rate: f.Rate, LifeSelector: mad.SelectExactly, Life: a.cfg.PacketLife, SL: f.SL,
			FlowLabel: f.FlowLabel, Scope: scope,
		}}
	}
}

func (a *SA) takenMLIDs() map[ib.LID]bool {
	taken := make(map[ib.LID]bool, len(a.groups))
	for _, g := range a.groups {
		taken[g.rec.MLID] = true
	}
	return taken
}

// freeMLID returns the first multicast LID that is free and does not serve ports from earlier, or else one
// that is free, or 0 if all switches' tables are full.
func (a *SA) freeMLID() ib.LID {
	taken := a.takenMLIDs()
	second := ib.LID(0)
	for i := range a.roomForMLIDs() {
		switch l := firstMLID + ib.LID(i); {
		case taken[l]:
		case a.legacies[l] == nil:
			return l
		case second == 0:
			second = l
		}
	}
	return second
}

// roomForMLIDs returns how many multicast LIDs all switches have room for.
func (a *SA) roomForMLIDs() int {
	room := maxGroupsOf
	if n := a.live; n != nil {
		for _, node := range n.Switches {
			if i := n.Nodes[node].SwInfo; i != nil && i.MulticastFDBCap > 0 {
				room = min(room, int(i.MulticastFDBCap))
			}
		}
	}
	return room
}

// Receiver is a port at a multicast LID, by GUID.
type Receiver struct {
	GUID     uint64
	Receives bool // false: it is listed only because its packets must get out
}

// Receivers returns the members of all groups by multicast LID, including those inherited from an earlier
// manager.
func (a *SA) Receivers() map[ib.LID][]Receiver {
	m := map[ib.LID][]Receiver{}
	for _, g := range a.groups {
		for _, x := range g.members {
			m[g.rec.MLID] = append(m[g.rec.MLID], Receiver{x.guid, x.state&(mad.JoinFull|mad.JoinNonMember) != 0})
		}
	}
	for mlid, l := range a.legacies {
		for guid, receives := range l {
			m[mlid] = append(m[mlid], Receiver{guid, receives})
		}
	}
	return m
}

// gone removes a port that has left the subnet from all groups.
func (a *SA) gone(guid uint64) {
	for _, gid := range a.sortedGroups() {
		g := a.groups[gid]
		for i := len(g.members) - 1; i >= 0; i-- {
			if g.members[i].guid == guid {
				a.leave(g, i, 15)
			}
		}
	}
}

func (a *SA) sortedGroups() []ib.GID {
	list := make([]ib.GID, 0, len(a.groups))
	for g := range a.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(x, y ib.GID) int { return bytes.Compare(x[:], y[:]) })
	return list
}

// create creates a group as specified by a request (IBA 15.2.5.17.2).
func (a *SA) create(r *request, rec *mad.MCMemberRecord, p int32) (*group, uint16) {
	const needed = mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel | mad.MemberTrafficClass
	if !r.has(needed) {
		return nil, mad.SAInsufficientComponents
	}
	port := &a.live.Ports[p]
	g := &group{rec: *rec}
	mtu, ok := chosen(r.has(mad.MemberMTUSelector|mad.MemberMTU), rec.MTUSelector, int(rec.MTU), int(mtuOf(port)))
	if !ok || !ib.MTU(mtu).Valid() {
		return nil, mad.SARequestInvalid
	}
	code, ok := rateChosen(r.has(mad.MemberRateSelector|mad.MemberRate), rec.RateSelector, rec.Rate, rate(&port.Info))
	if !ok {
		return nil, mad.SARequestInvalid
	}
	life, ok := lifeChosen(&wish{rec: mad.PathRecord{LifeSelector: rec.LifeSelector, Life: rec.Life}, mask: lifeMask(r)},
		int(a.cfg.PacketLife))
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
	if g.rec.MLID = a.mlidFor(r, rec.MLID, port.GUID); g.rec.MLID == 0 {
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

// nameGroup chooses an MGID: the signature 0xa01b, the subnet's prefix and a number.
func (a *SA) nameGroup(r *request, g *group) {
	scope := uint8(2)
	if r.has(mad.MemberScope) && g.rec.Scope != 0 {
		scope = g.rec.Scope
	}
	prefix := a.cfg.Prefix
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

// validMGID reports whether a port may create a group with this MGID (IBA 4.1.1, 15.2.5.17.2).
func (a *SA) validMGID(g ib.GID) bool {
	flags, scope := g[1]>>4, g[1]&15
	if g[0] != 0xff || flags&^1 != 0 || scope == 0 {
		return false
	}
	if g[2] == 0xa0 && g[3] == 0x1b { // the administration's own: with the subnet's prefix, or the link-local one
		if flags != 1 || scope == scopeLinkLocal {
			return false
		}
		var prefix uint64
		for i := range 8 {
			prefix = prefix<<8 | uint64(g[4+i])
		}
		return prefix == a.cfg.Prefix
	}
	return true
}
