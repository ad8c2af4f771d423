package administration

import (
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func TestRecords(t *testing.T) {
	b, h := plug(t, Config{})
	lid := b.lid(h[2])
	by := func(lid ib.LID) []byte { return []byte{byte(lid >> 8), byte(lid)} }
	head, data := b.Ask(mad.MethodGet, mad.AttrNodeRecord, 1, by(lid))
	if r, err := mad.ParseNodeRecord(data); head.Status != 0 || err != nil || r.LID != lid || r.Description.String() != "h3" ||
		r.Info.PortGUID != b.n.Ports[h[2]].GUID {
		t.Errorf("node record: status %#x, %+v; want that of h3", head.Status, r)
	}
	for attr, count := range map[uint16]int{
		mad.AttrNodeRecord: 7, mad.AttrPortInfoRecord: 5 + 2*9, mad.AttrLinkRecord: 14, mad.AttrSwitchInfoRecord: 2, mad.AttrLFTRecord: 2,
		mad.AttrSMInfoRecord:   1,
		mad.AttrGUIDInfoRecord: 5 + 2, mad.AttrSLtoVLRecord: 5 + 2*81, mad.AttrVLArbRecord: 4 * (5 + 2*9), mad.AttrPathRecord: 49,
		mad.AttrMCMemberRecord: 1,
		mad.AttrServiceRecord:  0, mad.AttrInformInfoRecord: 0, mad.AttrMFTRecord: 0,
	} {
		head, data := b.Ask(mad.MethodGetTable, attr, 0, nil)
		if head.Status != 0 || head.Method != mad.MethodGetTableResp || count == 0 && len(data) != 0 || count > 0 &&
			len(data)/8 != count*int(head.AttrOffset) {
			t.Errorf("attribute %#x: status %#x, %d bytes, offset %d, want %d records", attr, head.Status, len(data), head.AttrOffset,
				count)
		}
	}
	for _, c := range []struct {
		name   string
		method uint8
		attr   uint16
		mask   uint64
		record []byte
		key    uint64
		status uint16
	}{
		{"several for one", mad.MethodGet, mad.AttrNodeRecord, 0, nil, 0, mad.SATooManyRecords},
		{"topology.None", mad.MethodGet, mad.AttrNodeRecord, 1, by(999), 0, mad.SANoRecords},
		{"LID 0xffff", mad.MethodGetTable, mad.AttrNodeRecord, 1, by(0xffff), 0, mad.StatusOK},
		{"P_Keys without the key", mad.MethodGetTable, mad.AttrPKeyTableRecord, 0, nil, 0, mad.SARequestInvalid},
		{"P_Keys with the key", mad.MethodGetTable, mad.AttrPKeyTableRecord, 0, nil, 1, mad.StatusOK},
		{"wrong key", mad.MethodGet, mad.AttrNodeRecord, 1, by(lid), 77, 0xffff},
		{"unknown components", mad.MethodGet, mad.AttrLinkRecord, 1 << 40, nil, 0, mad.SARequestInvalid},
		{"unknown attribute", mad.MethodGet, 0x99, 0, nil, 0, mad.StatusAttributeUnsupported},
		{"unknown method", mad.MethodSet, mad.AttrNodeRecord, 0, nil, 0, mad.StatusMethodUnsupported},
	} {
		if head, _ := b.Ask(c.method, c.attr, c.mask, c.record, func(m *mad.SA) { m.SMKey = c.key }); head.Status != c.status {
			t.Errorf("%s: status %#x, want %#x", c.name, head.Status, c.status)
		}
	}
	// Bit 31 of the modifier makes the capability mask be compared bit by bit (IBA 15.2.5.3).
	var q mad.PortInfoRecord
	q.Info.CapabilityMask = mad.CapIsSM
	if _, data := b.Ask(mad.MethodGetTable, mad.AttrPortInfoRecord, 1<<capabilityMask, q.Append(nil),
		func(m *mad.SA) { m.AttributeModifier = 1 << 31 }); len(data) != 72 {
		t.Errorf("%d bytes of records of ports with a manager, want one record of 72", len(data))
	}
	head, data = b.Ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil)
	if c, err := mad.ParseClassPortInfo(data); head.Status != 0 || err != nil || c.ClassVersion != mad.ClassVersionSA {
		t.Errorf("ClassPortInfo: %+v", c)
	}
}

