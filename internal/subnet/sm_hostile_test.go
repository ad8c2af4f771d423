package subnet

import (
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestHostileNodes: each node that lies is reported precisely, and the rest of the subnet comes up.
func TestHostileNodes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		plant      func(b *bench, n []*benchNode)
		whole      bool // all hosts are connected nevertheless
	}{
		{"silence", "the link of switch 0x0000000000000500 port 2 (\"s1\") is up, but the node behind it does not answer",
			func(b *bench, n []*benchNode) { n[1].silent = true }, true},
		{"no ports", "a number of ports that is not 1 to 254", func(b *bench, n []*benchNode) { n[1].info.NumPorts = 0 }, false},
		{"255 ports", "a number of ports that is not 1 to 254", func(b *bench, n []*benchNode) { n[1].info.NumPorts = 255 }, false},
		{"no GUID", "its GUID is 0", func(b *bench, n []*benchNode) { n[1].info.NodeGUID = 0 }, false},
		{"type", "it is of node type 9", func(b *bench, n []*benchNode) { n[1].info.NodeType = 9 }, false},
		{"duplicate host", "duplicate GUID", func(b *bench, n []*benchNode) {
			n[1].info.NodeGUID, n[1].info.PortGUID = n[2].info.NodeGUID, n[2].info.PortGUID
		}, false},
		{"duplicate port GUID", "both have port GUID", func(b *bench, n []*benchNode) { n[1].info.PortGUID = n[2].info.PortGUID }, false},
		{"duplicate switch", "duplicate GUID", func(b *bench, n []*benchNode) {
			s3 := b.node("s3", mad.NodeSwitch, 8)
			s3.info.NodeGUID, s3.info.PortGUID = n[5].info.NodeGUID, n[5].info.PortGUID
			b.link(s3, 1, n[4], 5)
		}, false},
		{"loopback plug", "is linked to itself", func(b *bench, n []*benchNode) { b.link(n[4], 6, n[4], 6) }, true},
		{"endless P_Keys", "a partition table with more than 1024 entries", func(b *bench, n []*benchNode) {
			n[1].info.PartitionCap = 65535
			n[1].lie = func(s *mad.SMP) {
				if s.AttributeID == mad.AttrPKeyTable {
					for i := range s.Data {
						s.Data[i] = 0x11
					}
				}
			}
		}, true},
		{"refuses", "refuses Get(PortInfo) with modifier 0x1, status 0x001c", func(b *bench, n []*benchNode) {
			n[1].lie = func(s *mad.SMP) {
				if s.AttributeID == mad.AttrPortInfo {
					s.SetStatus(mad.StatusInvalidField, true)
				}
			}
		}, false},
		{"does not keep its LID", "was given LID", func(b *bench, n []*benchNode) {
			lid := byte(200)
			n[1].lie = func(s *mad.SMP) {
				if s.AttributeID == mad.AttrPortInfo {
					lid++
					s.Data[17] = lid
				}
			}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, n := smallBench(t)
			c.plant(b, n)
			b.start(n[0], Config{})
			b.run(3 * time.Second)
			found := false
			for _, p := range b.texts(EventProblem) {
				found = found || strings.Contains(p, c.want)
			}
			if !found {
				t.Errorf("problems %q, want %q", b.texts(EventProblem), c.want)
			}
			if c.whole {
				b.mustBeUp()
				b.check(n[0])
			}
			if got, ok := b.send(end{n[0], 1, 0}, n[2].ports[1].info.LID); c.name != "duplicate host" && c.name != "duplicate port GUID" &&
				c.name != "duplicate switch" && (!ok || got.n != n[2]) {
				t.Errorf("h1 does not reach h3")
			}
		})
	}
}

// TestEndlessFabric: a node that shows a new switch behind each of its ports for ever ends the search at the maximum
// length of directed routes.
func TestEndlessFabric(t *testing.T) {
	b, n := smallBench(t)
	guid := uint64(1 << 40)
	b.link(n[4], 5, b.node("liar", mad.NodeSwitch, 3), 1)
	liar := b.nodes[len(b.nodes)-1]
	liar.ports[2].peer, liar.ports[2].far = liar, 1 // what goes out comes in again
	b.train(liar, 2)
	liar.lie = func(s *mad.SMP) {
		if s.AttributeID == mad.AttrNodeInfo {
			guid++
			i := liar.info
			i.NodeGUID, i.PortGUID, i.LocalPortNum = guid, guid, 1
			i.Append(s.Data[:0])
		}
	}
	b.start(n[0], Config{})
	b.run(20 * time.Second)
	if p := strings.Join(b.texts(EventProblem), "\n"); !strings.Contains(p, "duplicate GUID") && !strings.Contains(p, "63 hops") {
		t.Errorf("problems: %s", p)
	}
	if got, ok := b.send(end{n[0], 1, 0}, n[2].ports[1].info.LID); !ok || got.n != n[2] {
		t.Error("h1 does not reach h3")
	}
}

// TestLostMADs: lost MADs are asked for again, so that a subnet comes up with a quarter of them lost.
func TestLostMADs(t *testing.T) {
	b, n := smallBench(t)
	i := 0
	b.lose = func() bool { i++; return i%3 == 0 && i%4 != 0 }
	b.start(n[0], Config{Retries: 12, Sweep: time.Second})
	b.run(30 * time.Second)
	b.mustBeUp()
	b.check(n[0])
}

// TestEndlessMulticastTables: a switch that claims to forward every multicast LID to all of its ports costs a manager
// that takes over a bounded number of requests: the subnet comes up, and groups can be made.
func TestEndlessMulticastTables(t *testing.T) {
	b, n := smallBench(t)
	b.start(n[0], Config{})
	b.run(time.Second)
	delete(b.sms, n[0])
	n[5].sw.MulticastFDBCap = 0xffff
	n[5].lie = func(s *mad.SMP) {
		if s.AttributeID == mad.AttrMulticastForwardingTable && s.Method == mad.MethodGetResp {
			for i := range s.Data {
				s.Data[i] = 0xff
			}
		}
	}
	b.log = nil
	before := b.count
	sm := b.start(n[1], Config{})
	b.run(5 * time.Second)
	b.mustBeUp()
	if b.count-before > 20_000 {
		t.Errorf("%d requests, want at most 20000", b.count-before)
	}
	k := newAsker(b, sm, n[1])
	rec := memberOf(n[1], ib.GID{0xff, 0x12, 15: 7}, mad.JoinFull)
	if head, _ := k.Ask(mad.MethodSet, mad.AttrMCMemberRecord, createMask, rec.Append(nil)); head.Status != 0 {
		t.Errorf("a group cannot be made: status %#x", head.Status)
	}
}
