package device

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	// offerLease is for how long an address is offered, offerEvery how often that is said again.
	offerLease = 300
	offerEvery = 100 * time.Second
	// The signatures of the RDMA CM in multicast GIDs.
	signature4, signature6 = 0x4001, 0x6001
)

// ask asks the subnet administration. done is called with the answer under the baton; where the request could not be
// made, at once.
func (a *adapter) ask(now clock.Time, r sa.Request, done func(now clock.Time, answer *sa.Answer)) {
	t, err := a.ib.sa.Ask(now, r)
	if err != nil {
		done(now, &sa.Answer{Err: err})
		return
	}
	a.ib.tickets[t] = done
}

// serveSA passes on what the client of the subnet administration has: requests to QP1, answers to who asked.
func (a *adapter) serveSA(now clock.Time) bool {
	p := a.ib
	worked := false
	for n := p.sa.Answers(p.told[:]); n > 0; n = p.sa.Answers(p.told[:]) {
		worked = true
		for i := range p.told[:n] {
			t := p.told[i]
			done := p.tickets[t.Ticket]
			delete(p.tickets, t.Ticket)
			if done != nil {
				done(now, &t)
			}
		}
	}
	for n := p.sa.Transmit(p.asked[:]); n > 0; n = p.sa.Transmit(p.asked[:]) {
		worked = true
		for i := range p.asked[:n] {
			d := &p.asked[i]
			if r := a.gsiRoute(gsiPeer{local: frame.LIDAddr(p.port.LID), remote: frame.LIDAddr(d.DLID), sl: d.SL}); r != nil {
				_ = a.engine.SendDatagram(r, uint32(ib.QPGSI), a.memberKey(ib.PKeyDefault), d.MAD[:]) // a full queue loses it; it is sent again
			}
		}
	}
	return worked
}

// gsiRoute is the route of MADs between two LIDs; nil where these are none.
func (a *adapter) gsiRoute(k gsiPeer) *frame.Route {
	g := &a.gsi
	if r := g.routes[k]; r != nil {
		return r
	}
	from, ok := frame.AddrLID(k.local)
	to, okTo := frame.AddrLID(k.remote)
	if !ok || !okTo || to == 0 {
		return nil
	}
	r := &frame.Route{Src: k.local, Dst: k.remote, DstPort: a.cfg.UDPPort, IB: frame.InfiniBand{DLID: to, SL: k.sl, PathBits: uint8(from & a.ib.mask())}}
	if g := &k.global; *g != (cm.Global{}) {
		r.IB.Global, r.IB.SGID, r.IB.DGID = true, g.Local, g.Remote
		r.TrafficClass, r.FlowLabel, r.HopLimit = g.TrafficClass, g.FlowLabel, 0xff // IBA 13.5.4.3
	}
	if a.prepare(r) != nil {
		return nil
	}
	if len(g.routes) >= maxGSIRoutes {
		clear(g.routes)
	}
	g.routes[k] = r
	return r
}

// offer says at the subnet administration which IP addresses the port has, so that others find it by them.
func (a *adapter) offer(now clock.Time) {
	p := a.ib
	p.renew = clock.Never
	if !p.active() || p.port.SMLID == 0 || len(p.ips) == 0 || !a.enabled {
		return
	}
	p.renew = now.Add(offerEvery)
	for n, ip := range p.offered() {
		a.ask(now, sa.Offer(ip, n, p.gid(), a.memberKey(ib.PKeyDefault), offerLease), func(_ clock.Time, answer *sa.Answer) {
			if answer.Err != nil {
				a.host.log.Warn("the address cannot be found by others", "adapter", a.name, "address", ip, "cause", answer.Err)
			}
		})
	}
}

// withdraw ends what offer said.
func (a *adapter) withdraw(now clock.Time) {
	p := a.ib
	if !p.active() || p.port.SMLID == 0 {
		return
	}
	for n := range p.offered() {
		a.ask(now, sa.Withdraw(n, p.gid(), a.memberKey(ib.PKeyDefault)), func(clock.Time, *sa.Answer) {})
	}
}

// offered are the addresses that there is room for.
func (p *ibPort) offered() []netip.Addr { return p.ips[:min(len(p.ips), sa.MaxATS)] }

// ibGroup is a multicast group that programs take part in through the CM.
type ibGroup struct {
	rec   mad.MCMemberRecord
	known bool
	state uint8 // of the membership
	uses  int
	wait  []func(now clock.Time, rec *mad.MCMemberRecord, err error)
}

// mgid is the GID of a multicast group: itself where it has the form of one.
func (a *adapter) mgid(group netip.Addr) ib.GID {
	if group.Is6() {
		return ib.GID(group.As16())
	}
	return a.ipMGID(group)
}

