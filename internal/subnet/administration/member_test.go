package administration

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestMemberRules: the rules of IBA 15.2.5.17 for joining, making and leaving groups.
func TestMemberRules(t *testing.T) {
	b, h := plug(t, Config{})
	own := ib.GID{0xff, 0x12, 15: 9}
	for _, c := range []struct {
		name   string
		method uint8
		mask   uint64
		gid    ib.GID
		state  uint8
		change func(*mad.MCMemberRecord)
		status uint16
	}{
		{"too few components to join", mad.MethodSet, mad.MemberMGID, broadcast, 1, nil, mad.SAInsufficientComponents},
		{"too few to make one", mad.MethodSet, joinMask, own, 1, nil, mad.SAInsufficientComponents},
		{"no state", mad.MethodSet, joinMask, broadcast, 0, nil, mad.SARequestInvalid},
		{"made by a sender", mad.MethodSet, createMask, own, 4, nil, mad.SARequestInvalid},
		{"unknown port", mad.MethodSet, joinMask, broadcast, 1, func(r *mad.MCMemberRecord) { r.PortGID[15] = 77 }, mad.SAInvalidGID},
		{"scope 0", mad.MethodSet, createMask, ib.GID{0xff, 0x10, 15: 1}, 1, nil, mad.SARequestInvalid},
		{"scope 15", mad.MethodSet, createMask, ib.GID{0xff, 0x1f, 15: 1}, 1, nil, 0},
		{"the administration's own signature with the scope of the link", mad.MethodSet, createMask,
			ib.GID{0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, 15: 1}, 1, nil, mad.SARequestInvalid},
		{"reserved flags", mad.MethodSet, createMask, ib.GID{0xff, 0x22, 15: 1}, 1, nil, mad.SARequestInvalid},
		{"other prefix", mad.MethodSet, createMask, ib.GID{0xff, 0x12, 0xa0, 0x1b, 1, 2, 3}, 1, nil, mad.SARequestInvalid},
		{"impossible rate", mad.MethodSet, createMask | mad.MemberRate | mad.MemberRateSelector, own, 1,
			func(r *mad.MCMemberRecord) { r.RateSelector, r.Rate = 0, 7 }, mad.SARequestInvalid},
		{"impossible MTU", mad.MethodSet, createMask | mad.MemberMTU | mad.MemberMTUSelector, own, 1,
			func(r *mad.MCMemberRecord) { r.MTUSelector, r.MTU = 0, 5 }, mad.SARequestInvalid},
		{"partition of others", mad.MethodSet, createMask, own, 1, func(r *mad.MCMemberRecord) { r.PKey = 0x8005 }, mad.SARequestInvalid},
		{"wrong Q_Key", mad.MethodSet, joinMask | mad.MemberQKey, broadcast, 1, nil, mad.SARequestInvalid},
		{"join", mad.MethodSet, joinMask, broadcast, 1, nil, 0},
		{"join more", mad.MethodSet, joinMask, broadcast, 4, nil, 0},
		{"leave what it is not", mad.MethodDelete, joinMask, broadcast, 2, nil, mad.SARequestInvalid},
		{"leave a part", mad.MethodDelete, joinMask, broadcast, 1, nil, 0},
		{"leave", mad.MethodDelete, joinMask, broadcast, 4, nil, 0},
		{"leave again", mad.MethodDelete, joinMask, broadcast, 4, nil, mad.SARequestInvalid},
		{"without a name", mad.MethodSet, createMask, ib.GID{}, 1, nil, 0},
	} {
		rec := b.member(h[1], c.gid, c.state)
		if c.change != nil {
			c.change(&rec)
		}
		head, data := b.Ask(c.method, mad.AttrMCMemberRecord, c.mask, rec.Append(nil))
		if head.Status != c.status {
			t.Errorf("%s: status %#x, want %#x", c.name, head.Status, c.status)
		}
		if r, _ := mad.ParseMCMemberRecord(data); c.name == "without a name" && !bytes.HasPrefix(r.MGID[:],
			[]byte{0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80}) {
			t.Errorf("the administration gave the group the MGID %v", r.MGID)
		}
	}
}
