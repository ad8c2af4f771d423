package fabric

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/fabric/topology/drawn"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
	"pgregory.net/rapid"
)

func TestUnlinkAndRelink(t *testing.T) {
	r := small(t)
	r.configure()
	r.activate(7, 1)
	sw, _ := r.Find("sw1")
	r.Unlink(r.now, Place{sw, 7})
	r.Unlink(r.now, Place{sw, 7})
	if i := r.portInfo(7, 1); i.PortState != mad.PortDown || i.PortPhysicalState != mad.PhysicalPolling {
		t.Errorf("the unlinked port is %v and %v, want down and polling", i.PortState, i.PortPhysicalState)
	}
	if r.state(7, 1, 8) != mad.PortDown {
		t.Error("the other end is not down")
	}
	if got := r.counter(mad.PortCounters, 2, 7, "LinkDownedCounter"); got != 1 {
		t.Errorf("LinkDownedCounter is %d", got)
	}
	r.mustChange(7, func(i *mad.PortInfo) { i.PortState = mad.PortDown }, 1)
	if r.state(7, 1) != mad.PortDown {
		t.Error("the port came up without its cable")
	}
	r.Relink(r.now, Place{sw, 7})
	if r.state(7, 1) != mad.PortInit || r.state(7, 1, 7) != mad.PortInit {
		t.Error("the link is not up again")
	}
	for _, at := range []Place{{sw, 0}, {sw, 9}, {sw, 5}} {
		var e *nodeError
		if err := r.Check(at); !errors.As(err, &e) || e.Port != int(at.Port) {
			t.Errorf("port %d: %v", at.Port, err)
		}
	}
}

func TestSetRate(t *testing.T) {
	r := small(t)
	r.configure()
	r.SetRate(r.now, Place{r.at.Node, 1}, topology.Rate{Width: mad.Width1x, Speed: mad.SpeedEDR})
	i := r.portInfo(1)
	if i.ActiveSpeed() != mad.SpeedEDR || i.LinkWidthActive != mad.Width1x || i.PortState != mad.PortInit || i.LID != 4 {
		t.Errorf("%+v, want EDR at 1X, the state INIT and LID 4", i)
	}
	r.SetRate(r.now, Place{r.at.Node, 1}, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedFDR10})
	e, _ := mad.ParseExtendedPortInfo(r.get(mad.AttrMellanoxExtendedPortInfo, 2, 1))
	if i = r.portInfo(1); e.LinkSpeedActive != mad.FDR10 || i.LinkSpeedExtSupported != 0 {
		t.Errorf("%+v and %+v, want FDR10 without extended speeds", e, i)
	}
}

func TestLoss(t *testing.T) {
	r := small(t)
	ask := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	sw, _ := r.Find("sw1")
	for share, want := range map[float64]bool{0: true, 0.4: true, 0.6: false, 1: false} { // the random number is in the middle
		r.SetLoss(Place{sw, 7}, share)
		if _, ok := r.try(ask, 1, 7); ok != want {
			t.Errorf("loss %v: answered %v, want %v", share, ok, want)
		}
		if _, ok := r.try(ask, 1, 8); !ok {
			t.Errorf("loss %v: a packet on another link was lost", share)
		}
	}
	r.SetLoss(Place{sw, 7}, 0)
	if r.loss.on {
		t.Error("loss is on though no link has any")
	}
}

// TestReset: a node that is reset has forgotten all its settings, and its links have trained again.
func TestReset(t *testing.T) {
	r := small(t)
	r.configure()
	sw, _ := r.Find("sw1")
	r.Reset(r.now, sw)
	if i := r.portInfo(0, 1); i.LID != 0 || i.MasterSMLID != 0 || i.PortState != mad.PortActive {
		t.Errorf("the switch's port 0 has %+v, want no LIDs", i)
	}
	if f, _ := mad.ParseLinearForwardingTable(r.get(mad.AttrLinearForwardingTable, 0, 1)); f != unforwarded {
		t.Errorf("the forwarding table is %v, want it empty", f)
	}
	if s, _ := mad.ParseSwitchInfo(r.get(mad.AttrSwitchInfo, 0, 1)); s.LinearFDBTop != 0 || !s.PortStateChange {
		t.Errorf("SwitchInfo %+v, want no top and a changed port", s)
	}
	if i := r.portInfo(1, 1, 1); i.PortState != mad.PortInit || i.LID != 1 {
		t.Errorf("hca1 has %+v, want Init and LID 1", i)
	}
}