// TestPathRecords: all paths are returned with their properties, and for a pair of ports those that match the
// requested components, with MTU, rate and life time compared by their selectors (IBA 15.2.5.16).
func TestPathRecords(t *testing.T) {
	b, h := plug(t, Config{}, func(b *bench, _ int32) { b.lmc = 1 })
	_, data := b.Ask(mad.MethodGetTable, mad.AttrPathRecord, 0, nil)
	if len(data) == 0 {
		t.Error("the answer contains no paths")
	}
	for ; len(data) >= mad.PathRecordLen; data = data[mad.PathRecordLen:] {
		r, err := mad.ParsePathRecord(data)
		if err != nil || r.MTU != 5 || r.Rate != 7 || r.PKey != 0xffff || !r.Reversible || r.SL != 0 {
			t.Fatalf("path record %+v (%v)", r, err)
		}
	}
	sgid, dgid := b.gid(h[1]), b.gid(h[2])
	const pair = mad.PathSGID | mad.PathDGID
	for _, c := range []struct {
		name   string
		mask   uint64
		change func(*mad.PathRecord)
		status uint16
		check  func(mad.PathRecord) bool
	}{
		{"plain", 0, func(*mad.PathRecord) {}, 0, func(r mad.PathRecord) bool { return r.MTU == 5 && r.Life == 18 }},
		{"MTU exactly", mad.PathMTU | mad.PathMTUSelector, func(r *mad.PathRecord) { r.MTUSelector, r.MTU = 2, 3 }, 0,
			func(r mad.PathRecord) bool { return r.MTU == 3 }},
		{"MTU above", mad.PathMTU | mad.PathMTUSelector, func(r *mad.PathRecord) { r.MTUSelector, r.MTU = 0, 5 }, mad.SANoRecords, nil},
		{"MTU below", mad.PathMTU | mad.PathMTUSelector, func(r *mad.PathRecord) { r.MTUSelector, r.MTU = 1, 4 }, 0,
			func(r mad.PathRecord) bool { return r.MTU == 3 }},
		{"rate exactly", mad.PathRate | mad.PathRateSelector, func(r *mad.PathRecord) { r.RateSelector, r.Rate = 2, 6 }, 0,
			func(r mad.PathRecord) bool { return r.Rate == 6 }},
		{"rate below 30", mad.PathRate | mad.PathRateSelector, func(r *mad.PathRecord) { r.RateSelector, r.Rate = 1, 4 }, 0,
			func(r mad.PathRecord) bool { return mbps[r.Rate] == 28000 }},
		{"rate above", mad.PathRate | mad.PathRateSelector, func(r *mad.PathRecord) { r.RateSelector, r.Rate = 0, 7 }, mad.SANoRecords,
			nil},
		{"short life", mad.PathLife | mad.PathLifeSelector, func(r *mad.PathRecord) { r.LifeSelector, r.Life = 1, 10 }, mad.SANoRecords,
			nil},
		{"other P_Key", mad.PathPKey, func(r *mad.PathRecord) { r.PKey = 0x8123 }, mad.SANoRecords, nil},
		{"other SL", mad.PathSL, func(r *mad.PathRecord) { r.SL = 5 }, mad.SANoRecords, nil},
		{"unknown GID", 0, func(r *mad.PathRecord) { r.DGID[15] = 99 }, mad.SAInvalidGID, nil},
		{"other subnet", 0, func(r *mad.PathRecord) { r.DGID[0] = 0x20 }, mad.SAInvalidGID, nil},
		{"multicast", 0, func(r *mad.PathRecord) { r.DGID = broadcast }, 0, func(r mad.PathRecord) bool { return r.DLID == 0xc000 }},
		{"GID and LID of two", mad.PathDLID, func(r *mad.PathRecord) { r.DLID = b.lid(h[0]) }, mad.SANoRecords, nil},
	} {
		q := mad.PathRecord{SGID: sgid, DGID: dgid}
		c.change(&q)
		head, data := b.Ask(mad.MethodGet, mad.AttrPathRecord, pair|c.mask, q.Append(nil))
		r, _ := mad.ParsePathRecord(data)
		if head.Status != c.status || c.check != nil && !c.check(r) {
			t.Errorf("%s: status %#x, %+v", c.name, head.Status, r)
		}
	}
}

