package fabric

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func (r *rig) counter(attribute *mad.PMAttribute, lid ib.LID, port uint8, name string) uint64 {
	r.Helper()
	var sel [4]byte
	sel[1] = port
	q := mad.PMARequest{Header: mad.Header{Method: mad.MethodGet, AttributeID: attribute.ID, TransactionID: 1}, Data: sel[:]}
	p := Packet{DLID: lid, DQP: 1, SQP: 1}
	q.Append(p.MAD[:0])
	if o := r.Send(r.now, r.at, &p); o.Result != Answered {
		r.Fatalf("%s of LID %d port %d: no answer", attribute.Name, lid, port)
	}
	a, err := mad.ParsePMA(p.MAD[:])
	if err != nil || a.Status != 0 {
		r.Fatalf("%+v %v", a.Header, err)
	}
	return attribute.Get(a.Data, name)
}

// TestForwarding: what a switch does with packets by its linear forwarding table (IBA 18.2.4.3).
func TestForwarding(t *testing.T) {
	r := small(t)
	r.configure()
	ask := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	for lid, want := range map[ib.LID]uint64{1: 0x2c90300001000, 2: 0x2c90200002000, 4: 0x2c90300001002} {
		a, ok := r.tryLID(ask, lid)
		if n, _ := mad.ParseNodeInfo(a.Data[:]); !ok || n.NodeGUID != want {
			t.Errorf("LID %d: answered %v by node %#x", lid, ok, n.NodeGUID)
		}
	}
	drops := func(lid ib.LID, port uint8, counters ...string) {
		t.Helper()
		before := make([]uint64, len(counters))
		for i, c := range counters {
			before[i] = r.anyCounter(port, c)
		}
		if _, ok := r.tryLID(ask, lid); ok {
			t.Errorf("LID %d was answered", lid)
		}
		for i, c := range counters {
			if got := r.anyCounter(port, c); got != before[i]+1 {
				t.Errorf("LID %d: %s of port %d went from %d to %d", lid, c, port, before[i], got)
			}
		}
	}
	drops(3, 2, "PortRcvSwitchRelayErrors", "PortDLIDMappingErrors") // no entry
	drops(5, 2, "PortRcvSwitchRelayErrors", "PortDLIDMappingErrors") // above LinearFDBTop
	table := unforwarded
	table[1], table[2], table[4], table[3] = 1, 0, 2, 2
	r.set(mad.AttrLinearForwardingTable, 0, table[:], 1)
	drops(3, 2, "PortRcvSwitchRelayErrors", "PortLoopingErrors") // would leave by the port it came in by
	table[3] = 5
	r.set(mad.AttrLinearForwardingTable, 0, table[:], 1)
	drops(3, 5, "PortXmitDiscards", "PortInactiveDiscards") // no link
	table[3] = 1
	r.set(mad.AttrLinearForwardingTable, 0, table[:], 1)
	before := r.counter(mad.PortCounters, 1, 1, "PortRcvErrors")
	if _, ok := r.tryLID(ask, 3); ok {
		t.Error("an adapter took a packet for another LID")
	}
	if got := r.counter(mad.PortCounters, 1, 1, "PortRcvErrors"); got != before+1 {
		t.Errorf("PortRcvErrors went from %d to %d", before, got)
	}
}

// anyCounter returns a counter of sw1 by its name, from whichever attribute has it.
func (r *rig) anyCounter(port uint8, name string) uint64 {
	r.Helper()
	for _, a := range []*mad.PMAttribute{mad.PortCounters, mad.PortRcvErrorDetails, mad.PortXmitDiscardDetails} {
		if _, ok := a.Field(name); ok {
			return r.counter(a, 2, port, name)
		}
	}
	r.Fatal("no counter " + name)
	return 0
}

