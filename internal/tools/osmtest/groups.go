package osmtest

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// most is how many groups -M 3 creates.
const most = 1 << 14

// groups creates, joins and leaves groups in all the ways that are allowed, and in those that are not. The
// names contain the compliance statements of IBA 15.2.5.17.
func (t *test) groups() error {
	const (
		join   = mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState
		create = join | mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel | mad.MemberTrafficClass
		mtu    = mad.MemberMTU | mad.MemberMTUSelector
		rate   = mad.MemberRate | mad.MemberRateSelector
		life   = mad.MemberLife | mad.MemberLifeSelector
	)
	set, drop, bad, few := uint8(mad.MethodSet), uint8(mad.MethodDelete), uint16(mad.SARequestInvalid), uint16(mad.SAInsufficientComponents)
	own := t.ownGID()
	named := func(a, b, c, d byte) ib.GID {
		return ib.GID{a, b, c, d, own[0], own[1], 12: 0x12, 13: 0x34, 14: 0x56, 15: 0x78}
	}
	first, local := named(0xff, 0x12, 0xa0, 0x1c), named(0xff, 0x12, 0xa0, 0x1b)
	for _, c := range []struct {
		name   string
		method uint8
		mask   uint64
		gid    ib.GID
		state  uint8
		change func(*mad.MCMemberRecord)
		status uint16
	}{
		{"join without a PortGID (o15.0.1.3)", set, join &^ mad.MemberPortGID, first, 1, nil, few},
		{"join a group that is not there (o15.0.1.13)", set, join, first, 1, nil, few},
		{"make one without a Q_Key (o15.0.1.3)", set, create &^ mad.MemberQKey, first, 1, nil, few},
		{"make one without an SL (o15.0.1.3)", set, create &^ mad.MemberSL, first, 1, nil, few},
		{"an impossible rate (o15.0.1.8)", set, create | rate, first, 1, func(r *mad.MCMemberRecord) {
			r.RateSelector,
				r.Rate = mad.SelectGreater, 63
		}, bad},
		{"an MTU above all (o15.0.1.8)", set, create | mtu, first, 1, func(r *mad.MCMemberRecord) {
			r.MTUSelector,
				r.MTU = mad.SelectGreater, 5
		}, bad},
		{"an invalid MTU (o15.0.1.8)", set, create | mtu, first, 1, func(r *mad.MCMemberRecord) {
			r.MTUSelector, r.MTU = mad.SelectExactly,
				63
		}, bad},
		{"a prefix that is not a group's (o15.0.1.6)", set, create, named(0xfa, 0x12, 0xa0, 0x1c), 1, nil, bad},
		{"flags that are reserved (o15.0.1.6)", set, create, named(0xff, 0x22, 0xa0, 0x1c), 1, nil, bad},
		{"the administration's own signature in the scope of the link (o15.0.1.6)", set, create, local, 1, nil, bad},
		{"created by a port that does not receive (o15.0.1.14)", set, create, first, 4, nil, bad},
		{"made without a state (o15.0.1.9)", set, create, first, 0, nil, bad},
		{"of a port that is not there", set, create, first, 1, func(r *mad.MCMemberRecord) { r.PortGID[14] ^= 0x5a }, mad.SAInvalidGID},
		{"make a group (o15.0.1.4)", set, create, first, 1, nil, 0},
		{"join it again (o15.0.1.11)", set, join, first, 1, nil, 0},
		{"join it with another Q_Key (o15.0.1.12)", set, join | mad.MemberQKey, first, 1, func(r *mad.MCMemberRecord) { r.QKey = 0x7777 },
			bad},
		{"join it with an MTU that it does not have (o15.0.1.12)", set, join | mtu, first, 1,
			func(r *mad.MCMemberRecord) { r.MTUSelector, r.MTU = mad.SelectLess, 1 }, bad},
		{"be more than a full member (o15.0.1.11)", set, join, first, 6, nil, 0},
		{"leave a part (o15.0.1.14)", drop, join, first, 4, nil, 0},
		{"leave what it is not (o15.0.1.14)", drop, join, first, 4, nil, bad},
		{"leave another part (o15.0.1.14)", drop, join, first, 2, nil, 0},
		{"leave", drop, join, first, 1, nil, 0},
		{"leave once more (o15.0.1.14)", drop, join, first, 1, nil, bad},
		{"any MTU, rate and life", set, create | mtu | rate | life, first, 1, func(r *mad.MCMemberRecord) {
			r.MTUSelector, r.MTU, r.RateSelector, r.Rate, r.LifeSelector = mad.SelectGreater, 1, mad.SelectGreater, 2, mad.SelectGreater
		}, 0},
		{"leave that, too", drop, join, first, 1, nil, 0},
		{"leave a group of others without being in it", drop, join, named(0xff, 0x12, 0x40, 0x1b), 1, nil, bad},
	} {
		r := t.member(c.gid, c.state)
		if c.change != nil {
			c.change(&r)
		}
		var or uint16
		if c.status == mad.SAInvalidGID {
			or = bad // OpenSM says so
		}
		if _, err := t.check(rule{name: c.name, or: or, method: c.method, attr: mad.AttrMCMemberRecord, mask: c.mask, data: r.Append(nil),
			status: c.status}); err != nil {
			return err
		}
	}
	if err := t.namedByAdministration(create, join); err != nil {
		return err
	}
	if t.o.multicast < 3 {
		return nil
	}
	return t.fill(create, join)
}

