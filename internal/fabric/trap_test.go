package fabric

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// subnetTimeout is how long a trap waits with a port's initial SubnetTimeOut.
const subnetTimeout = 4096 * time.Nanosecond << 18

// trap returns the next trap that is due, which must go to the program, and its transaction ID.
func (r *rig) trap() (mad.Notice, uint64, bool) {
	r.Helper()
	var p Packet
	o, ok := r.Trap(r.now, &p)
	if !ok {
		return mad.Notice{}, 0, false
	}
	if o != (Outcome{Delivered, r.at}) {
		r.Fatalf("the trap had the outcome %+v, want it at the program", o)
	}
	s, err := mad.ParseSMP(p.MAD[:])
	if err != nil || s.Method != mad.MethodTrap || s.AttributeID != mad.AttrNotice || s.Directed() {
		r.Fatalf("%+v %v", s.Header, err)
	}
	n, err := mad.ParseNotice(s.Data[:])
	if err != nil || !n.IsGeneric || n.IssuerLID != p.SLID {
		r.Fatalf("%+v %v", n, err)
	}
	return n, s.TransactionID, true
}

func (r *rig) repress(tid uint64, lid ib.LID) {
	r.Helper()
	s := mad.NewSMP(mad.MethodTrapRepress, mad.AttrNotice, 0, tid)
	p := Packet{DLID: lid}
	s.Append(p.MAD[:0])
	if o := r.Send(r.now, r.at, &p); o.Result != Dropped {
		r.Fatalf("%+v", o)
	}
}

// TestTrapIsRepeatedUntilRepressed: a trap is sent again once in a SubnetTimeOut until it is repressed, and what
// happens meanwhile is reported after that, not sooner (IBA 14.3.9, 14.3.13).
func TestTrapIsRepeatedUntilRepressed(t *testing.T) {
	r := small(t)
	r.configure()
	sw, err := r.Find("sw1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := r.trap(); ok || r.TrapDeadline() != clock.Never {
		t.Fatal("a trap was sent though nothing has happened")
	}
	r.Unlink(r.now, Place{sw, 7})
	n, first, ok := r.trap()
	if !ok || n.TrapNumber != mad.TrapLinkStateChange || n.Type != mad.NoticeUrgent || n.ProducerType != uint32(mad.NodeSwitch) ||
		mad.ParseTrapSwitch(&n.DataDetails).LID != 2 {
		t.Fatalf("there is a trap: %v, %+v; want one of LID 2", ok, n)
	}
	if _, _, ok := r.trap(); ok {
		t.Error("the trap was sent twice at once")
	}
	if r.TrapDeadline() != r.now.Add(subnetTimeout) {
		t.Errorf("due at %v", r.TrapDeadline())
	}
	r.now = r.TrapDeadline()
	if _, again, ok := r.trap(); !ok || again != first {
		t.Errorf("not repeated: %v %d", ok, again)
	}
	r.Relink(r.now, Place{sw, 7})
	r.repress(first, 2)
	if _, _, ok := r.trap(); ok {
		t.Error("the next change was reported too soon")
	}
	r.now = r.TrapDeadline()
	_, second, ok := r.trap()
	if !ok || second == first {
		t.Fatalf("the next change was not reported: %v, transaction %d", ok, second)
	}
	r.repress(first, 2)
	r.repress(second, 2)
	r.now = r.now.Add(time.Hour)
	if _, _, ok := r.trap(); ok || r.TrapDeadline() != clock.Never || len(r.traps.at) != 0 {
		t.Error("the trap was sent again after it was repressed")
	}
}

