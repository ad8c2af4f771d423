package subnet

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestMulticastReachesMembers: multicast packets reach every member of their group exactly once, and nobody else,
// however members join and leave.
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
			rec := memberOf(x, gid, mad.JoinFull)
			k.LID = x.ports[1].info.LID
			method := uint8(mad.MethodSet)
			if in[x] {
				method = mad.MethodDelete
			}
			head, data := k.Ask(method, mad.AttrMCMemberRecord, createMask, rec.Append(nil))
			if head.Status != 0 {
				t.Fatalf("the request has status %#x, want 0", head.Status)
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
