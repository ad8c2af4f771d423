package ipoib

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	maxWaiting   = 16               // packets waiting for a group or a neighbour
	firstBackoff = time.Second      // after a failed join
	lastBackoff  = 16 * time.Second // the backoff doubles up to this
	sendOnlyIdle = 5 * time.Minute  // after which an unused send-only group is left
)

// Memberships, bits of JoinState.
const (
	joinFull     = mad.JoinFull
	joinSendOnly = mad.JoinSendOnly
)

// allNodes are the groups that every interface is a member of: nobody reports them (RFC 3376 5, RFC 3810
// 6).
var allNodes = [...]netip.Addr{netip.AddrFrom4([4]byte{224, 0, 0, 1}), netip.AddrFrom16([16]byte{0xff, 2, 15: 1})}

type groupState uint8

const (
	groupJoining groupState = iota
	groupWaiting            // the join failed and will be retried
	groupJoined
)

// group is a multicast group that the interface is, or wants to be, a member of.
type group struct {
	mgid     ib.GID
	addr     netip.Addr // of a group that was joined for one
	want     uint8      // joinFull or joinSendOnly
	have     uint8
	state    groupState
	rec      mad.MCMemberRecord
	to       Destination
	attached ib.LID // MLID; 0: the queue pair does not receive it
	waiting  [][]byte
	again    clock.Time
	backoff  time.Duration
	used     clock.Time
	stays    bool   // the system may not leave it
	request  uint64 // the join in progress; 0: none
	awaiting int    // monitor runs within which a report must arrive; 0: none is expected
}

// sortedGroups returns the groups sorted by MGID, but the broadcast group first, because the others depend
// on it.
func (i *Interface) sortedGroups() []*group {
	list := make([]*group, 0, len(i.groups))
	for _, g := range i.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *group) int {
		switch {
		case a == i.broadcast:
			return -1
		case b == i.broadcast:
			return 1
		}
		return bytes.Compare(a.mgid[:], b.mgid[:])
	})
	return list
}

// member makes the interface a full member of an IP group.
func (i *Interface) member(now clock.Time, addr netip.Addr, stays bool) {
	mgid, ok := groupMGID(addr, i.cfg.Scope, i.pkey)
	if !ok || i.state != Up {
		return
	}
	g := i.groups[mgid]
	if g == nil {
		if g = i.newGroup(now, mgid); g == nil {
			return
		}
	}
	g.addr, g.awaiting, g.stays = addr, 0, g.stays || stays
	if g.want != joinFull {
		g.want, g.backoff = joinFull, 0
		i.join(now, g)
	}
}

// InGroup reports whether the interface is a member of a group, or is becoming one.
func (i *Interface) InGroup(mgid ib.GID) bool {
	g := i.groups[mgid]
	return g != nil && (g.have != 0 || g.request != 0)
}

// newGroup adds a group, which is not joined yet, or returns nil if there is no room.
func (i *Interface) newGroup(now clock.Time, mgid ib.GID) *group {
	if len(i.groups) >= i.cfg.MaxGroups {
		var oldest *group
		for _, g := range i.sortedGroups() {
			if g.want == joinSendOnly && (oldest == nil || g.used < oldest.used) {
				oldest = g
			}
		}
		if oldest == nil {
			i.counters.GroupsRefused++
			return nil
		}
		i.leave(now, oldest)
	}
	g := &group{mgid: mgid, state: groupWaiting, used: now, again: clock.Never}
	i.groups[mgid] = g
	return g
}

// join requests the membership that the interface wants in a group. Other groups get the parameters of the
// broadcast group (RFC 4391 5).
func (i *Interface) join(now clock.Time, g *group) {
	if g.state != groupJoined {
		g.state = groupJoining
	}
	rec := mad.MCMemberRecord{MGID: g.mgid, PortGID: i.port.GID, PKey: i.pkey, JoinState: g.want}
	components := uint64(mad.MemberMGID | mad.MemberPortGID | mad.MemberPKey | mad.MemberJoinState)
	if g != i.broadcast && g.want == joinFull {
		b := &i.broadcast.rec
		rec.QKey, rec.MTU, rec.TrafficClass, rec.Rate, rec.SL, rec.FlowLabel, rec.HopLimit = b.QKey, b.MTU, b.TrafficClass, b.Rate, b.SL,
			b.FlowLabel, b.HopLimit
		rec.MTUSelector, rec.RateSelector = mad.SelectExactly, mad.SelectExactly
		components |= mad.MemberQKey | mad.MemberMTUSelector | mad.MemberMTU | mad.MemberTrafficClass | mad.MemberRateSelector |
			mad.MemberRate |
			mad.MemberSL | mad.MemberFlowLabel | mad.MemberHopLimit
	}
	want := g.want
	delete(i.queries, g.request)
	g.request = i.ask(now, mad.MethodSet, mad.AttrMCMemberRecord, components, &rec, func(now clock.Time,
		m *mad.SA) {
		i.joined(now, g, want, m)
	})
}