// member returns a request to be in a group.
func (t *test) member(gid ib.GID, state uint8) mad.MCMemberRecord {
	return mad.MCMemberRecord{MGID: gid, PortGID: t.ownGID(), QKey: 0x11, PKey: ib.PKeyDefault, JoinState: state,
		MTUSelector: mad.SelectLess, MTU: 5}
}

// namedByAdministration creates groups without a name: each must get a unique one (o15.0.1.5).
func (t *test) namedByAdministration(create, join uint64) error {
	seen := map[ib.GID]bool{}
	for range 8 {
		r := t.member(ib.GID{}, 1)
		a, err := t.check(rule{name: "make a group without a name (o15.0.1.5)", method: mad.MethodSet, attr: mad.AttrMCMemberRecord,
			mask: create, data: r.Append(nil)})
		if err != nil {
			return err
		}
		got, err := mad.ParseMCMemberRecord(a.Data[:])
		if err != nil {
			return err
		}
		if got.MGID[0] != 0xff || got.MGID[2] != 0xa0 || got.MGID[3] != 0x1b || seen[got.MGID] || got.MLID < ib.LIDFirstMulticast {
			t.wrong("the group without a name is %v, LID %#x (o15.0.1.5)", got.MGID, got.MLID)
		}
		seen[got.MGID] = true
	}
	return t.leaveAll(seen, join)
}

func (t *test) leaveAll(groups map[ib.GID]bool, join uint64) error {
	for g := range groups {
		r := t.member(g, 1)
		if _, err := t.check(rule{name: "leave", method: mad.MethodDelete, attr: mad.AttrMCMemberRecord, mask: join,
			data: r.Append(nil)}); err != nil {
			return err
		}
	}
	return nil
}

// fill creates groups until there are no LIDs left, and leaves them all.
func (t *test) fill(create, join uint64) error {
	made := map[ib.GID]bool{}
	for i := range most {
		r := t.member(ib.GID{0xff, 0x12, 0xa0, 0x1c, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}, 1)
		a, err := t.ask(mad.MethodSet, mad.AttrMCMemberRecord, create, r.Append(nil))
		if err != nil {
			return fmt.Errorf("creating group %d: %w", i+1, err)
		}
		if a.Status == mad.SANoResources {
			break
		}
		if a.Status != mad.StatusOK {
			t.wrong("making group %d: %s", i+1, mad.StatusText(a.Status))
			break
		}
		made[r.MGID] = true
	}
	t.say(logInfo, "%d groups were made", len(made))
	return t.leaveAll(made, join)
}
