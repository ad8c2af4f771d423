package subnet

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// asker puts questions to the subnet administration of a bench, as a host does.
type asker struct {
	b    *bench
	sm   *SM
	lid  ib.LID
	tid  uint64
	acks bool // it takes part in transfers of several packets
	got  []mad.SA
}

func newAsker(b *bench, sm *SM, n *benchNode) *asker {
	return &asker{b: b, sm: sm, lid: n.ports[1].info.LID, acks: true}
}

// ask sends a request and returns the header of the answer and its data; no answer is status 0xffff.
func (k *asker) ask(method uint8, attr uint16, mask uint64, record []byte, change ...func(*mad.SA)) (mad.SA, []byte) {
	k.tid++
	m := mad.NewSA(method, attr, 0, k.tid)
	m.ComponentMask = mask
	copy(m.Data[:], record)
	for _, c := range change {
		c(&m)
	}
	var r mad.RMPPReceiver
	var head mad.SA
	var data []byte
	head.Status = 0xffff
	k.b.byGMP = func(p *Packet, _ *benchNode) {
		a, err := mad.ParseSA(p.MAD[:])
		if err != nil {
			k.b.t.Fatal(err)
		}
		if a.Method == mad.MethodReport {
			k.got = append(k.got, a)
			a.Method = mad.MethodReportResp
			k.send(&a)
			return
		}
		if p.LID != k.lid || a.TransactionID != k.tid {
			return
		}
		if !a.Active() {
			head, data = a, a.Data[:]
			return
		}
		answer, answered, done, err := r.Take(&a)
		if err != nil {
			k.b.t.Fatal(err)
		}
		if done {
			head, data = r.Result()
		}
		if answered && k.acks {
			k.send(&answer)
		}
	}
	if len(record) > mad.SADataLen {
		k.transfer(m, record)
	} else {
		k.send(&m)
	}
	k.b.run(100 * time.Millisecond)
	return head, data
}

// transfer sends a request of several packets.
func (k *asker) transfer(m mad.SA, record []byte) {
	s := mad.NewRMPPSender(m, record)
	k.b.byGMP = func(p *Packet, _ *benchNode) {
		if a, err := mad.ParseSA(p.MAD[:]); err == nil {
			s.Take(&a, 1)
		}
	}
	for range 100 {
		part, ok := s.Next(1)
		if !ok {
			k.b.run(time.Millisecond)
			continue
		}
		k.send(&part)
	}
}

func (k *asker) send(m *mad.SA) {
	p := Packet{LID: k.lid, QPN: 1, LocalQPN: 1}
	m.Append(p.MAD[:0])
	k.sm.Receive(k.b.now, &p)
}

func askedBench(t testing.TB, cfg Config) (*asker, *bench, []*benchNode) {
	b, n := smallBench(t)
	sm := b.start(n[0], cfg)
	b.run(time.Second)
	b.mustBeUp()
	return newAsker(b, sm, n[1]), b, n
}