// ipMGID is the group that the RDMA CM has for an IP address: the form of RFC 4391 with a signature of its own.
// An IPv6 address that is such a group, IPoIB's, or one that a subnet administration named, stays what it is.
func (a *adapter) ipMGID(group netip.Addr) ib.GID {
	if group.Is6() {
		g := ib.GID(group.As16())
		switch binary.BigEndian.Uint16(g[2:]) {
		case 0x401b, 0x601b, 0xa01b, signature4, signature6:
			return g
		}
	}
	key := a.memberKey(ib.PKeyDefault) | 0x8000
	g := ib.GID{0xff, 0x12, signature4 >> 8, signature4 & 0xff, byte(key >> 8), byte(key)}
	if group.Is4() {
		v := group.As4()
		copy(g[12:], v[:])
		g[12] &= 0x0f
		return g
	}
	v := group.As16()
	binary.BigEndian.PutUint16(g[2:], signature6)
	copy(g[6:], v[6:])
	return g
}

// joinIB makes the port a member of a group, and calls done with it.
func (a *adapter) joinIB(now clock.Time, mgid ib.GID, state uint8, done func(now clock.Time, rec *mad.MCMemberRecord, err error)) {
	p := a.ib
	g := p.groups[mgid]
	if g != nil && g.known && g.state&state != 0 {
		g.uses++
		done(now, &g.rec, nil)
		return
	}
	if g == nil {
		g = &ibGroup{}
		p.groups[mgid] = g
	}
	g.uses++
	g.state |= state
	g.wait = append(g.wait, done)
	if len(g.wait) == 1 {
		a.askJoin(now, mgid, g)
	}
}

func (a *adapter) askJoin(now clock.Time, mgid ib.GID, g *ibGroup) {
	a.ask(now, sa.Join(a.membership(mgid, g)), func(now clock.Time, answer *sa.Answer) {
		rec, err := joined(answer)
		wait := g.wait
		g.rec, g.known, g.wait = rec, err == nil, nil
		if err != nil {
			g.uses -= len(wait)
			if g.uses <= 0 && a.ib.groups[mgid] == g {
				delete(a.ib.groups, mgid)
			}
		}
		for _, done := range wait {
			done(now, &rec, err)
		}
	})
}

// leaveIB ends one membership.
func (a *adapter) leaveIB(now clock.Time, mgid ib.GID) {
	g := a.ib.groups[mgid]
	if g == nil {
		return
	}
	if g.uses--; g.uses > 0 {
		return
	}
	delete(a.ib.groups, mgid)
	if g.known {
		a.ask(now, sa.Leave(mgid, a.ib.gid(), g.state), func(clock.Time, *sa.Answer) {})
	}
}

// joinAgainIB takes part in the groups anew: a subnet manager that asks for it, or another one, may know of none.
func (a *adapter) joinAgainIB(now clock.Time) {
	for mgid, g := range a.ib.groups {
		if !g.known {
			continue // that is being asked for
		}
		a.ask(now, sa.Join(a.membership(mgid, g)), func(_ clock.Time, answer *sa.Answer) {
			rec, err := joined(answer)
			if err != nil {
				a.host.log.Warn("the port is no member of its group any more", "adapter", a.name, "group", netip.AddrFrom16(mgid), "cause", err)
				return
			}
			g.rec = rec
		})
	}
}

func (a *adapter) membership(mgid ib.GID, g *ibGroup) mad.MCMemberRecord {
	return mad.MCMemberRecord{MGID: mgid, PortGID: a.ib.gid(), JoinState: g.state, PKey: a.memberKey(ib.PKeyDefault), QKey: datagramQKey}
}

// joined is the group that an answer tells of.
func joined(answer *sa.Answer) (mad.MCMemberRecord, error) {
	if answer.Err != nil {
		return mad.MCMemberRecord{}, answer.Err
	}
	rec, err := mad.ParseMCMemberRecord(answer.Data[:])
	if err == nil && rec.MLID < ib.LIDFirstMulticast {
		err = &sa.StatusError{Status: mad.SARequestInvalid}
	}
	return rec, err
}

// joinedIB is the event of a group that was joined, or not.
func (o *cmid) joinedIB(group command.Addr, mgid ib.GID, rec *mad.MCMemberRecord, err error) command.Event {
	e := command.Event{
		Type: command.EventMulticastJoined, Object: o.handle, Context: o.context, Adapter: o.adapter.index,
		Remote: command.Endpoint{Addr: group}, Local: command.Endpoint{Addr: command.Addr(mgid)},
		Param: command.ConnParam{QPN: uint32(ib.QPMulticast), QKey: datagramQKey},
	}
	if err != nil {
		e.Type, e.Status = command.EventMulticastError, uint32(pathError(netip.AddrFrom16(mgid), err).Code)
		return e
	}
	e.LID, e.SL, e.Path, e.Param.QKey = uint16(rec.MLID), rec.SL, command.PathGlobal, rec.QKey
	return e
}

// leaveFabric takes back what the port has said at the subnet administration, when the adapter is disabled.
func (a *adapter) leaveFabric(now clock.Time) {
	a.withdraw(now)
	a.ib.renew = clock.Never
	for mgid, g := range a.ib.groups {
		if g.known {
			a.ask(now, sa.Leave(mgid, a.ib.gid(), g.state), func(clock.Time, *sa.Answer) {})
		}
	}
	clear(a.ib.groups)
	clear(a.ib.paths)
	clear(a.ib.names)
}
