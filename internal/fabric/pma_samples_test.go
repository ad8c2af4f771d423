package fabric

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// asked is a fabric with data whose first adapter asks for performance attributes.
type asked struct {
	*rig
}

func askedStar(t *testing.T, hosts int, rate topology.Rate) asked {
	t.Helper()
	f := star(t, hosts, rate)
	return asked{&rig{TB: t, Fabric: f, at: Place{0, 1}}}
}

func (a asked) until(now clock.Time) {
	for a.Deadline() <= now {
		a.Advance(a.Deadline())
	}
	a.Advance(now)
	a.rig.now = now
}

// TestSampling: a sampling waits, counts for its time, and then shows its counts (IBA 16.1.3.2 to 16.1.3.4).
func TestSampling(t *testing.T) {
	a := askedStar(t, 3, topology.Rate{})
	sc := mad.PortSamplesControl
	var set [mad.PMADataLen]byte
	for name, v := range map[string]uint64{"PortSelect": 2, "SampleStart": 1000, "SampleInterval": 2000, "Tag": 77,
		"CounterSelect0": selectXmitPkts, "CounterSelect1": selectXmitData, "CounterSelect2": selectRcvPkts} {
		if !sc.Put(set[:], name, v) {
			t.Fatal(name)
		}
	}
	a.rig.now = 1
	got := a.perf(mad.MethodSet, mad.AttrPortSamplesControl, 4, set[:]) // of the switch, which has LID 4
	if got.Status != 0 || sc.Get(got.Data, "SampleStatus") != sampleDelayed || sc.Get(got.Data, "Tick") != tickCode ||
		sc.Get(got.Data, "CounterWidth") != 4 {
		t.Fatalf("status %#x: %x", got.Status, got.Data[:80])
	}
	send := func() {
		t.Helper()
		transmit(t, a.Fabric, a.rig.now, 0, frame(1, 2, 0, ib.PKeyDefault, 64, 0))
		a.until(a.rig.now.Add(10 * time.Microsecond))
		received(a.Fabric, a.rig.now, 1)
	}
	status := func() uint64 {
		t.Helper()
		return mad.PortSamplesResult.Get(a.perf(mad.MethodGet, mad.AttrPortSamplesResult, 4, nil).Data, "SampleStatus")
	}
	send() // before the sampling begins
	a.until(clock.Time(1100 * time.Microsecond))
	if s := status(); s != sampleRunning {
		t.Errorf("status %d after 1.1 ms, want %d", s, sampleRunning)
	}
	for range 5 {
		send()
	}
	// A second set while a sampling runs changes nothing.
	sc.Put(set[:], "Tag", 78)
	if got := a.perf(mad.MethodSet, mad.AttrPortSamplesControl, 4, set[:]); sc.Get(got.Data, "Tag") != 77 || got.Status != 0 {
		t.Errorf("a sampling under way was changed: tag %d, status %#x", sc.Get(got.Data, "Tag"), got.Status)
	}
	a.until(clock.Time(3100 * time.Microsecond))
	send() // after its end
	r := a.perf(mad.MethodGet, mad.AttrPortSamplesResult, 4, nil).Data
	words := uint64(minFrame+64) / 4
	for name, want := range map[string]uint64{"Tag": 77, "SampleStatus": sampleDone, "Counter0": 5, "Counter1": 5 * words, "Counter2": 0,
		"Counter3": 0} {
		if v := mad.PortSamplesResult.Get(r, name); v != want {
			t.Errorf("%s is %d, want %d", name, v, want)
		}
	}
	for name, bad := range map[string]uint64{"PortSelect": 9, "CounterSelect14": 6} {
		wrong := set
		sc.Put(wrong[:], name, bad)
		if got := a.perf(mad.MethodSet, mad.AttrPortSamplesControl, 4, wrong[:]); got.Status != mad.StatusInvalidField {
			t.Errorf("%s %d: status %#x, want an invalid field", name, bad, got.Status)
		}
	}
}