func TestRecords(t *testing.T) {
	k, _, n := askedBench(t, Config{})
	lid := n[2].ports[1].info.LID
	by := func(lid ib.LID) []byte { return []byte{byte(lid >> 8), byte(lid)} }
	head, data := k.ask(mad.MethodGet, mad.AttrNodeRecord, 1, by(lid))
	if r, err := mad.ParseNodeRecord(data); head.Status != 0 || err != nil || r.LID != lid || r.Description.String() != "h3" || r.Info.PortGUID != n[2].info.PortGUID+1 {
		t.Errorf("node: %#x, %+v", head.Status, r)
	}
	for attr, count := range map[uint16]int{
		mad.AttrNodeRecord: 7, mad.AttrPortInfoRecord: 5 + 2*9, mad.AttrLinkRecord: 14, mad.AttrSwitchInfoRecord: 2, mad.AttrLFTRecord: 2, mad.AttrSMInfoRecord: 1,
		mad.AttrGUIDInfoRecord: 5 + 2, mad.AttrSLtoVLRecord: 5 + 2*81, mad.AttrVLArbRecord: 4 * (5 + 2*9), mad.AttrPathRecord: 49, mad.AttrMCMemberRecord: 1,
		mad.AttrServiceRecord: 0, mad.AttrInformInfoRecord: 0, mad.AttrMFTRecord: 0,
	} {
		head, data := k.ask(mad.MethodGetTable, attr, 0, nil)
		if head.Status != 0 || head.Method != mad.MethodGetTableResp || count == 0 && len(data) != 0 || count > 0 && len(data)/8 != count*int(head.AttrOffset) {
			t.Errorf("attribute %#x: status %#x, %d bytes, offset %d, want %d records", attr, head.Status, len(data), head.AttrOffset, count)
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
		{"none", mad.MethodGet, mad.AttrNodeRecord, 1, by(999), 0, mad.SANoRecords},
		{"LID 0xffff", mad.MethodGetTable, mad.AttrNodeRecord, 1, by(0xffff), 0, mad.StatusOK},
		{"P_Keys without the key", mad.MethodGetTable, mad.AttrPKeyTableRecord, 0, nil, 0, mad.SARequestInvalid},
		{"P_Keys with the key", mad.MethodGetTable, mad.AttrPKeyTableRecord, 0, nil, 1, mad.StatusOK},
		{"wrong key", mad.MethodGet, mad.AttrNodeRecord, 1, by(lid), 77, 0xffff},
		{"unknown components", mad.MethodGet, mad.AttrLinkRecord, 1 << 40, nil, 0, mad.SARequestInvalid},
		{"unknown attribute", mad.MethodGet, 0x99, 0, nil, 0, mad.StatusAttributeUnsupported},
		{"unknown method", mad.MethodSet, mad.AttrNodeRecord, 0, nil, 0, mad.StatusMethodUnsupported},
	} {
		if head, _ := k.ask(c.method, c.attr, c.mask, c.record, func(m *mad.SA) { m.SMKey = c.key }); head.Status != c.status {
			t.Errorf("%s: status %#x, want %#x", c.name, head.Status, c.status)
		}
	}
	// IBA 15.2.5.3: bit 31 of the modifier has the capability mask compared bit by bit.
	var q mad.PortInfoRecord
	q.Info.CapabilityMask = mad.CapIsSM
	if _, data := k.ask(mad.MethodGetTable, mad.AttrPortInfoRecord, 1<<capabilityMask, q.Append(nil), func(m *mad.SA) { m.AttributeModifier = 1 << 31 }); len(data) != 72 {
		t.Errorf("%d bytes of ports with a manager", len(data))
	}
	head, data = k.ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil)
	if c, err := mad.ParseClassPortInfo(data); head.Status != 0 || err != nil || c.ClassVersion != mad.ClassVersionSA {
		t.Errorf("ClassPortInfo: %+v", c)
	}
}

