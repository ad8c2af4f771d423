package fabric

import (
	"os"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// rig is a running fabric with a program at one of its ports.
type rig struct {
	testing.TB
	*Fabric
	now  clock.Time
	at   Place
	mkey uint64
	tid  uint64
}

func readSmall(t testing.TB) *topology.Topology {
	t.Helper()
	in, err := os.Open("topology/testdata/small.net")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	top, err := topology.ReadNetlist(in)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// small returns the fabric of topology/testdata/small.net, seen from hca2, which is at port 2 of sw1.
func small(t testing.TB) *rig {
	f := New(readSmall(t), func() uint64 { return 1 << 63 })
	node, err := f.Find("hca2")
	if err != nil {
		t.Fatal(err)
	}
	return &rig{TB: t, Fabric: f, now: 1, at: f.Attach(node)}
}

// try sends a request along a directed path and returns the answer, or false if there is none.
func (r *rig) try(s mad.SMP, path ...uint8) (mad.SMP, bool) {
	r.Helper()
	if err := s.Direct(path); err != nil {
		r.Fatal(err)
	}
	p := Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}
	return r.send(s, &p)
}

// tryLID sends a request to a LID and returns the answer, or false if there is none.
func (r *rig) tryLID(s mad.SMP, lid ib.LID) (mad.SMP, bool) {
	r.Helper()
	return r.send(s, &Packet{DLID: lid})
}

func (r *rig) send(s mad.SMP, p *Packet) (mad.SMP, bool) {
	r.Helper()
	r.tid++
	s.MKey, s.TransactionID = r.mkey, r.tid
	s.Append(p.MAD[:0])
	if o := r.Send(r.now, r.at, p); o.Result != Answered {
		return mad.SMP{}, false
	}
	a, err := mad.ParseSMP(p.MAD[:])
	if err != nil {
		r.Fatal(err)
	}
	if a.Method != mad.MethodGetResp || a.TransactionID != r.tid || a.AttributeID != s.AttributeID ||
		a.AttributeModifier != s.AttributeModifier || a.HopPointer() != 0 ||
		a.Directed() != a.Returning() {
		r.Fatalf("answer %+v to %+v", a.Header, s.Header)
	}
	return a, true
}

// get reads an attribute along a path; there must be an answer with status 0.
func (r *rig) get(attribute uint16, modifier uint32, path ...uint8) []byte {
	r.Helper()
	return r.ok(mad.NewSMP(mad.MethodGet, attribute, modifier, 0), path)
}

func (r *rig) ok(s mad.SMP, path []uint8) []byte {
	r.Helper()
	a, ok := r.try(s, path...)
	if !ok || a.StatusCode() != mad.StatusOK {
		r.Fatalf("attribute %#x modifier %#x along %v: answered %v, status %#x", s.AttributeID, s.AttributeModifier, path, ok,
			a.StatusCode())
	}
	return a.Data[:]
}

func (r *rig) set(attribute uint16, modifier uint32, data []byte, path ...uint8) []byte {
	r.Helper()
	s := mad.NewSMP(mad.MethodSet, attribute, modifier, 0)
	copy(s.Data[:], data)
	return r.ok(s, path)
}

func (r *rig) portInfo(number uint32, path ...uint8) mad.PortInfo {
	r.Helper()
	i, err := mad.ParsePortInfo(r.get(mad.AttrPortInfo, number, path...))
	if err != nil {
		r.Fatal(err)
	}
	return i
}

// change sets PortInfo to its present value with the given change, and returns the status and the new value.
func (r *rig) change(number uint32, change func(*mad.PortInfo), path ...uint8) (status uint16, now mad.PortInfo) {
	r.Helper()
	i := r.portInfo(number, path...)
	i.PortState, i.PortPhysicalState, i.LinkWidthEnabled, i.LinkSpeedEnabled = 0, 0, 0, 0
	change(&i)
	s := mad.NewSMP(mad.MethodSet, mad.AttrPortInfo, number, 0)
	i.Append(s.Data[:0])
	a, ok := r.try(s, path...)
	if !ok {
		r.Fatal("no answer")
	}
	now, err := mad.ParsePortInfo(a.Data[:])
	if err != nil {
		r.Fatal(err)
	}
	return a.StatusCode(), now
}

func (r *rig) mustChange(number uint32, change func(*mad.PortInfo), path ...uint8) mad.PortInfo {
	r.Helper()
	status, i := r.change(number, change, path...)
	if status != mad.StatusOK {
		r.Fatalf("status %#x", status)
	}
	return i
}

func (r *rig) state(number uint32, path ...uint8) mad.PortState {
	return r.portInfo(number, path...).PortState
}

// activate makes a link active, from the port near of the node at the end of path.
func (r *rig) activate(near uint32, path ...uint8) {
	r.Helper()
	for _, s := range []mad.PortState{mad.PortArmed, mad.PortActive} {
		r.mustChange(near, func(i *mad.PortInfo) { i.PortState = s }, path...)
		far := append(path, uint8(near))
		if number := r.get(mad.AttrNodeInfo, 0, far...)[36]; r.state(uint32(number), far...) != s {
			r.mustChange(uint32(number), func(i *mad.PortInfo) { i.PortState = s }, far...)
		}
	}
}

// configure gives hca2 LID 4, sw1 LID 2 and hca1 LID 1, with routes between them and hca2 as their subnet manager.
func (r *rig) configure() {
	r.Helper()
	lid := func(l ib.LID) func(*mad.PortInfo) {
		return func(i *mad.PortInfo) { i.LID, i.MasterSMLID = l, 4 }
	}
	r.mustChange(1, lid(4))
	r.mustChange(0, lid(2), 1)
	r.mustChange(1, lid(1), 1, 1)
	table := unforwarded
	table[1], table[2], table[4] = 1, 0, 2
	r.set(mad.AttrLinearForwardingTable, 0, table[:], 1)
	s := mad.SwitchInfo{LinearFDBTop: 4, LifeTimeValue: 18, PortStateChange: true}
	r.set(mad.AttrSwitchInfo, 0, s.Append(nil), 1)
	r.activate(1)
	r.activate(1, 1)
}

// unforwarded is a block of a linear forwarding table that has not been set.
var unforwarded = func() (b [linearBlock]uint8) {
	for i := range b {
		b[i] = mad.NoPort
	}
	return b
}()