// TestForwardingLoopEnds: a packet in a forwarding loop is dropped in the end and counted as too old.
func TestForwardingLoopEnds(t *testing.T) {
	r := small(t)
	r.configure()
	r.activate(7, 1)
	r.activate(8, 1)
	table := unforwarded
	table[1], table[2], table[4], table[9] = 1, 0, 2, 7
	r.set(mad.AttrLinearForwardingTable, 0, table[:], 1)
	table[9] = 8
	r.set(mad.AttrLinearForwardingTable, 0, table[:], 1, 7)
	for _, path := range [][]uint8{{1}, {1, 7}} {
		s := mad.SwitchInfo{LinearFDBTop: 9}
		r.set(mad.AttrSwitchInfo, 0, s.Append(nil), path...)
	}
	if _, ok := r.tryLID(mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0), 9); ok {
		t.Fatal("a request in a forwarding loop was answered")
	}
	lost := uint64(0)
	for i := range r.ports {
		if c := r.ports[i].counters; c != nil {
			lost += c.value[ctrLifetimeDiscards]
		}
	}
	if lost != 1 {
		t.Errorf("%d packets count as too old, want 1", lost)
	}
}

// TestInactivePortsPassSubnetManagementAlone: a port that is not active passes subnet management packets only (IBA
// 7.2.7).
func TestInactivePortsPassSubnetManagementAlone(t *testing.T) {
	r := small(t)
	r.configure()
	r.mustChange(1, func(i *mad.PortInfo) { i.PortState = mad.PortDown }, 1) // hca1's link comes up again, to Init
	if _, ok := r.tryLID(mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0), 1); !ok {
		t.Error("subnet management does not pass a port in Init")
	}
	p := Packet{DLID: 1, DQP: 1}
	q := mad.PMARequest{Header: mad.Header{Method: mad.MethodGet, AttributeID: mad.AttrPortCounters}, Data: []byte{0, 1}}
	q.Append(p.MAD[:0])
	if o := r.Send(r.now, r.at, &p); o.Result != Dropped {
		t.Errorf("another packet has the outcome %+v, want it dropped", o)
	}
}

// TestLMC: a port is reached at each of its 2^LMC LIDs and at no other.
func TestLMC(t *testing.T) {
	r := small(t)
	r.configure()
	r.mustChange(1, func(i *mad.PortInfo) { i.LID, i.LMC = 8, 2 }, 1, 1)
	table := unforwarded
	table[2], table[4] = 0, 2
	for l := 8; l <= 12; l++ {
		table[l] = 1
	}
	r.set(mad.AttrLinearForwardingTable, 0, table[:], 1)
	s := mad.SwitchInfo{LinearFDBTop: 12}
	r.set(mad.AttrSwitchInfo, 0, s.Append(nil), 1)
	for lid := ib.LID(8); lid <= 12; lid++ {
		if _, ok := r.tryLID(mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0), lid); ok != (lid < 12) {
			t.Errorf("LID %d: answered %v", lid, ok)
		}
	}
}

// TestSMInfoIsTheProgram: SMInfo, and methods other than get and set, go to the program at the port, whose answer
// comes back.
func TestSMInfoIsTheProgram(t *testing.T) {
	r := small(t)
	s := mad.NewSMP(mad.MethodGet, mad.AttrSMInfo, 0, 77)
	if err := s.Direct([]uint8{1, 1}); err != nil {
		t.Fatal(err)
	}
	p := Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}
	s.Append(p.MAD[:0])
	o := r.Send(r.now, r.at, &p)
	hca1, _ := r.Find("hca1")
	if o != (Outcome{Delivered, Place{hca1, 1}}) {
		t.Fatalf("outcome %+v, want it delivered to hca1", o)
	}
	s, err := mad.ParseSMP(p.MAD[:])
	if err != nil || s.HopPointer() != 3 || s.ReturnPath != [64]uint8{1, 2, 1} {
		t.Fatalf("delivered %+v (%v), want the return path filled in", s, err)
	}
	s.Method = mad.MethodGetResp
	s.SetStatus(mad.StatusOK, true)
	s.Append(p.MAD[:0])
	if o := r.Send(r.now, Place{hca1, 1}, &p); o != (Outcome{Delivered, r.at}) {
		t.Fatalf("the answer has the outcome %+v, want it delivered", o)
	}
	if s, err = mad.ParseSMP(p.MAD[:]); err != nil || s.HopPointer() != 0 || s.TransactionID != 77 {
		t.Errorf("the answer is %+v (%v)", s, err)
	}
}