// TestMultiPath: a MultiPathRecord request comes in several packets if its GIDs need them.
func TestMultiPath(t *testing.T) {
	b, h := plug(t, Config{})
	var q mad.MultiPathRecord
	for range 8 {
		q.SGIDs = append(q.SGIDs, b.gid(h[1]))
		q.DGIDs = append(q.DGIDs, b.gid(h[2]))
	}
	const both = mad.MultiSGIDCount | mad.MultiDGIDCount
	if head, data := b.Ask(mad.MethodGetMulti, mad.AttrMultiPathRecord, both, q.Append(nil)); head.Status != 0 ||
		len(data) != 64*mad.PathRecordLen {
		t.Errorf("status %#x, %d bytes of paths, want %d", head.Status, len(data), 64*mad.PathRecordLen)
	}
	q.SGIDs, q.DGIDs = q.SGIDs[:1], q.DGIDs[:1]
	if head, _ := b.Ask(mad.MethodGetMulti, mad.AttrMultiPathRecord, 0, q.Append(nil)); head.Status != mad.SAInsufficientComponents {
		t.Errorf("without counts: status %#x, want insufficient components", head.Status)
	}
}

// TestServices: a service is registered until its lease ends or it is withdrawn, and its key is shown to nobody.
func TestServices(t *testing.T) {
	b, _ := plug(t, Config{})
	rec := mad.ServiceRecord{ID: 42, PKey: 0xffff, Lease: 10, Key: [16]byte{1}, Name: [64]byte{'x'}}
	const mask = mad.ServiceComponentID | mad.ServiceComponentPKey | mad.ServiceComponentLease | mad.ServiceComponentKey |
		mad.ServiceComponentName
	if head, _ := b.Ask(mad.MethodSet, mad.AttrServiceRecord, mask, rec.Append(nil)); head.Status != 0 {
		t.Fatalf("status %#x", head.Status)
	}
	other := rec
	other.Key = [16]byte{2}
	if head, _ := b.Ask(mad.MethodSet, mad.AttrServiceRecord, mask, other.Append(nil)); head.Status != mad.SARequestInvalid {
		t.Errorf("with another key: status %#x, want a refusal", head.Status)
	}
	find := func(mask uint64, r mad.ServiceRecord) uint16 {
		head, data := b.Ask(mad.MethodGet, mad.AttrServiceRecord, mask, r.Append(nil))
		if got, _ := mad.ParseServiceRecord(data); head.Status == 0 && got.Key != [16]byte{} {
			t.Error("the answer shows the service's key")
		}
		return head.Status
	}
	if s := find(mad.ServiceComponentName, rec); s != 0 {
		t.Errorf("by name: status %#x, want 0", s)
	}
	if s := find(mad.ServiceComponentID|mad.ServiceComponentKey, other); s != mad.SANoRecords {
		t.Errorf("by ID and the wrong key: status %#x, want no records", s)
	}
	b.run(10 * time.Second)
	if s := find(mad.ServiceComponentID, rec); s != mad.SANoRecords {
		t.Errorf("after its lease: status %#x, want no records", s)
	}
	b.Ask(mad.MethodSet, mad.AttrServiceRecord, mask&^mad.ServiceComponentLease, rec.Append(nil))
	b.run(time.Hour)
	if head, _ := b.Ask(mad.MethodDelete, mad.AttrServiceRecord, mad.ServiceComponentName, rec.Append(nil)); head.Status != 0 {
		t.Errorf("withdrawing the service: status %#x, want 0", head.Status)
	}
	if head, _ := b.Ask(mad.MethodDelete, mad.AttrServiceRecord, mad.ServiceComponentName,
		rec.Append(nil)); head.Status != mad.SANoRecords {
		t.Errorf("withdrawing it again: status %#x, want no records", head.Status)
	}
}

