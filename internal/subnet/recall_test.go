package subnet

import (
	"bytes"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestRecall: a manager that starts with what its predecessor saved has the groups with their members and multicast
// LIDs, the subscriptions, services and given GUIDs, but none of ports that are gone.
func TestRecall(t *testing.T) {
	then := time.Unix(0x5e0d7a00, 0) // when the first manager saved its state
	k, sm, b, n := askedBench(t, Config{})
	n[1].ports[1].info.GUIDCap = 8
	set := func(who *benchNode, attr uint16, mask uint64, record []byte) []byte {
		t.Helper()
		k.LID = who.ports[1].info.LID
		head, data := k.Ask(mad.MethodSet, attr, mask, record)
		if head.Status != 0 {
			t.Fatalf("attribute %#x: status %#x", attr, head.Status)
		}
		return data
	}
	mlids := map[byte]ib.LID{}
	for i, last := range []byte{7, 8, 9} {
		for _, who := range []*benchNode{n[i], n[2]} {
			rec := memberOf(who, ib.GID{0xff, 0x12, 15: last}, mad.JoinFull)
			got, _ := mad.ParseMCMemberRecord(set(who, mad.AttrMCMemberRecord, createMask, rec.Append(nil)))
			mlids[last] = got.MLID
		}
	}
	rec := memberOf(n[0], ib.GID{0xff, 0x12, 15: 7}, mad.JoinFull) // the first LID becomes free, the others are kept
	k.LID = n[0].ports[1].info.LID
	k.Ask(mad.MethodDelete, mad.AttrMCMemberRecord, createMask, rec.Append(nil))
	rec = memberOf(n[2], ib.GID{0xff, 0x12, 15: 7}, mad.JoinFull)
	k.LID = n[2].ports[1].info.LID
	k.Ask(mad.MethodDelete, mad.AttrMCMemberRecord, createMask, rec.Append(nil))
	info := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: true, Type: 0xffff, TrapNumber: 64, ProducerType: 4}
	set(n[1], mad.AttrInformInfo, 0, info.Append(nil))
	service := mad.ServiceRecord{ID: 5, Lease: 100, PKey: ib.PKeyDefault}
	copy(service.Name[:], "service")
	set(n[1], mad.AttrServiceRecord, mad.ServiceComponentID|mad.ServiceComponentLease|mad.ServiceComponentPKey, service.Append(nil))
	guids := mad.GUIDInfoRecord{LID: n[1].ports[1].info.LID, Table: mad.GUIDInfo{1: 0xabc}}
	set(n[1], mad.AttrGUIDInfoRecord, mad.GUIDComponentLID|mad.GUIDComponentBlock|mad.GUIDComponentFirst<<1, guids.Append(nil))

	b.run(10 * time.Second)
	text := sm.Registrations(b.now)
	old := text.AppendText(nil, then)
	b.sms = map[*benchNode]*SM{}
	b.unlink(n[5], 1) // n[2] goes while no manager runs
	next := b.start(n[0], Config{Recall: func() (administration.Registrations, error) {
		return administration.ReadRegistrations(bytes.NewReader(old), then.Add(20*time.Second))
	}})
	b.run(time.Second)
	b.mustBeUp()
	r := next.Registrations(b.now)
	groups := map[ib.GID]administration.RegisteredGroup{}
	for _, g := range r.Groups {
		groups[g.Record.MGID] = g
	}
	g := groups[ib.GID{0xff, 0x12, 15: 8}]
	if g.Record.MLID != mlids[8] || len(g.Members) != 1 || g.Members[0].GID != gidOf(n[1].info.PortGUID+1) {
		t.Errorf("the group of a member that stayed, want it at %#x with that member: %+v", mlids[8], g)
	}
	if _, there := groups[ib.GID{0xff, 0x12, 15: 9}]; there {
		t.Error("a group whose members are all gone was kept")
	}
	if len(r.Subscriptions) != 1 || r.Subscriptions[0].LID != n[1].ports[1].info.LID {
		t.Errorf("subscriptions %+v, want the one of n[1]", r.Subscriptions)
	}
	if len(r.Services) != 1 || r.Services[0].Left < 60*time.Second || r.Services[0].Left > 71*time.Second {
		t.Errorf("services %+v, want one with 60 to 71 s left", r.Services)
	}
	if len(r.GUIDs) != 1 || len(r.GUIDs[0].Table) < 2 || r.GUIDs[0].Table[1] != 0xabc {
		t.Errorf("given GUIDs %+v, want 0xabc", r.GUIDs)
	}
	if n[1].ports[1].guid[0][1] != 0xabc {
		t.Errorf("the port was not given its GUID again: %x", n[1].ports[1].guid)
	}
}