// TestSendDoesNotAllocate: a management packet takes no new memory.
func TestSendDoesNotAllocate(t *testing.T) {
	r := small(t)
	r.configure()
	var directed, routed [mad.Len]byte
	s := mad.NewSMP(mad.MethodGet, mad.AttrPortInfo, 7, 1)
	s.Append(routed[:0])
	if err := s.Direct([]uint8{1, 8}); err != nil {
		t.Fatal(err)
	}
	s.Append(directed[:0])
	var p Packet
	if n := testing.AllocsPerRun(100, func() {
		p = Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive, MAD: directed}
		a := r.Send(r.now, r.at, &p)
		p = Packet{DLID: 2, MAD: routed}
		if b := r.Send(r.now, r.at, &p); a.Result != Answered || b.Result != Answered {
			t.Fatalf("outcomes %+v and %+v, want answers", a, b)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestDirectedRouteWithLIDBehind: a route may continue by LID behind its directed part, from the switch where that
// ends, and answers come back the same way (IBA 14.2.2).
func TestDirectedRouteWithLIDBehind(t *testing.T) {
	r := small(t)
	r.configure()
	ask := func(attribute uint16, lid ib.LID, path ...uint8) (Outcome, Packet) {
		t.Helper()
		s := mad.NewSMP(mad.MethodGet, attribute, 0, 9)
		if err := s.Direct(path); err != nil {
			t.Fatal(err)
		}
		s.DrDLID = lid
		p := Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}
		s.Append(p.MAD[:0])
		return r.Send(r.now, r.at, &p), p
	}
	o, p := ask(mad.AttrNodeDescription, 1, 1)
	if s, err := mad.ParseSMP(p.MAD[:]); o.Result != Answered || err != nil || !strings.HasPrefix(string(s.Data[:]), "hca1") ||
		s.HopPointer() != 0 {
		t.Errorf("outcome %+v, error %v, description %q; want that of hca1", o, err, s.Data[:16])
	}
	for name, o := range map[string]Outcome{
		"a LID that nobody has":        first(ask(mad.AttrNodeInfo, 77, 1)),
		"behind an adapter":            first(ask(mad.AttrNodeInfo, 1, 1, 1)),
		"behind a switch without LIDs": first(ask(mad.AttrNodeInfo, 1, 1, 7)),
	} {
		if o.Result != Dropped {
			t.Errorf("%s: outcome %+v, want it dropped", name, o)
		}
	}
	// To a program, and back.
	o, p = ask(mad.AttrSMInfo, 1, 1)
	hca1, _ := r.Find("hca1")
	if o != (Outcome{Delivered, Place{hca1, 1}}) {
		t.Fatalf("outcome %+v, want it delivered to hca1", o)
	}
	s, err := mad.ParseSMP(p.MAD[:])
	if err != nil || p.SLID != 2 {
		t.Fatalf("delivered from LID %d (%v), want 2", p.SLID, err)
	}
	s.Method = mad.MethodGetResp
	s.SetStatus(mad.StatusOK, true)
	back := Packet{SLID: 1, DLID: p.SLID}
	s.Append(back.MAD[:0])
	if o := r.Send(r.now, Place{hca1, 1}, &back); o != (Outcome{Delivered, r.at}) {
		t.Errorf("the answer has the outcome %+v, want it delivered", o)
	}
}

func first(o Outcome, _ Packet) Outcome { return o }

// TestLEDInfoAndVendorDiag: LEDInfo is kept for each port, and VendorDiag is empty (IBA 14.2.5.14, 14.2.5.15).
func TestLEDInfoAndVendorDiag(t *testing.T) {
	r := small(t)
	if b := r.set(mad.AttrLEDInfo, 7, []byte{0x80}, 1); b[0] != 0x80 {
		t.Errorf("LEDInfo was set to %x, want it on", b[:4])
	}
	if on, off := r.get(mad.AttrLEDInfo, 7, 1), r.get(mad.AttrLEDInfo, 8, 1); on[0] != 0x80 || off[0] != 0 {
		t.Errorf("port 7 has LEDInfo %x, port 8 %x; want on and off", on[:4], off[:4])
	}
	if a, ok := r.try(mad.NewSMP(mad.MethodGet, mad.AttrLEDInfo, 9, 0), 1); !ok || a.StatusCode() != mad.StatusInvalidField {
		t.Errorf("a port that does not exist has status %#x, want an invalid field", a.StatusCode())
	}
	if b := r.get(mad.AttrVendorDiag, 0, 1); b[0] != 0 || b[1] != 0 {
		t.Errorf("VendorDiag is %x, want zeros", b[:4])
	}
}