// TestReports: a subscriber gets reports of ports that come and go and of groups (traps 64 to 67) until it
// unsubscribes.
func TestReports(t *testing.T) {
	b, h := plug(t, Config{})
	info := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: true, Type: 0xffff, TrapNumber: 0xffff, ProducerType: 0xffffff}
	subscribe := func() uint16 {
		head, _ := b.Ask(mad.MethodSet, mad.AttrInformInfo, 0, info.Append(nil))
		return head.Status
	}
	if s := subscribe(); s != 0 {
		t.Fatalf("status %#x", s)
	}
	subscribe() // a second request is the same subscription
	if _, data := b.Ask(mad.MethodGetTable, mad.AttrInformInfoRecord, 0, nil); len(data) != 64 {
		t.Errorf("%d bytes of subscriptions, want one record of 64", len(data))
	}
	rec := b.member(h[1], ib.GID{0xff, 0x12, 15: 3}, 1)
	b.Ask(mad.MethodSet, mad.AttrMCMemberRecord, createMask, rec.Append(nil))
	b.Ask(mad.MethodDelete, mad.AttrMCMemberRecord, joinMask, rec.Append(nil))
	b.build()
	b.up(h[2])
	b.run(11 * time.Second)
	b.build()
	b.up()
	b.run(11 * time.Second)
	var traps []uint16
	for _, m := range b.Reports {
		notice, _ := mad.ParseNotice(m.Data[:])
		traps = append(traps, notice.TrapNumber)
	}
	if want := []uint16{mad.TrapMulticastCreated, mad.TrapMulticastDeleted, mad.TrapGIDOutOfService,
		mad.TrapGIDInService}; !slices.Equal(traps, want) {
		t.Errorf("traps %v, want %v", traps, want)
	}
	info.Subscribe = false
	if s := subscribe(); s != 0 {
		t.Errorf("unsubscribing: status %#x, want 0", s)
	}
	if s := subscribe(); s != mad.SARequestInvalid {
		t.Errorf("unsubscribing again: status %#x, want a refusal", s)
	}
}

// TestClientWithoutTransfers: a client that never acknowledges, such as ibsim's own library, does not keep itself or
// others from being answered.
func TestClientWithoutTransfers(t *testing.T) {
	b, _ := plug(t, Config{})
	b.Silent = true
	for range 3 * maxTransfers {
		b.Ask(mad.MethodGetTable, mad.AttrNodeRecord, 0, nil)
	}
	if n := len(b.sa.out); n > maxUnanswered {
		t.Errorf("%d transfers are kept, want at most %d", n, maxUnanswered)
	}
	b.run(time.Minute)
	if n := len(b.sa.out); n != 0 || b.sa.held != 0 {
		t.Errorf("%d transfers with %d bytes are kept for ever", n, b.sa.held)
	}
}

// FuzzAdministration: no request makes the administration panic or stop answering others.
func FuzzAdministration(f *testing.F) {
	s := mad.NewSA(mad.MethodGetTable, mad.AttrPathRecord, 0, 7)
	f.Add(s.Append(nil))
	s = mad.NewSA(mad.MethodSet, mad.AttrMCMemberRecord, 0, 7)
	s.ComponentMask = createMask
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		b, h := plug(t, Config{})
		var m [mad.Len]byte
		copy(m[:], input)
		m[0], m[1], m[2] = 1, mad.ClassSubnetAdm, mad.ClassVersionSA
		b.sa.Receive(b.now, Address{LID: b.LID, QPN: 1}, m[:])
		b.run(time.Second)
		lid := b.lid(h[0])
		if head, _ := b.Ask(mad.MethodGet, mad.AttrNodeRecord, 1, []byte{byte(lid >> 8), byte(lid)}); head.Status != 0 {
			t.Fatalf("a request afterwards: status %#x, want 0", head.Status)
		}
	})
}