// TestTraps: the content of each trap, and the port that sends it (IBA 14.2.5.1).
func TestTraps(t *testing.T) {
	hca1 := func(r *rig) Place { i, _ := r.Find("hca1"); return Place{i, 1} }
	sw1 := func(r *rig) Place { i, _ := r.Find("sw1"); return Place{i, 3} }
	for _, c := range []struct {
		number uint16
		do     func(*rig)
		want   mad.Details
	}{
		{mad.TrapLinkIntegrity, func(r *rig) { _ = r.SetCounter(r.now, sw1(r), "LocalLinkIntegrityErrors", 1) },
			mad.TrapPort{LID: 2, Port: 3}.Details()},
		{mad.TrapBufferOverrun, func(r *rig) { _ = r.SetCounter(r.now, sw1(r), "ExcessiveBufferOverrunErrors", 1) },
			mad.TrapPort{LID: 2, Port: 3}.Details()},
		{mad.TrapFlowControl, func(r *rig) { r.FlowControlTimeout(r.now, sw1(r)) }, mad.TrapPort{LID: 2, Port: 3}.Details()},
		{mad.TrapCapabilityMask, func(r *rig) { r.SetIsSM(hca1(r), true) },
			mad.TrapCapability{LID: 1, CapabilityMask: portCapabilities | mad.CapIsSM}.Details()},
		{mad.TrapCapabilityMask, func(r *rig) { r.SetDescription(r.now, hca1(r).Node, "new") },
			mad.TrapCapability{LID: 1, OtherLocalChanges: true, CapabilityMask: portCapabilities,
				ChangeFlags: mad.ChangedNodeDescription}.Details()},
		{mad.TrapSystemImageGUID, func(r *rig) { r.SetSystemImageGUID(r.now, hca1(r).Node, 99) },
			mad.TrapSystemImage{LID: 1, SystemImageGUID: 99}.Details()},
		{mad.TrapBadMKey, func(r *rig) {
			r.mustChange(1, func(i *mad.PortInfo) { i.MKey = 5 }, 1, 1)
			r.mkey = 6
			r.try(mad.NewSMP(mad.MethodSet, mad.AttrPKeyTable, 3, 0), 1, 1)
		}, mad.TrapMKey{LID: 1, DrSLID: ib.LIDPermissive, Method: mad.MethodSet, AttributeID: mad.AttrPKeyTable, AttributeModifier: 3,
			MKey:     6,
			Directed: true, Hops: 2, ReturnPath: [30]uint8{2, 1}}.Details()},
		{mad.TrapBadPKey, func(r *rig) {
			r.BadPKey(r.now, hca1(r), KeyViolation{From: 4, To: 1, Key: 7, SL: 3, FromQP: 5, ToQP: 6})
		},
			mad.TrapKey{LID1: 4, LID2: 1, Key: 7, SL: 3, QP1: 5, QP2: 6}.Details()},
		{mad.TrapBadQKey, func(r *rig) {
			r.BadQKey(r.now, hca1(r), KeyViolation{From: 4, To: 1, Key: 7, SL: 3, FromQP: 5, ToQP: 6})
		},
			mad.TrapKey{LID1: 4, LID2: 1, Key: 7, SL: 3, QP1: 5, QP2: 6}.Details()},
	} {
		r := small(t)
		c.do(r) // there is no subnet manager yet
		if _, _, ok := r.trap(); ok {
			t.Errorf("trap %d was sent without a subnet manager", c.number)
		}
		r = small(t)
		r.configure()
		c.do(r)
		if n, _, ok := r.trap(); !ok || n.TrapNumber != c.number || n.DataDetails != c.want {
			t.Errorf("trap %d: %v %d\n%x, want\n%x", c.number, ok, n.TrapNumber, n.DataDetails, c.want)
		}
	}
}

// TestTrapsAreBounded: however often things happen, there are at most as many waiting traps as ports times kinds of
// traps.
func TestTrapsAreBounded(t *testing.T) {
	r := small(t)
	r.configure()
	sw, _ := r.Find("sw1")
	for i := range 1000 {
		_ = r.SetCounter(r.now, Place{sw, uint8(i%8 + 1)}, "LocalLinkIntegrityErrors", uint64(i))
		r.Unlink(r.now, Place{sw, 7})
		r.Relink(r.now, Place{sw, 7})
	}
	if got := len(r.traps.all); got > 10 {
		t.Errorf("%d traps wait", got)
	}
}
