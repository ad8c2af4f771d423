package subnet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// subscriber is a program at an adapter that receives Reports and answers them.
type subscriber struct {
	w    *world
	at   fabric.Place
	seen map[uint16]mad.Notice // by trap number
	same int                   // Reports that came again
	tids map[uint64]bool
}

// subscribe makes an adapter subscribe to all notices (IBA 13.4.8.3).
func (w *world) subscribe(node int) *subscriber {
	w.t.Helper()
	s := &subscriber{w: w, at: fabric.Place{Node: node, Port: 1}, seen: map[uint16]mad.Notice{}, tids: map[uint64]bool{}}
	info := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: true, Type: 0xffff, TrapNumber: 0xffff, ProducerType: 0xffffff}
	m := mad.NewSA(mad.MethodSet, mad.AttrInformInfo, 0, 1)
	copy(m.Data[:], info.Append(nil))
	status := uint16(0xffff)
	w.client = func(at fabric.Place, q *fabric.Packet) {
		a, err := mad.ParseSA(q.MAD[:])
		switch {
		case err != nil || at != s.at:
		case a.Method == mad.MethodReport:
			s.report(&a)
		case a.Method == mad.MethodGetResp:
			status = a.Status
		}
	}
	s.send(&m)
	w.run(time.Millisecond)
	if status != mad.StatusOK {
		w.t.Fatalf("the subscription has status %#x", status)
	}
	return s
}

func (s *subscriber) send(m *mad.SA) {
	p := subnet.Packet{LID: s.w.f.PortInfo(s.at).MasterSMLID, QPN: 1, LocalQPN: 1}
	m.Append(p.MAD[:0])
	s.w.carry(s.at, &p)
}

func (s *subscriber) report(m *mad.SA) {
	if s.tids[m.TransactionID] {
		s.same++
	}
	s.tids[m.TransactionID] = true
	if n, err := mad.ParseNotice(m.Data[:]); err == nil {
		s.seen[n.TrapNumber] = n
	}
	m.Method = mad.MethodReportResp
	s.send(m)
}

// TestTrapsReachSubscribers: a trap of a port reaches the subscribers with its content: the manager logs it,
// represses it and forwards it once (IBA 14.2.5.1, 14.3.9, 13.4.8.3).
func TestTrapsReachSubscribers(t *testing.T) {
	_, w := smallTree(t)
	sm := w.manager(0, subnet.Config{Sweep: 10 * time.Second, MKey: 7, MKeyProtect: 1, Partitions: twoPartitions(t)})
	w.run(3 * time.Second)
	if sm.sm.State() != mad.SMMaster {
		t.Fatal(w.log)
	}
	s := w.subscribe(9)
	host := fabric.Place{Node: 2, Port: 1}
	lid := w.f.PortInfo(host).LID
	violate := func(trap uint16, what func(), check func(d *mad.Details) bool) {
		t.Helper()
		what()
		w.run(2 * time.Second)
		n, came := s.seen[trap]
		if !came {
			t.Errorf("trap %d was not reported: %v", trap, w.log[max(0, len(w.log)-5):])
			return
		}
		if !check(&n.DataDetails) {
			t.Errorf("the report of trap %d has other details: %+v", trap, n)
		}
		if !w.heard("trap " + map[uint16]string{129: "129", 130: "130", 131: "131", 256: "256", 257: "257", 258: "258", 259: "259"}[trap]) {
			t.Errorf("trap %d is not in the log", trap)
		}
	}
	atHost := func(d *mad.Details) bool { x := mad.ParseTrapPort(d); return x.LID == lid && x.Port == 1 }
	violate(mad.TrapLinkIntegrity, func() { _ = w.f.SetCounter(w.now, host, "LocalLinkIntegrityErrors", 9) }, atHost)
	violate(mad.TrapBufferOverrun, func() { _ = w.f.SetCounter(w.now, host, "ExcessiveBufferOverrunErrors", 9) }, atHost)
	violate(mad.TrapFlowControl, func() { w.f.FlowControlTimeout(w.now, host) }, atHost)
	violate(mad.TrapBadMKey, func() { w.set(fabric.Place{Node: 9, Port: 1}, lid, mad.AttrPortInfo, 1) }, func(d *mad.Details) bool {
		x := mad.ParseTrapMKey(d)
		return x.LID == lid && x.AttributeID == mad.AttrPortInfo && x.MKey == 1
	})
	key := fabric.KeyViolation{Key: 0x1234, From: 5, To: lid, FromQP: 17, ToQP: 18}
	same := func(d *mad.Details) bool {
		x := mad.ParseTrapKey(d)
		return x.LID1 == 5 && x.LID2 == lid && x.Key == 0x1234 && x.QP1 == 17 && x.QP2 == 18
	}
	violate(mad.TrapBadPKey, func() { w.f.BadPKey(w.now, host, key) }, same)
	violate(mad.TrapBadQKey, func() { w.f.BadQKey(w.now, host, key) }, same)
	// A packet of a partition that only other ports belong to is dropped by the switch.
	violate(mad.TrapBadPKeySwitchPort, func() {
		w.f.Plug(w.now, host, true)
		b := packet(lid, w.f.PortInfo(fabric.Place{Node: 4, Port: 1}).LID, 0x8022)
		if _, err := w.f.Transmit(w.now, host, b, nil, nil); err != nil {
			t.Fatal(err)
		}
	}, func(d *mad.Details) bool {
		x := mad.ParseTrapSwitchPKey(d)
		return x.LID1 == lid && x.PKey == 0x8022
	})
	if s.same > 0 {
		t.Errorf("%d Reports that were answered came again", s.same)
	}
}

// set tries to set an attribute with an M_Key.
func (w *world) set(from fabric.Place, to ib.LID, attr uint16, key uint64) {
	w.tid++
	m := mad.NewSMP(mad.MethodSet, attr, 0, w.tid)
	m.MKey = key
	p := fabric.Packet{DLID: to}
	m.Append(p.MAD[:0])
	w.f.Send(w.now, from, &p)
}

// packet returns a packet of an adapter, from its LRH to its ICRC.
func packet(from, to ib.LID, key ib.PKey) []byte {
	b := make([]byte, ib.LRHLen+ib.BTHLen+64+4)
	h := ib.LRH(b)
	h.SetNextHeader(ib.LNHLocal)
	h.SetDLID(to)
	h.SetPktLen(len(b) / 4)
	b[6], b[7] = byte(from>>8), byte(from)
	bth := ib.BTH(b[ib.LRHLen:])
	bth.SetPKey(key)
	bth.SetDestQP(17)
	return b
}

// twoPartitions are the default partition and one without members in this fabric.
func twoPartitions(t *testing.T) *partition.Config {
	t.Helper()
	p, err := partition.Parse(strings.Join([]string{"Default=0x7fff: ALL=full;", "Other=0x22: 0x1=full;"}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
