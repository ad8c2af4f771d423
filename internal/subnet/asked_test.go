package subnet

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/subnet/administration/asker"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// seat connects an asking host with the manager of a bench.
type seat struct {
	b  *bench
	sm *SM
}

func (s seat) Send(from ib.LID, m *mad.SA) {
	p := Packet{LID: from, QPN: 1, LocalQPN: 1}
	m.Append(p.MAD[:0])
	s.sm.Receive(s.b.now, &p)
}

func (s seat) Run(d time.Duration) { s.b.run(d) }

// newAsker returns an asker at node n that asks the manager sm.
func newAsker(b *bench, sm *SM, n *benchNode) *asker.Asker {
	k := asker.New(b.t, seat{b, sm}, n.ports[1].info.LID)
	others := b.byGMP
	b.byGMP = func(p *Packet, from *benchNode) {
		if k.Take(p.LID, p.MAD[:]); others != nil {
			others(p, from)
		}
	}
	return k
}

// askedBench returns the small bench with a manager at the first host and an asker at the second.
func askedBench(t testing.TB, cfg Config) (*asker.Asker, *SM, *bench, []*benchNode) {
	b, n := smallBench(t)
	sm := b.start(n[0], cfg)
	b.run(time.Second)
	b.mustBeUp()
	return newAsker(b, sm, n[1]), sm, b, n
}

// TestPathsArrive: every path that the administration returns leads to its destination.
func TestPathsArrive(t *testing.T) {
	k, _, b, n := askedBench(t, Config{LMC: 1})
	n[4].ports[7].info.NeighborMTU = 4 // does not matter: what the manager knows counts
	_, data := k.Ask(mad.MethodGetTable, mad.AttrPathRecord, 0, nil)
	if len(data) == 0 {
		t.Error("the answer contains no paths")
	}
	for ; len(data) >= mad.PathRecordLen; data = data[mad.PathRecordLen:] {
		r, err := mad.ParsePathRecord(data)
		if err != nil || r.MTU != 5 {
			t.Fatalf("path record %+v (%v), want MTU 5 (4096)", r, err)
		}
		from, to := b.ownerOf(r.SLID), b.ownerOf(r.DLID)
		if got, ok := b.send(from, r.DLID); from.n != to.n && (!ok || got.n != to.n || got.p != to.p) {
			t.Fatalf("from %s to %s: arrived at %v", from.n.name, to.n.name, got.n)
		}
	}
}

func (b *bench) ownerOf(lid ib.LID) end {
	for _, e := range b.ends() {
		if i := e.n.ports[e.p].info; lid >= i.LID && lid < i.LID+1<<i.LMC {
			return e
		}
	}
	return end{}
}

// flood sends a multicast packet from an end port through the tables and returns how often it arrives at each host.
func (b *bench) flood(from end, mlid ib.LID) map[*benchNode]int {
	got := map[*benchNode]int{}
	type hop struct {
		n  *benchNode
		in uint8
	}
	queue := []hop{{from.n.ports[from.p].peer, from.n.ports[from.p].far}}
	for steps := 0; len(queue) > 0; steps++ {
		if steps > 1000 {
			b.t.Fatal("a multicast packet goes in circles")
		}
		h := queue[0]
		queue = queue[1:]
		if h.n.info.NodeType != mad.NodeSwitch {
			got[h.n]++
			continue
		}
		index := uint32(mlid - 0xc000)
		for p := range h.n.ports {
			mask := h.n.mft[uint32(p/16)<<28|index/32][index%32]
			if mask>>(p%16)&1 == 0 || uint8(p) == h.in {
				continue
			}
			if p == 0 {
				got[h.n]++
			} else if h.n.ports[p].peer != nil {
				queue = append(queue, hop{h.n.ports[p].peer, h.n.ports[p].far})
			}
		}
	}
	return got
}

func gidOf(guid uint64) (g ib.GID) {
	for i := range 8 {
		g[i], g[8+i] = byte(uint64(DefaultPrefix)>>(56-8*i)), byte(guid>>(56-8*i))
	}
	return g
}

// createMask is the components of requests that make groups (IBA 15.2.5.17.2).
const createMask = mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState | mad.MemberQKey | mad.MemberPKey | mad.MemberSL |
	mad.MemberFlowLabel | mad.MemberTrafficClass

// memberOf returns a request to have a node in a group.
func memberOf(n *benchNode, group ib.GID, state uint8) mad.MCMemberRecord {
	return mad.MCMemberRecord{MGID: group, PortGID: gidOf(n.info.PortGUID + 1), JoinState: state, PKey: 0xffff, QKey: 5}
}