// TestLinksAreConsistent: whatever is unlinked, relinked, reset and set, both ends of a link are up or down together
// and agree on its width and speed.
func TestLinksAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := New(drawn.Topology(t), func() uint64 { return 0 })
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			p := &f.ports[rapid.IntRange(0, len(f.ports)-1).Draw(t, "port")]
			at := f.place(p)
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what == 0:
				f.Reset(1, at.Node)
			case f.Check(at) != nil:
			case what == 1:
				f.Unlink(1, at)
			case what == 2:
				f.Relink(1, at)
			case what == 3:
				f.SetRate(1, at, topology.Rate{Width: mad.WidthOf(rapid.SampledFrom([]int{1, 4, 12}).Draw(t, "width")),
					Speed: mad.Speed(rapid.Uint8Range(1, 9).Draw(t, "speed"))})
			default:
				s := mad.NewSMP(mad.MethodSet, mad.AttrPortInfo, uint32(at.Port), 0)
				i := mad.PortInfo{PortState: mad.PortState(rapid.Uint8Range(0, 5).Draw(t, "state")),
					PortPhysicalState: mad.PortPhysicalState(rapid.Uint8Range(0, 4).Draw(t, "physical")),
					LinkWidthEnabled:  rapid.Byte().Draw(t, "width"), LinkSpeedEnabled: rapid.Byte().Draw(t, "speed")}
				i.Append(s.Data[:0])
				if err := s.Direct(nil); err != nil {
					t.Fatal(err)
				}
				var pk Packet
				s.Append(pk.MAD[:0])
				f.Send(1, Place{at.Node, min(at.Port, 1)}, &pk)
			}
		}
		for i := range f.ports {
			p := &f.ports[i]
			if p.peer == noPort {
				continue
			}
			q := &f.ports[p.peer]
			if f.ports[q.peer].number != p.number || p.up() != q.up() || p.cut != q.cut || p.up() && p.cut {
				t.Fatalf("the ends of a link are %v and %v, cut %v and %v", p.info.PortPhysicalState, q.info.PortPhysicalState, p.cut,
					q.cut)
			}
			if p.up() != (p.info.PortState >= mad.PortInit) {
				t.Fatalf("a port is in physical state %v but port state %v", p.info.PortPhysicalState, p.info.PortState)
			}
			if p.up() && (p.info.LinkWidthActive != q.info.LinkWidthActive || p.info.ActiveSpeed() != q.info.ActiveSpeed()) {
				t.Fatalf("the ends of a link disagree:\n%+v\n%+v", p.info, q.info)
			}
		}
	})
}

// FuzzSend: no packet makes the fabric panic, and only requests are answered.
func FuzzSend(f *testing.F) {
	for _, class := range []byte{mad.ClassSubnetDir, mad.ClassSubnetLID, mad.ClassPerf, classVendorPing} {
		for _, attribute := range []byte{0x01, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1b, 0x20, 0x1d} {
			f.Add([]byte{1, class, 1, mad.MethodSet, 0, 0, 0, 1, 16: 0, 17: attribute, 255: 0}, uint16(2), uint32(0))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, lid uint16, qp uint32) {
		r := small(t)
		r.configure()
		var p Packet
		copy(p.MAD[:], b)
		method := p.MAD[3]
		p.DLID, p.DQP = ib.LID(lid), ib.QPN(qp)
		if o := r.Send(r.now, r.at, &p); o.Result == Answered && method != mad.MethodGet && method != mad.MethodSet {
			t.Fatalf("method %#x was answered", method)
		}
		r.Trap(r.now, &p)
	})
}