// TestExtendedErrors: PortCountersExtended has 64-bit error counters separate from those of PortCounters (IBA
// 16.1.4.11).
func TestExtendedErrors(t *testing.T) {
	a := askedStar(t, 2, topology.Rate{})
	at := Place{2, 1}
	if err := a.SetCounter(a.rig.now, at, "SymbolErrorCounter", 1<<40); err != nil {
		t.Fatal(err)
	}
	a.port(at).count(ctrXmitWait, 1<<33)
	x, c := mad.PortCountersExtended, mad.PortCounters
	if v := a.counter(x, 3, 1, "SymbolErrorCounter"); v != 1<<40 {
		t.Errorf("symbol errors %#x", v)
	}
	if v := a.counter(x, 3, 1, "PortXmitWait"); v != 1<<33 {
		t.Errorf("XmitWait %#x", v)
	}
	var zero [mad.PMADataLen]byte
	x.Put(zero[:], "PortSelect", 1)
	x.Put(zero[:], "CounterSelect2", 1)
	a.perf(mad.MethodSet, mad.AttrPortCountersExtended, 3, zero[:])
	if v := a.counter(x, 3, 1, "SymbolErrorCounter"); v != 0 {
		t.Errorf("symbol errors %#x after a reset", v)
	}
	if a.counter(x, 3, 1, "PortXmitWait") != 1<<33 || a.counter(c, 3, 1, "SymbolErrorCounter") != 0xffff {
		t.Error("other counters were reset too")
	}
}

// TestDataByServiceLevel: data is counted by service level, and packets to groups apart from others (IBA annex 13,
// 16.1.4.11).
func TestDataByServiceLevel(t *testing.T) {
	a := askedStar(t, 3, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR})
	const group = ib.LIDFirstMulticast + 5
	a.nodes[3].sw.cast = [][]uint16{make([]uint16, 64)}
	a.nodes[3].sw.cast[0][5] = 1<<2 | 1<<3
	for sl := range uint8(3) {
		transmit(t, a.Fabric, 0, 0, frame(1, 2, sl, ib.PKeyDefault, 64*(1+int(sl)), 0))
	}
	transmit(t, a.Fabric, 0, 0, frame(1, group, 1, ib.PKeyDefault, 64, 0))
	a.until(settle(a.Fabric))
	sent, got := mad.PortXmitDataSL, mad.PortRcvDataSL
	for sl, bytes := range []uint64{64, 128 + 64, 192, 0} {
		frames := []uint64{1, 2, 1, 0}[sl]
		if v := a.counter(sent, 1, 1, "XmtDataSL"+string(rune('0'+sl))); v != (bytes+frames*uint64(minFrame))/4 {
			t.Errorf("sent on service level %d: %d words, want %d", sl, v, (bytes+frames*uint64(minFrame))/4)
		}
	}
	if v := a.counter(got, 2, 1, "RcvDataSL2"); v != uint64(192+minFrame)/4 {
		t.Errorf("received on service level 2: %d words, want %d", v, uint64(192+minFrame)/4)
	}
	x := mad.PortCountersExtended
	if v := a.counter(x, 3, 1, "PortMulticastRcvPkts"); v != 1 {
		t.Errorf("%d packets to groups, want 1", v)
	}
	all, multi := a.counter(x, 4, 1, "PortRcvPkts"), a.counter(x, 4, 1, "PortMulticastRcvPkts")
	if uni := a.counter(x, 4, 1, "PortUnicastRcvPkts"); multi != 1 || uni < all-multi {
		t.Errorf("%d packets, %d to groups, %d to ports", all, multi, uni)
	}
	// A packet damaged on a link with forward error correction counts as a block that could not be corrected.
	a.SetLoss(Place{1, 1}, 1)
	transmit(t, a.Fabric, a.rig.now, 0, frame(1, 2, 0, ib.PKeyDefault, 64, 0))
	a.until(settle(a.Fabric))
	a.SetLoss(Place{1, 1}, 0)
	if v := a.counter(mad.PortExtendedSpeedsCounters, 2, 1, "FECUncorrectableBlockCtrLane0"); v != 1 {
		t.Errorf("%d blocks count as not corrected, want 1", v)
	}
}

// TestWaitByLane: the time that packets wait for credits is counted by lane too (IBA 16.1.4.8).
func TestWaitByLane(t *testing.T) {
	a := askedStar(t, 2, topology.Rate{})
	a.port(Place{2, 2}).info.HOQLife = 31
	for range 40 {
		transmit(t, a.Fabric, 0, 0, frame(1, 2, 3, ib.PKeyDefault, 2048, 0))
	}
	now := settle(a.Fabric)
	a.until(now.Add(time.Millisecond))
	for received(a.Fabric, a.rig.now, 1) != nil {
		a.until(a.rig.now.Add(10 * time.Microsecond))
	}
	if a.counter(mad.PortVLXmitWaitCounters, 3, 2, "PortVLXmitWait3") == 0 || a.counter(mad.PortVLXmitWaitCounters, 3, 2,
		"PortVLXmitWait0") != 0 {
		t.Error("lane 3 has not waited, or lane 0 has")
	}
}
