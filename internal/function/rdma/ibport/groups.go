package ibport

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// The signatures of the RDMA CM in multicast GIDs.
const signature4, signature6 = 0x4001, 0x6001

// group is a multicast group that programs have joined through the CM.
type group struct {
	rec   mad.MCMemberRecord
	known bool
	state uint8 // of the membership
	uses  int
	wait  []func(now clock.Time, rec *mad.MCMemberRecord, err error)
}

// group returns what is known of a group, nil if it was not joined; asked is also true while joining is in
// progress.
func (p *Port) group(mgid ib.GID) (rec *mad.MCMemberRecord, asked bool) {
	g := p.groups[mgid]
	if g == nil || !g.known {
		return nil, g != nil
	}
	return &g.rec, true
}

// MGID returns the GID of a multicast group: an IPv6 address is one already.
func (p *Port) MGID(group netip.Addr) ib.GID {
	if group.Is6() {
		return ib.GID(group.As16())
	}
	return p.IPMGID(group)
}

// IPMGID returns the group that the RDMA CM uses for an IP address: the format of RFC 4391 with its own
// signature. An IPv6 address that already is such a group, an IPoIB group, or a group named by a subnet
// administration stays unchanged.
func (p *Port) IPMGID(group netip.Addr) ib.GID {
	if group.Is6() {
		g := ib.GID(group.As16())
		switch binary.BigEndian.Uint16(g[2:]) {
		case 0x401b, 0x601b, 0xa01b, signature4, signature6:
			return g
		}
	}
	key := p.Main() | 0x8000
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

// Join makes the port a member of a group, and calls done with the group's record.
func (p *Port) Join(now clock.Time, mgid ib.GID, state uint8, done func(now clock.Time, rec *mad.MCMemberRecord, err error)) {
	g := p.groups[mgid]
	if g != nil && g.known && g.state&state != 0 {
		g.uses++
		done(now, &g.rec, nil)
		return
	}
	if g == nil {
		g = &group{}
		p.groups[mgid] = g
	}
	g.uses++
	g.state |= state
	g.wait = append(g.wait, done)
	if len(g.wait) == 1 {
		p.askJoin(now, mgid, g)
	}
}

// SendTo makes the port a sender to the group of an address. It stays one until Depart.
func (p *Port) SendTo(now clock.Time, group netip.Addr, done func(error)) {
	for _, mgid := range []ib.GID{p.MGID(group), p.IPMGID(group)} {
		if g, _ := p.group(mgid); g != nil {
			done(nil)
			return
		}
	}
	p.Join(now, p.IPMGID(group), mad.JoinSendOnlyFull, func(_ clock.Time, _ *mad.MCMemberRecord, err error) { done(err) })
}

func (p *Port) askJoin(now clock.Time, mgid ib.GID, g *group) {
	p.Ask(now, sa.Join(p.membership(mgid, g)), func(now clock.Time, answer *sa.Answer) {
		rec, err := joined(answer)
		wait := g.wait
		g.rec, g.known, g.wait = rec, err == nil, nil
		if err != nil {
			g.uses -= len(wait)
			if g.uses <= 0 && p.groups[mgid] == g {
				delete(p.groups, mgid)
			}
		}
		for _, done := range wait {
			done(now, &rec, err)
		}
	})
}

// Leave ends one membership.
func (p *Port) Leave(now clock.Time, mgid ib.GID) {
	g := p.groups[mgid]
	if g == nil {
		return
	}
	if g.uses--; g.uses > 0 {
		return
	}
	delete(p.groups, mgid)
	if g.known {
		p.Ask(now, sa.Leave(mgid, p.GID(), g.state), func(clock.Time, *sa.Answer) {})
	}
}

// joinAgain rejoins the groups: a subnet manager that asks for it, or a new one, may not know the
// memberships.
func (p *Port) joinAgain(now clock.Time) {
	for mgid, g := range p.groups {
		if !g.known {
			continue // a request is already in progress
		}
		p.Ask(now, sa.Join(p.membership(mgid, g)), func(_ clock.Time, answer *sa.Answer) {
			rec, err := joined(answer)
			if err != nil {
				p.log.Warn("the port is no member of its group any more", "group", netip.AddrFrom16(mgid), "cause", err)
				return
			}
			g.rec = rec
		})
	}
}

func (p *Port) membership(mgid ib.GID, g *group) mad.MCMemberRecord {
	return mad.MCMemberRecord{MGID: mgid, PortGID: p.GID(), JoinState: g.state, PKey: p.Main(), QKey: ib.QKeyRDMAUDP}
}

// joined returns the group that an answer describes.
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
