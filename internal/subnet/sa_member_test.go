package subnet

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Groups reach all their members, each once, and nobody else, however members come and go.
func TestMulticastReachesMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t)
		var s, h []*benchNode
		for range rapid.IntRange(1, 5).Draw(t, "switches") {
			s = append(s, b.node("s", mad.NodeSwitch, 20))
		}
		free := map[*benchNode]uint8{}
		take := func(n *benchNode) uint8 { free[n]++; return free[n] }
		for i := range s {
			for range 2 {
				x := b.node("h", mad.NodeCA, 1)
				h = append(h, x)
				b.link(x, 1, s[i], take(s[i]))
			}
			for range min(i, 1) + rapid.IntRange(0, 1).Draw(t, "more")*min(i, 1) {
				o := s[rapid.IntRange(0, i-1).Draw(t, "to")]
				b.link(s[i], 19-take(s[i]), o, 19-take(o))
			}
		}
		sm := b.start(h[0], Config{})
		b.run(time.Second)
		k := newAsker(b, sm, h[1])
		in := map[*benchNode]bool{}
		gid := ib.GID{0xff, 0x12, 15: 7}
		mlid := ib.LID(0)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			x := rapid.SampledFrom(h).Draw(t, "who")
			rec := k.memberOf(x, gid, mad.JoinFull)
			k.lid = x.ports[1].info.LID
			method := uint8(mad.MethodSet)
			if in[x] {
				method = mad.MethodDelete
			}
			head, data := k.ask(method, mad.AttrMCMemberRecord, createMask, rec.Append(nil))
			if head.Status != 0 {
				t.Fatalf("status %#x", head.Status)
			}
			in[x] = !in[x]
			r, _ := mad.ParseMCMemberRecord(data)
			mlid = r.MLID
			for _, from := range h {
				if !in[from] {
					continue
				}
				got := b.flood(end{from, 1, 0}, mlid)
				for _, to := range h {
					want := 0
					if in[to] && to != from {
						want = 1
					}
					if got[to] != want {
						t.Fatalf("a packet arrived %d times at a host, want %d", got[to], want)
					}
				}
			}
		}
	})
}

// The rules of IBA 15.2.5.17 for joining, making and leaving groups.
func TestMemberRules(t *testing.T) {
	k, _, n := askedBench(t, Config{})
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
		{"the administration's own signature with the scope of the link", mad.MethodSet, createMask, ib.GID{0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, 15: 1}, 1, nil, mad.SARequestInvalid},
		{"reserved flags", mad.MethodSet, createMask, ib.GID{0xff, 0x22, 15: 1}, 1, nil, mad.SARequestInvalid},
		{"other prefix", mad.MethodSet, createMask, ib.GID{0xff, 0x12, 0xa0, 0x1b, 1, 2, 3}, 1, nil, mad.SARequestInvalid},
		{"impossible rate", mad.MethodSet, createMask | mad.MemberRate | mad.MemberRateSelector, own, 1, func(r *mad.MCMemberRecord) { r.RateSelector, r.Rate = 0, 7 }, mad.SARequestInvalid},
		{"impossible MTU", mad.MethodSet, createMask | mad.MemberMTU | mad.MemberMTUSelector, own, 1, func(r *mad.MCMemberRecord) { r.MTUSelector, r.MTU = 0, 5 }, mad.SARequestInvalid},
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
		rec := k.memberOf(n[1], c.gid, c.state)
		if c.change != nil {
			c.change(&rec)
		}
		head, data := k.ask(c.method, mad.AttrMCMemberRecord, c.mask, rec.Append(nil))
		if head.Status != c.status {
			t.Errorf("%s: status %#x, want %#x", c.name, head.Status, c.status)
		}
		if r, _ := mad.ParseMCMemberRecord(data); c.name == "without a name" && !bytes.HasPrefix(r.MGID[:], []byte{0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80}) {
			t.Errorf("the administration named it %v", r.MGID)
		}
	}
}