// Every path that is told is one that packets can go.
func TestPathRecords(t *testing.T) {
	k, b, n := askedBench(t, Config{LMC: 1})
	n[4].ports[7].info.NeighborMTU = 4 // does not matter: what the manager knows counts
	_, data := k.ask(mad.MethodGetTable, mad.AttrPathRecord, 0, nil)
	for ; len(data) >= mad.PathRecordLen; data = data[mad.PathRecordLen:] {
		r, err := mad.ParsePathRecord(data)
		if err != nil || r.MTU != 5 || r.Rate != 7 || r.PKey != 0xffff || !r.Reversible || r.SL != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		from, to := b.ownerOf(r.SLID), b.ownerOf(r.DLID)
		if got, ok := b.send(from, r.DLID); from.n != to.n && (!ok || got.n != to.n || got.p != to.p) {
			t.Fatalf("from %s to %s: arrived at %v", from.n.name, to.n.name, got.n)
		}
	}
	sgid, dgid := k.sm.sa.gid(n[1].info.PortGUID+1), k.sm.sa.gid(n[2].info.PortGUID+1)
	const pair = mad.PathSGID | mad.PathDGID
	for _, c := range []struct {
		name   string
		mask   uint64
		change func(*mad.PathRecord)
		status uint16
		check  func(mad.PathRecord) bool
	}{
		{"plain", 0, func(*mad.PathRecord) {}, 0, func(r mad.PathRecord) bool { return r.MTU == 5 && r.Life == 18 }},
		{"MTU exactly", mad.PathMTU | mad.PathMTUSelector, func(r *mad.PathRecord) { r.MTUSelector, r.MTU = 2, 3 }, 0, func(r mad.PathRecord) bool { return r.MTU == 3 }},
		{"MTU above", mad.PathMTU | mad.PathMTUSelector, func(r *mad.PathRecord) { r.MTUSelector, r.MTU = 0, 5 }, mad.SANoRecords, nil},
		{"MTU below", mad.PathMTU | mad.PathMTUSelector, func(r *mad.PathRecord) { r.MTUSelector, r.MTU = 1, 4 }, 0, func(r mad.PathRecord) bool { return r.MTU == 3 }},
		{"rate exactly", mad.PathRate | mad.PathRateSelector, func(r *mad.PathRecord) { r.RateSelector, r.Rate = 2, 6 }, 0, func(r mad.PathRecord) bool { return r.Rate == 6 }},
		{"rate below 30", mad.PathRate | mad.PathRateSelector, func(r *mad.PathRecord) { r.RateSelector, r.Rate = 1, 4 }, 0, func(r mad.PathRecord) bool { return mbps[r.Rate] == 28000 }},
		{"rate above", mad.PathRate | mad.PathRateSelector, func(r *mad.PathRecord) { r.RateSelector, r.Rate = 0, 7 }, mad.SANoRecords, nil},
		{"short life", mad.PathLife | mad.PathLifeSelector, func(r *mad.PathRecord) { r.LifeSelector, r.Life = 1, 10 }, mad.SANoRecords, nil},
		{"other P_Key", mad.PathPKey, func(r *mad.PathRecord) { r.PKey = 0x8123 }, mad.SANoRecords, nil},
		{"other SL", mad.PathSL, func(r *mad.PathRecord) { r.SL = 5 }, mad.SANoRecords, nil},
		{"unknown GID", 0, func(r *mad.PathRecord) { r.DGID[15] = 99 }, mad.SAInvalidGID, nil},
		{"other subnet", 0, func(r *mad.PathRecord) { r.DGID[0] = 0x20 }, mad.SAInvalidGID, nil},
		{"multicast", 0, func(r *mad.PathRecord) { r.DGID = broadcast }, 0, func(r mad.PathRecord) bool { return r.DLID == 0xc000 }},
		{"GID and LID of two", mad.PathDLID, func(r *mad.PathRecord) { r.DLID = n[0].ports[1].info.LID }, mad.SANoRecords, nil},
	} {
		q := mad.PathRecord{SGID: sgid, DGID: dgid}
		c.change(&q)
		head, data := k.ask(mad.MethodGet, mad.AttrPathRecord, pair|c.mask, q.Append(nil))
		r, _ := mad.ParsePathRecord(data)
		if head.Status != c.status || c.check != nil && !c.check(r) {
			t.Errorf("%s: status %#x, %+v", c.name, head.Status, r)
		}
	}
}

var broadcast = ib.GID{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}

func (b *bench) ownerOf(lid ib.LID) end {
	for _, e := range b.ends() {
		if i := e.n.ports[e.p].info; lid >= i.LID && lid < i.LID+1<<i.LMC {
			return e
		}
	}
	return end{}
}

