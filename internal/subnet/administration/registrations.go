package administration

import (
	"maps"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Registrations are what ports have told the administration and no sweep can discover: they are lost with
// a manager unless they are passed to the next one (SA.Recall).
type Registrations struct {
	GUIDs         []PortGUIDs
	Groups        []RegisteredGroup
	Subscriptions []Subscription
	Services      []RegisteredService
}

// PortGUIDs are the additional GUIDs of a port, by their index in its table; 0 marks unused entries.
type PortGUIDs struct {
	Port  uint64
	LID   ib.LID
	Table []uint64
}

// RegisteredGroup is a multicast group with its members.
type RegisteredGroup struct {
	Record    mad.MCMemberRecord // what all members have in common
	WellKnown bool               // kept without members too
	Members   []RegisteredMember
}

// RegisteredMember is a port of a multicast group.
type RegisteredMember struct {
	GID   ib.GID
	State uint8 // mad.JoinFull and so on
	Proxy bool
}

// Subscription says who wants to be notified of what.
type Subscription struct {
	Port ib.GID
	LID  ib.LID
	QPN  ib.QPN
	Info mad.InformInfo
}

// RegisteredService is a service that a port offers.
type RegisteredService struct {
	Record mad.ServiceRecord
	Left   time.Duration // time until its lease expires; negative: it has none
}

// Revision returns a number that changes with the registrations.
func (a *SA) Revision() uint64 { return a.revision }

// Registrations returns the current registrations.
func (a *SA) Registrations(now clock.Time) (r Registrations) {
	for _, port := range slices.Sorted(maps.Keys(a.guids.byPort)) {
		g := PortGUIDs{Port: port, Table: slices.Clone(a.guids.byPort[port])}
		if a.live != nil {
			if p := a.live.EndPortOfGUID(port); p != topology.None {
				g.LID = a.live.Ports[p].Info.LID
			}
		}
		r.GUIDs = append(r.GUIDs, g)
	}
	for _, gid := range a.sortedGroups() {
		g := a.groups[gid]
		x := RegisteredGroup{Record: g.rec, WellKnown: g.stays}
		for _, m := range g.members {
			x.Members = append(x.Members, RegisteredMember{m.gid, m.state, m.proxy})
		}
		r.Groups = append(r.Groups, x)
	}
	for _, x := range a.subs {
		r.Subscriptions = append(r.Subscriptions, Subscription{x.gid, x.lid, x.qpn, x.info})
	}
	for _, x := range a.services {
		left := time.Duration(-1)
		if x.until != clock.Never {
			left = max(0, x.until.Sub(now))
		}
		r.Services = append(r.Services, RegisteredService{x.rec, left})
	}
	return r
}

// Recall adopts what ports had registered with an earlier manager, as far as the ports are there. It is
// called once, after discovery and before anything is set. keysOf returns the P_Keys that an end port is
// to have.
func (a *SA) Recall(now clock.Time, found *topology.Subnet, keysOf func(p int32) []ib.PKey, r *Registrations) {
	a.now = now
	a.recallGUIDs(found, r.GUIDs)
	a.recallGroups(r.Groups, func(guid uint64, key ib.PKey) bool {
		p := found.EndPortOfGUID(guid)
		return p != topology.None && partition.Find(keysOf(p), key) != 0
	})
	for i := range r.Subscriptions {
		a.recallSubscription(found, &r.Subscriptions[i])
	}
	for i := range r.Services {
		a.recallService(&r.Services[i])
	}
}

// Counts returns the numbers of multicast groups, subscriptions, services, and ports with additional
// GUIDs.
func (a *SA) Counts() (groups, subscriptions, services, ports int) {
	return len(a.groups), len(a.subs), len(a.services), len(a.guids.byPort)
}

func (a *SA) recallGUIDs(n *topology.Subnet, list []PortGUIDs) {
	for _, g := range list {
		p := n.EndPortOfGUID(g.Port)
		if p == topology.None || a.guids.byPort[g.Port] != nil {
			continue
		}
		table := make([]uint64, min(len(g.Table), int(n.Ports[p].Info.GUIDCap)))
		for at, guid := range g.Table[:len(table)] {
			if at == 0 || guid == 0 || a.guids.owner[guid] != 0 || n.EndPortOfGUID(guid) != topology.None {
				continue // the first is the port's own
			}
			table[at], a.guids.owner[guid] = guid, g.Port
		}
		if !slices.ContainsFunc(table, func(v uint64) bool { return v != 0 }) {
			continue
		}
		a.guids.byPort[g.Port] = table
		for b := 0; b*guidsInBlock < len(table); b++ {
			a.guids.changed = append(a.guids.changed, GUIDBlock{g.Port, uint8(b)})
		}
	}
}

// recallGroups adopts groups with their multicast LIDs. A configured group is moved back to its earlier
// LID, to which packets are still being sent. belongs reports whether a port is there and in a partition.
func (a *SA) recallGroups(list []RegisteredGroup, belongs func(guid uint64, key ib.PKey) bool) {
	mlids := map[ib.LID]bool{}
	for i := range list {
		if g := &list[i]; recallable(&g.Record) {
			mlids[g.Record.MLID] = true
		}
	}
	for _, gid := range a.sortedGroups() { // those of the configuration
		if g := a.groups[gid]; mlids[g.rec.MLID] {
			g.rec.MLID = 0
		}
	}
	for i := range list {
		x := &list[i]
		if !recallable(&x.Record) {
			continue
		}
		g := a.groups[x.Record.MGID]
		switch {
		case g != nil:
			g.rec.MLID = x.Record.MLID
		case len(a.groups) >= maxGroupsOf:
			continue
		default:
			g = &group{rec: x.Record}
			g.rec.Scope, g.rec.JoinState, g.rec.ProxyJoin, g.rec.PortGID = g.rec.MGID[1]&15, 0, false, ib.GID{}
		}
		full := g.stays
		for _, m := range x.Members {
			full = a.recallMember(g, m, belongs) && m.State&(mad.JoinFull|mad.JoinSendOnlyFull) != 0 || full
		}
		if full {
			a.groups[g.rec.MGID] = g
		}
	}
	for _, gid := range a.sortedGroups() {
		if g := a.groups[gid]; g.rec.MLID == 0 {
			g.rec.MLID = a.freeMLID()
		}
	}
}

// recallable reports whether a group is valid.
func recallable(g *mad.MCMemberRecord) bool {
	return g.MGID[0] == 0xff && g.MLID >= firstMLID && g.MLID <= LastMLID && g.MTU.Valid() && mbps[g.Rate&63] != 0
}

// recallMember makes a port a member if it is there and in the partition.
func (a *SA) recallMember(g *group, m RegisteredMember, belongs func(guid uint64, key ib.PKey) bool) bool {
	guid := lower(m.GID)
	if owner, given := a.guids.owner[guid]; given {
		guid = owner
	}
	if m.State == 0 || !belongs(guid, g.rec.PKey) || slices.ContainsFunc(g.members, func(o member) bool { return o.guid == guid }) {
		return false
	}
	g.members = append(g.members, member{m.GID, guid, m.State & 15, m.Proxy})
	return true
}

func (a *SA) recallSubscription(n *topology.Subnet, x *Subscription) {
	guid := lower(x.Port)
	p := n.EndPortOfGUID(guid)
	if p == topology.None || len(a.subs) >= maxSubs {
		return
	}
	info := x.Info
	info.Subscribe, info.QPN = true, x.QPN
	if a.subscribed(guid, info) >= 0 {
		return
	}
	a.subs = append(a.subs, &subscription{n.Ports[p].Info.LID, guid, a.gid(guid), x.QPN, info})
}

func (a *SA) recallService(x *RegisteredService) {
	if len(a.services) >= maxServices || a.serviceAt(&x.Record) >= 0 {
		return
	}
	until := clock.Never
	if x.Left >= 0 {
		until = a.now.Add(x.Left)
	}
	a.services = append(a.services, &service{x.Record, until})
	a.leaseEnds = clock.Min(a.leaseEnds, until)
}

// lower returns the interface ID of a GID.
func lower(g ib.GID) (id uint64) {
	for _, v := range g[8:] {
		id = id<<8 | uint64(v)
	}
	return id
}
