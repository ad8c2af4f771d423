package fabric

import (
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// perf gets or sets a performance attribute at a LID and returns the answer.
func (r *rig) perf(method uint8, id uint16, lid ib.LID, data []byte) mad.PMARequest {
	r.Helper()
	q := mad.PMARequest{Header: mad.Header{Method: method, AttributeID: id, TransactionID: 1}, Data: data}
	p := Packet{DLID: lid, DQP: 1, SQP: 1}
	q.Append(p.MAD[:0])
	if o := r.Send(r.now, r.at, &p); o.Result != Answered {
		r.Fatalf("attribute %#x: no answer", id)
	}
	a, err := mad.ParsePMA(p.MAD[:])
	if err != nil {
		r.Fatal(err)
	}
	a.Data = append([]byte(nil), a.Data...)
	return a
}

func TestPMAClassPortInfo(t *testing.T) {
	r := small(t)
	r.configure()
	a := r.perf(mad.MethodGet, mad.AttrClassPortInfo, 1, nil)
	i, err := mad.ParseClassPortInfo(a.Data)
	if err != nil || a.Status != 0 || i.CapabilityMask != mad.CapPMAllPortSelect|mad.CapPMExtendedWidth|mad.CapPMXmitWait|
		mad.CapPMQP1Dropped || i.CapabilityMask2 != mad.Cap2PMAdditionalExtended {
		t.Errorf("the answer %+v has %+v, %v; want the capabilities of the counters", a.Header, i, err)
	}
}

// TestCongestionControl: a node says that it has no attribute of congestion control, and leaves what is no request to
// programs.
func TestCongestionControl(t *testing.T) {
	r := small(t)
	r.configure()
	for _, method := range []uint8{mad.MethodGet, mad.MethodSet, mad.MethodTrap} {
		for _, attribute := range []uint16{mad.AttrClassPortInfo, 0x11, 0x16} {
			q := mad.PMARequest{Header: mad.Header{Method: method, AttributeID: attribute, TransactionID: 1}}
			p := Packet{DLID: 2, DQP: 1, SQP: 1}
			q.Append(p.MAD[:0])
			p.MAD[1], p.MAD[2] = 0x21, 2
			o := r.Send(r.now, r.at, &p)
			a, err := mad.ParseHeader(p.MAD[:])
			if answered := o.Result == Answered; err != nil || answered != (method != mad.MethodTrap) || answered &&
				(a.Method != mad.MethodGetResp || a.Status != mad.StatusAttributeUnsupported) {
				t.Errorf("method %#x, attribute %#x: %v, %+v, %v; want that the attribute is not supported", method, attribute, o, a, err)
			}
		}
	}
}

// TestTrafficIsCounted: each port on the way of a management packet counts it with 72 words: LRH, BTH, DETH, MAD and
// ICRC.
func TestTrafficIsCounted(t *testing.T) {
	r := small(t)
	r.configure()
	read := func(port uint8) (v [4]uint64) {
		for i, name := range []string{"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts"} {
			v[i] = r.counter(mad.PortCountersExtended, 2, port, name)
		}
		return v
	}
	was := read(1) // towards hca1, by which the questions do not go
	r.get(mad.AttrNodeInfo, 0, 1, 1)
	if now := read(1); now != [4]uint64{was[0] + 72, was[1] + 72, was[2] + 1, was[3] + 1} {
		t.Errorf("the counters went from %v to %v, want one packet of 72 words each way", was, now)
	}
	if got := r.counter(mad.PortCountersExtended, 2, 1, "PortUnicastXmitPkts"); got != was[2]+1 {
		t.Errorf("%d unicast packets, want %d", got, was[2]+1)
	}
	if got := r.counter(mad.PortCounters, 2, 1, "PortXmitPkts"); got != was[2]+1 {
		t.Errorf("%d packets in the 32-bit counters, want %d", got, was[2]+1)
	}
}

// TestCountersAreSet: a set writes the counters that CounterSelect names (IBA 16.1.3.5), and 32-bit and 64-bit
// counters are separate.
func TestCountersAreSet(t *testing.T) {
	r := small(t)
	r.configure()
	sw, _ := r.Find("sw1")
	for _, name := range []string{"SymbolErrorCounter", "VL15Dropped", "PortXmitWait", "QP1Dropped"} {
		if err := r.SetCounter(r.now, Place{sw, 1}, name, 7); err != nil {
			t.Fatal(err)
		}
	}
	r.get(mad.AttrNodeInfo, 0, 1, 1)
	var zero [mad.PMADataLen]byte
	mad.PortCounters.Put(zero[:], "PortSelect", 1)
	mad.PortCounters.Put(zero[:], "CounterSelect", 1<<0|1<<14)
	mad.PortCounters.Put(zero[:], "CounterSelect2", 1<<0)
	r.perf(mad.MethodSet, mad.AttrPortCounters, 2, zero[:])
	for name, want := range map[string]uint64{"SymbolErrorCounter": 0, "PortXmitPkts": 0, "PortXmitWait": 0, "VL15Dropped": 7,
		"QP1Dropped": 7} {
		if got := r.counter(mad.PortCounters, 2, 1, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if r.counter(mad.PortCounters, 2, 1, "PortRcvPkts") == 0 || r.counter(mad.PortCountersExtended, 2, 1, "PortXmitPkts") == 0 {
		t.Error("counters that were not selected were cleared")
	}
}

// TestCountersSaturateAndAddUp: a counter stays at its maximum, and port 255 is the sum of all ports.
func TestCountersSaturateAndAddUp(t *testing.T) {
	r := small(t)
	r.configure()
	sw, _ := r.Find("sw1")
	_ = r.SetCounter(r.now, Place{sw, 1}, "SymbolErrorCounter", 5)
	_ = r.SetCounter(r.now, Place{sw, 3}, "SymbolErrorCounter", 6)
	if got := r.counter(mad.PortCounters, 2, mad.PMAAllPorts, "SymbolErrorCounter"); got != 11 {
		t.Errorf("all ports: %d, want 11", got)
	}
	_ = r.SetCounter(r.now, Place{sw, 1}, "SymbolErrorCounter", 1<<20)
	if got := r.counter(mad.PortCounters, 2, 1, "SymbolErrorCounter"); got != 0xffff {
		t.Errorf("a full counter is %#x, want 0xffff", got)
	}
	if err := r.SetCounter(r.now, Place{sw, 1}, "PortXmitPkts", 1); err == nil {
		t.Error("a counter of traffic was set")
	}
}

func TestPMAStatuses(t *testing.T) {
	r := small(t)
	r.configure()
	if a := r.perf(mad.MethodGet, mad.AttrSwPortVLCongestion, 1, []byte{0, 1}); a.Status != mad.StatusAttributeUnsupported {
		t.Errorf("an unknown attribute has status %#x, want unsupported", a.Status)
	}
	if a := r.perf(mad.MethodGet, mad.AttrPortCounters, 1, []byte{0, 2}); a.Status != mad.StatusInvalidField {
		t.Errorf("a port that does not exist has status %#x, want an invalid field", a.Status)
	}
	if a := r.perf(mad.MethodGet, mad.AttrPortCounters, 1, []byte{0, 0}); a.Status != mad.StatusInvalidField {
		t.Errorf("port 0 of an adapter has status %#x, want an invalid field", a.Status)
	}
}

// TestVendorPing: an ibping is answered with the node's description; that of another vendor goes to the program at
// the port.
func TestVendorPing(t *testing.T) {
	r := small(t)
	r.configure()
	p := Packet{DLID: 1, DQP: 1, SQP: 1}
	h := mad.Header{BaseVersion: 1, Class: classVendorPing, ClassVersion: 1, Method: mad.MethodGet}
	h.Append(p.MAD[:0])
	copy(p.MAD[pingOUI:], []byte{0x00, 0x14, 0x05})
	if o := r.Send(r.now, r.at, &p); o.Result != Answered || p.MAD[3] != mad.MethodGetResp ||
		string(p.MAD[pingData:pingData+11]) != "hca1 HCA-1\x00" {
		t.Errorf("outcome %+v, answer %q; want the description of hca1", o, p.MAD[pingData:])
	}
	p.MAD[pingOUI+2], p.DLID = 6, 1
	h.Append(p.MAD[:0])
	if o := r.Send(r.now, r.at, &p); o.Result != Delivered {
		t.Errorf("a ping of another vendor has the outcome %+v, want it delivered", o)
	}
}
