package subnet_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// join makes an adapter join a group as a full member, at the subnet manager that its port knows, and returns the
// multicast LID.
func (w *world) join(node int, gid ib.GID) ib.LID {
	w.t.Helper()
	at := fabric.Place{Node: node, Port: 1}
	info := w.f.PortInfo(at)
	rec := mad.MCMemberRecord{MGID: gid, PortGID: w.gid(node), PKey: ib.PKeyDefault, JoinState: mad.JoinFull}
	w.tid++
	m := mad.NewSA(mad.MethodSet, mad.AttrMCMemberRecord, 0, w.tid)
	m.ComponentMask = mad.MemberMGID | mad.MemberPortGID | mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel |
		mad.MemberTrafficClass | mad.MemberJoinState
	copy(m.Data[:], rec.Append(nil))
	got := mad.SA{}
	got.Status = 0xffff
	w.client = func(to fabric.Place, q *fabric.Packet) {
		if a, err := mad.ParseSA(q.MAD[:]); err == nil && to == at && a.TransactionID == w.tid {
			got = a
		}
	}
	p := subnet.Packet{LID: info.MasterSMLID, QPN: 1, LocalQPN: 1}
	m.Append(p.MAD[:0])
	w.carry(at, &p)
	w.run(time.Millisecond)
	if got.Status != mad.StatusOK {
		w.t.Fatalf("adapter %d joins %v: status %#x: %v", node, gid, got.Status, w.log[max(0, len(w.log)-10):])
	}
	r, _ := mad.ParseMCMemberRecord(got.Data[:])
	return r.MLID
}

// gid returns the first GID of the first port of an adapter.
func (w *world) gid(node int) (g ib.GID) {
	a, ok := w.get(fabric.Place{Node: node, Port: 1}, w.f.PortInfo(fabric.Place{Node: node, Port: 1}).LID, mad.AttrNodeInfo, 0, 0)
	i, err := mad.ParseNodeInfo(a.Data[:])
	if !ok || err != nil {
		w.t.Fatalf("adapter %d does not answer", node)
	}
	binary.BigEndian.PutUint64(g[:], subnet.DefaultPrefix)
	binary.BigEndian.PutUint64(g[8:], i.PortGUID)
	return g
}

// multicastTables returns the multicast forwarding tables of all switches.
func (w *world) multicastTables(top *topology.Topology, from fabric.Place) (b []byte) {
	for i := range top.Nodes {
		if top.Nodes[i].Type != mad.NodeSwitch {
			continue
		}
		a, ok := w.get(from, w.f.PortInfo(fabric.Place{Node: i, Port: 0}).LID, mad.AttrMulticastForwardingTable, 0, 0)
		if !ok {
			w.t.Fatalf("switch %d does not return its table", i)
		}
		b = append(b, a.Data[:]...)
	}
	return b
}

// TestTakeoverUnderMulticast: while the standby takes over from a dead master, group members get every packet: the
// tables stay until the members have joined again, and the groups keep their multicast LIDs, whoever joins first. A
// group that nobody joins again is removed in time.
func TestTakeoverUnderMulticast(t *testing.T) {
	top, w := smallTree(t)
	poll := subnet.Config{PollInterval: time.Second, PollRetries: 2, Sweep: 10 * time.Second}
	high := poll
	high.Priority = 5
	master, standby := w.manager(3, high), w.manager(9, poll)
	w.run(3 * time.Second)
	name := func(i int) ib.GID { return ib.GID{0xff, 0x12, 14: 1, 15: byte(i)} }
	members := [][]int{{0, 5, 11, 15}, {1, 6, 12}, {2, 4, 8, 13, 14}, {7, 10}}
	mlids := make([]ib.LID, len(members))
	for g, list := range members {
		for _, node := range list {
			mlids[g] = w.join(node, name(g))
		}
	}
	w.run(100 * time.Millisecond)
	for g, list := range members {
		for i, node := range list { // each sends to the next; all others get the packets too
			from, to := fabric.Place{Node: list[(i+1)%len(list)], Port: 1}, fabric.Place{Node: node, Port: 1}
			w.f.Plug(w.now, to, true)
			w.streams = append(w.streams, stream{from: from, to: to, mlid: mlids[g], members: len(list)})
		}
	}
	w.run(100 * time.Millisecond)
	before := w.multicastTables(top, master.at)
	w.kill(master)
	w.run(8 * time.Second)
	if standby.sm.State() != mad.SMMaster {
		t.Fatalf("the standby is in state %v: %v", standby.sm.State(), w.log)
	}
	if after := w.multicastTables(top, standby.at); !bytes.Equal(before, after) {
		t.Error("the takeover has changed multicast tables")
	}
	for g := len(members) - 2; g >= 0; g-- { // in the opposite order; the last group does not join again
		for i := len(members[g]) - 1; i >= 0; i-- {
			if mlid := w.join(members[g][i], name(g)); mlid != mlids[g] {
				t.Errorf("group %d has multicast LID %#x, had %#x", g, mlid, mlids[g])
			}
			w.run(5 * time.Millisecond)
		}
	}
	w.run(time.Second)
	if after := w.multicastTables(top, standby.at); !bytes.Equal(before, after) {
		t.Error("joining again has changed multicast tables")
	}
	if mlid := w.join(3, ib.GID{0xff, 0x12, 15: 99}); mlid == mlids[3] || mlid == 0 {
		t.Errorf("a new group has multicast LID %#x, which must stay free for one that may come again", mlid)
	}
	for i := range w.streams {
		if s := &w.streams[i]; s.got+uint64(2*s.members) < s.heard(w.streams) || s.got == 0 {
			t.Errorf("stream %d to adapter %d: %d packets sent, %d arrived", i, s.to.Node, s.heard(w.streams), s.got)
		}
	}
	w.streams = nil
	w.run(3 * time.Minute)
	if after := w.multicastTables(top, standby.at); bytes.Equal(before, after) {
		t.Error("the group that nobody joined again still exists")
	}
}

// heard returns how many packets the receiver of a stream should have got: those of all other senders to the group.
func (s *stream) heard(all []stream) (n uint64) {
	for i := range all {
		if o := &all[i]; o.mlid == s.mlid && o.from != s.to {
			n += o.sent
		}
	}
	return n
}