// MultiPathRecord comes in several packets where its GIDs need them.
func TestMultiPath(t *testing.T) {
	k, _, n := askedBench(t, Config{})
	var q mad.MultiPathRecord
	for range 8 {
		q.SGIDs = append(q.SGIDs, k.sm.sa.gid(n[1].info.PortGUID+1))
		q.DGIDs = append(q.DGIDs, k.sm.sa.gid(n[2].info.PortGUID+1))
	}
	const both = mad.MultiSGIDCount | mad.MultiDGIDCount
	var got []byte
	k.tid++
	m := mad.NewSA(mad.MethodGetMulti, mad.AttrMultiPathRecord, 0, k.tid)
	m.ComponentMask = both
	s := mad.NewRMPPSender(m, q.Append(nil))
	var r mad.RMPPReceiver
	k.b.byGMP = func(p *Packet, _ *benchNode) {
		a, _ := mad.ParseSA(p.MAD[:])
		if a.RMPP.Type == mad.RMPPAck {
			s.Take(&a, 1)
			return
		}
		if answer, answered, done, err := r.Take(&a); err == nil {
			if answered {
				k.send(&answer)
			}
			if done {
				_, got = r.Result()
			}
		}
	}
	for range 20 {
		if part, ok := s.Next(1); ok {
			k.send(&part)
		}
		k.b.run(time.Millisecond)
	}
	if len(got) != 64*mad.PathRecordLen {
		t.Errorf("%d bytes of paths, want %d", len(got), 64*mad.PathRecordLen)
	}
	q.SGIDs, q.DGIDs = q.SGIDs[:1], q.DGIDs[:1]
	if head, _ := k.ask(mad.MethodGetMulti, mad.AttrMultiPathRecord, 0, q.Append(nil)); head.Status != mad.SAInsufficientComponents {
		t.Errorf("without counts: status %#x", head.Status)
	}
}

// flood sends a multicast packet from an end port through the tables and returns who gets it.
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

const (
	joinMask   = mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState
	createMask = joinMask | mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel | mad.MemberTrafficClass
)

func (k *asker) memberOf(n *benchNode, gid ib.GID, state uint8) mad.MCMemberRecord {
	return mad.MCMemberRecord{MGID: gid, PortGID: k.sm.sa.gid(n.info.PortGUID + 1), JoinState: state, PKey: 0xffff, QKey: 5}
}

// A service is there until its lease ends or it is withdrawn; its key is nobody else's business.
func TestServices(t *testing.T) {
	k, b, _ := askedBench(t, Config{})
	rec := mad.ServiceRecord{ID: 42, PKey: 0xffff, Lease: 10, Key: [16]byte{1}, Name: [64]byte{'x'}}
	const mask = mad.ServiceComponentID | mad.ServiceComponentPKey | mad.ServiceComponentLease | mad.ServiceComponentKey | mad.ServiceComponentName
	if head, _ := k.ask(mad.MethodSet, mad.AttrServiceRecord, mask, rec.Append(nil)); head.Status != 0 {
		t.Fatalf("status %#x", head.Status)
	}
	other := rec
	other.Key = [16]byte{2}
	if head, _ := k.ask(mad.MethodSet, mad.AttrServiceRecord, mask, other.Append(nil)); head.Status != mad.SARequestInvalid {
		t.Errorf("with another key: status %#x", head.Status)
	}
	find := func(mask uint64, r mad.ServiceRecord) uint16 {
		head, data := k.ask(mad.MethodGet, mad.AttrServiceRecord, mask, r.Append(nil))
		if got, _ := mad.ParseServiceRecord(data); head.Status == 0 && got.Key != [16]byte{} {
			t.Error("the key is shown")
		}
		return head.Status
	}
	if s := find(mad.ServiceComponentName, rec); s != 0 {
		t.Errorf("by name: %#x", s)
	}
	if s := find(mad.ServiceComponentID|mad.ServiceComponentKey, other); s != mad.SANoRecords {
		t.Errorf("by ID and the wrong key: %#x", s)
	}
	b.run(10 * time.Second)
	if s := find(mad.ServiceComponentID, rec); s != mad.SANoRecords {
		t.Errorf("after its lease: %#x", s)
	}
	k.ask(mad.MethodSet, mad.AttrServiceRecord, mask&^mad.ServiceComponentLease, rec.Append(nil))
	b.run(time.Hour)
	if head, _ := k.ask(mad.MethodDelete, mad.AttrServiceRecord, mad.ServiceComponentName, rec.Append(nil)); head.Status != 0 {
		t.Errorf("withdrawn: %#x", head.Status)
	}
	if head, _ := k.ask(mad.MethodDelete, mad.AttrServiceRecord, mad.ServiceComponentName, rec.Append(nil)); head.Status != mad.SANoRecords {
		t.Errorf("withdrawn again: %#x", head.Status)
	}
}

