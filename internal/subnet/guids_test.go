package subnet

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/subnet/administration/asker"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestGivenGUIDs: a port can be given further GUIDs (IBA 15.2.5.18): they are written to the port, paths lead to
// them, subscribers get reports of them, and no other port is given the same.
func TestGivenGUIDs(t *testing.T) {
	k, sm, b, n := askedBench(t, Config{AssignedGUID: 0x20})
	other := newAsker(b, sm, n[2])
	const alias = 0x1122334455667788
	inform := mad.InformInfo{LIDBegin: 0xffff, Subscribe: true, IsGeneric: true, Type: 0xffff, TrapNumber: 0xffff, ProducerType: 0xffffff}
	k.Ask(mad.MethodSet, mad.AttrInformInfo, 0, inform.Append(nil))
	set := func(k *asker.Asker, method uint8, lid ib.LID, block uint8, mask uint64, g mad.GUIDInfo) (uint16, mad.GUIDInfo) {
		t.Helper()
		r := mad.GUIDInfoRecord{LID: lid, Block: block, Table: g}
		head, data := k.Ask(method, mad.AttrGUIDInfoRecord, mask, r.Append(nil))
		if head.Status != mad.StatusOK {
			return head.Status, mad.GUIDInfo{}
		}
		a, err := mad.ParseGUIDInfoRecord(data)
		if err != nil {
			t.Fatal(err)
		}
		return 0, a.Table
	}
	own := n[1].info.PortGUID + 1
	both := uint64(mad.GUIDComponentLID | mad.GUIDComponentBlock)
	status, g := set(k, mad.MethodSet, k.LID, 0, both|1<<4|1<<5|1<<7, mad.GUIDInfo{0x999, alias, 0, 0})
	if status != 0 || g[0] != own || g[1] != alias || g[2] != 0 || g[3] != 0x0014052000000001 {
		t.Fatalf("status %#x, GUIDs %x", status, g)
	}
	if status, g := set(k, mad.MethodSet, k.LID, 0, both|1<<10, mad.GUIDInfo{6: alias}); status != 0 || g[1] != alias || g[6] != 0 {
		t.Errorf("a GUID that another entry of the port has, behind those in use: status %#x, %x", status, g)
	}
	b.run(time.Second)
	if got := n[1].ports[1].guid[0]; got != g {
		t.Errorf("the port has %x, want %x", got, g)
	}
	gone := 0
	for _, m := range k.Reports {
		notice, err := mad.ParseNotice(m.Data[:])
		if err != nil {
			t.Fatal(err)
		}
		if notice.TrapNumber == mad.TrapGIDInService {
			gone++
		}
	}
	if gone != 2 {
		t.Errorf("%d reports of GIDs in service, want 2", gone)
	}
	// Paths to the new GID lead to the port.
	path := mad.PathRecord{DGID: gidOf(alias), SGID: gidOf(n[2].info.PortGUID + 1)}
	head, data := other.Ask(mad.MethodGet, mad.AttrPathRecord, mad.PathDGID|mad.PathSGID, path.Append(nil))
	if r, err := mad.ParsePathRecord(data); head.Status != 0 || err != nil || r.DLID != k.LID || r.DGID != path.DGID {
		t.Errorf("path to the given GID: status %#x, %+v, %v", head.Status, r, err)
	}
	// A port is given no GUID that another has, and may not set those of another port.
	if _, g := set(other, mad.MethodSet, other.LID, 0, both|1<<5|1<<6, mad.GUIDInfo{0, alias, own}); g[1] != 0 || g[2] != 0 {
		t.Errorf("GUIDs of others were given: %x", g)
	}
	if status, _ := set(other, mad.MethodSet, k.LID, 0, both|1<<5, mad.GUIDInfo{0, 5}); status != mad.SARequestInvalid {
		t.Errorf("setting GUIDs of another port: status %#x", status)
	}
	if status, _ := set(k, mad.MethodSet, k.LID, 1, both|1<<5, mad.GUIDInfo{0, 5}); status != mad.SARequestInvalid {
		t.Errorf("a block beyond GUIDCap: status %#x", status)
	}
	if status, _ := set(k, mad.MethodSet, k.LID, 0, mad.GUIDComponentLID|1<<5, mad.GUIDInfo{0, 5}); status != mad.SAInsufficientComponents {
		t.Errorf("no block: status %#x", status)
	}
	// A port that starts anew is given its GUIDs again.
	n[1].ports[1].guid = map[uint32]mad.GUIDInfo{}
	b.train(n[1], 1)
	b.train(n[4], 2)
	sm.Rescan(b.now)
	b.run(time.Second)
	if got := n[1].ports[1].guid[0]; got != g {
		t.Errorf("after a restart the port has %x, want %x", got, g)
	}
	// A GUID that was taken back can be given to another port.
	if status, g := set(k, mad.MethodDelete, k.LID, 0, both|1<<5, mad.GUIDInfo{}); status != 0 || g[1] != 0 {
		t.Errorf("delete: status %#x, %x", status, g)
	}
	if _, g := set(other, mad.MethodSet, other.LID, 0, both|1<<5, mad.GUIDInfo{0, alias}); g[1] != alias {
		t.Errorf("a GUID that was taken back was not given to another port: %x", g)
	}
}