// joined handles the answer to a join.
func (i *Interface) joined(now clock.Time, g *group, want uint8, m *mad.SA) {
	g.request = 0
	if i.groups[g.mgid] != g {
		return // it was left meanwhile
	}
	var rec mad.MCMemberRecord
	why := "no answer of the subnet administration"
	if m != nil {
		why = mad.StatusText(m.Status)
		if m.Status == mad.StatusOK {
			var err error
			rec, err = mad.ParseMCMemberRecord(m.Data[:])
			if err == nil && rec.MGID == g.mgid && rec.MLID >= ib.LIDFirstMulticast && rec.MLID != ib.LIDPermissive && rec.MTU.Valid() {
				why = ""
			} else {
				why = "the subnet administration answered with a group that cannot be"
			}
		}
	}
	if why != "" {
		i.refused(now, g, why)
		return
	}
	if g == i.broadcast && g.state == groupJoined && g.rec.QKey != rec.QKey {
		i.disconnect("the subnet has another Q_Key for it")
		i.settle(now, i.port)
		return
	}
	g.rec, g.have, g.state, g.backoff, g.again = rec, g.have|want, groupJoined, 0, clock.Never
	g.to = Destination{QPN: ib.QPMulticast, QKey: rec.QKey, Path: Path{LID: rec.MLID, SL: rec.SL, Rate: rec.Rate, GRH: true, GID: g.mgid,
		FlowLabel: rec.FlowLabel, HopLimit: rec.HopLimit, TrafficClass: rec.TrafficClass}}
	if g.have&joinFull != 0 && g.attached != rec.MLID {
		i.detach(g)
		g.attached = rec.MLID
		i.do(Attach{g.mgid, rec.MLID})
	}
	if g == i.broadcast {
		i.up(now)
	}
	for _, p := range g.waiting {
		i.do(Datagram{g.to, p})
	}
	g.waiting, g.used = nil, now
	if g.want == joinSendOnly {
		i.arm(now.Add(sendOnlyIdle))
	}
}

// refused schedules the next attempt to join a group.
func (i *Interface) refused(now clock.Time, g *group, why string) {
	i.counters.DroppedNoRoute += uint64(len(g.waiting))
	g.waiting, g.state, g.have = nil, groupWaiting, 0
	i.detach(g)
	if g.backoff = min(2*g.backoff, lastBackoff); g.backoff == 0 {
		g.backoff = firstBackoff
	}
	g.again = now.Add(i.spread(g.backoff))
	i.arm(g.again)
	if g != i.broadcast {
		return
	}
	i.do(Event{Kind: JoinFailed, Text: fmt.Sprintf("group %v: %s", g.mgid, why)})
	if i.state == Up {
		i.do(Event{Kind: Disconnected, Text: "the subnet has no broadcast group for it any more"})
		i.state = Joining
	}
}

func (i *Interface) detach(g *group) {
	if g.attached != 0 {
		i.do(Detach{g.mgid, g.attached})
		g.attached = 0
	}
}

// leave ends a membership.
func (i *Interface) leave(now clock.Time, g *group) {
	if g == i.broadcast {
		return
	}
	delete(i.groups, g.mgid)
	delete(i.queries, g.request)
	i.detach(g)
	i.counters.DroppedNoRoute += uint64(len(g.waiting))
	switch {
	case g.have == 0 && g.request == 0:
		return
	case g.have == 0:
		g.have = g.want // the join may have been received
	}
	if len(i.queries) >= maxLeaves {
		i.leaveOnce(g)
		return
	}
	rec := mad.MCMemberRecord{MGID: g.mgid, PortGID: i.port.GID, JoinState: g.have}
	i.ask(now, mad.MethodDelete, mad.AttrMCMemberRecord, mad.MemberMGID|mad.MemberPortGID|mad.MemberJoinState, &rec,
		func(now clock.Time, _ *mad.SA) {
			if again := i.groups[g.mgid]; again != nil && again.state == groupJoined {
				i.join(now, again) // joined again while it was being left, and the leave may have arrived last
			}
		})
}

// leaveOnce tells the subnet that the interface leaves a group, without waiting for an answer.
func (i *Interface) leaveOnce(g *group) {
	i.tid++
	sa := mad.NewSA(mad.MethodDelete, mad.AttrMCMemberRecord, 0, i.tid)
	sa.ComponentMask = mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState
	rec := mad.MCMemberRecord{MGID: g.mgid, PortGID: i.port.GID, JoinState: g.have}
	rec.Append(sa.Data[:0])
	i.request(&sa)
}

// toGroup sends a datagram to a group, which it joins as send-only if the interface is no member. It
// returns the destination if the caller can send at once; otherwise data was queued or dropped.
func (i *Interface) toGroup(now clock.Time, mgid ib.GID, data func() []byte) (Destination, bool) {
	g := i.groups[mgid]
	if g == nil {
		if g = i.newGroup(now, mgid); g == nil {
			i.counters.DroppedNoRoute++
			return Destination{}, false
		}
		g.want = joinSendOnly
		i.join(now, g)
	}
	g.used = now
	switch {
	case g.state == groupJoined:
		return g.to, true
	case g.state == groupWaiting:
		i.counters.DroppedNoRoute++
	case len(g.waiting) >= maxWaiting:
		i.counters.DroppedFull++
	default:
		g.waiting = append(g.waiting, data())
	}
	return Destination{}, false
}

// advanceGroups retries failed joins, and leaves groups to which nothing was sent for long.
func (i *Interface) advanceGroups(now clock.Time) {
	for _, g := range i.sortedGroups() {
		switch {
		case g.state == groupWaiting && g.again <= now:
			if g.want == joinSendOnly {
				delete(i.groups, g.mgid) // the next packet to it joins again
				continue
			}
			if g == i.broadcast || i.state == Up {
				i.join(now, g)
			} else {
				g.again = now.Add(lastBackoff)
				i.arm(g.again)
			}
		case g.state == groupWaiting:
			i.arm(g.again)
		case g.state == groupJoined && g.want == joinSendOnly:
			if end := g.used.Add(sendOnlyIdle); end <= now {
				i.leave(now, g)
			} else {
				i.arm(end)
			}
		}
	}
}