// Who subscribes hears of ports that come and go and of groups (traps 64 to 67), until it does not want to any more.
func TestReports(t *testing.T) {
	k, b, n := askedBench(t, Config{Sweep: 5 * time.Second})
	info := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: true, Type: 0xffff, TrapNumber: 0xffff, ProducerType: 0xffffff}
	subscribe := func() uint16 {
		head, _ := k.ask(mad.MethodSet, mad.AttrInformInfo, 0, info.Append(nil))
		return head.Status
	}
	if s := subscribe(); s != 0 {
		t.Fatalf("status %#x", s)
	}
	subscribe() // once more is the same subscription
	if _, data := k.ask(mad.MethodGetTable, mad.AttrInformInfoRecord, 0, nil); len(data) != 64 {
		t.Errorf("%d bytes of subscriptions", len(data))
	}
	rec := k.memberOf(n[1], ib.GID{0xff, 0x12, 15: 3}, 1)
	k.ask(mad.MethodSet, mad.AttrMCMemberRecord, createMask, rec.Append(nil))
	k.ask(mad.MethodDelete, mad.AttrMCMemberRecord, joinMask, rec.Append(nil))
	b.unlink(n[2], 1)
	b.run(11 * time.Second)
	b.link(n[2], 1, n[5], 1)
	b.run(11 * time.Second)
	var traps []uint16
	for _, m := range k.got {
		notice, _ := mad.ParseNotice(m.Data[:])
		traps = append(traps, notice.TrapNumber)
	}
	if want := []uint16{mad.TrapMulticastCreated, mad.TrapMulticastDeleted, mad.TrapGIDOutOfService, mad.TrapGIDInService}; !equal(traps, want) {
		t.Errorf("traps %v, want %v", traps, want)
	}
	info.Subscribe = false
	if s := subscribe(); s != 0 {
		t.Errorf("unsubscribed: %#x", s)
	}
	if s := subscribe(); s != mad.SARequestInvalid {
		t.Errorf("unsubscribed again: %#x", s)
	}
}

func equal(a, b []uint16) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A client that never acknowledges, as ibsim's own library, keeps neither others nor itself from being answered.
func TestClientWithoutTransfers(t *testing.T) {
	k, b, _ := askedBench(t, Config{})
	k.acks = false
	for range 3 * maxTransfers {
		k.ask(mad.MethodGetTable, mad.AttrNodeRecord, 0, nil)
	}
	if n := len(k.sm.sa.out); n > maxUnanswered {
		t.Errorf("%d transfers are kept", n)
	}
	b.run(time.Minute)
	if n := len(k.sm.sa.out); n != 0 || k.sm.sa.held != 0 {
		t.Errorf("%d transfers with %d bytes are kept for ever", n, k.sm.sa.held)
	}
}

// FuzzAdministration: no request makes it panic, or forget to answer others.
func FuzzAdministration(f *testing.F) {
	s := mad.NewSA(mad.MethodGetTable, mad.AttrPathRecord, 0, 7)
	f.Add(s.Append(nil))
	s = mad.NewSA(mad.MethodSet, mad.AttrMCMemberRecord, 0, 7)
	s.ComponentMask = createMask
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, _, n := askedBench(t, Config{})
		p := Packet{LID: k.lid, QPN: 1}
		copy(p.MAD[:], b)
		p.MAD[0], p.MAD[1], p.MAD[2] = 1, mad.ClassSubnetAdm, mad.ClassVersionSA
		k.sm.Receive(k.b.now, &p)
		k.b.run(time.Second)
		lid := n[0].ports[1].info.LID
		if head, _ := k.ask(mad.MethodGet, mad.AttrNodeRecord, 1, []byte{byte(lid >> 8), byte(lid)}); head.Status != 0 {
			t.Fatalf("afterwards: status %#x", head.Status)
		}
	})
}
