package fabric

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// takes reports whether Transmit would take a packet of a service level.
func takes(f *Fabric, at Place, sl uint8) bool {
	p := f.port(at)
	return !p.full(false, p.laneOf(0, sl))
}

// TestCredits: a receiver that does not receive is sent no more than it has room for. Nothing is lost, and the
// waiting is counted.
func TestCredits(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	var now clock.Time
	taken := uint64(0)
	for {
		ok, err := f.Transmit(now, Place{0, 1}, frame(1, 2, 0, ib.PKeyDefault, 4096, taken), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if takes(f, Place{0, 1}, 0) {
				t.Error("Transmit refused a packet though there is room")
			}
			if now = max(now, settle(f)); !takes(f, Place{0, 1}, 0) {
				break
			}
			continue
		}
		taken++
	}
	if got := f.port(Place{1, 1}).lanes.arrived.count; got != 4 {
		t.Errorf("%d packets are at the receiver, want 4", got)
	}
	if got := f.port(Place{2, 2}).lanes.out[0].used; got > laneBuffer {
		t.Errorf("%d bytes count as taken, want at most %d", got, laneBuffer)
	}
	for want := range taken {
		now = now.Add(time.Millisecond)
		if got := received(f, now, 1); len(got) == 0 || numberOf(got) != want {
			t.Fatalf("packet %d: %d bytes arrived", want, len(got))
		}
		settle(f)
	}
	if f.port(Place{2, 2}).all().value[ctrXmitWait] == 0 {
		t.Error("PortXmitWait is 0")
	}
	conserved(t, f)
}

// shares returns an arbitration table from pairs of a lane and its weight.
func shares(v ...uint8) (t mad.VLArbitrationTable) {
	for i := 0; i < len(v); i += 2 {
		t[i/2] = mad.VLArbitration{VL: v[i], Weight: v[i+1]}
	}
	return t
}

// TestArbitration: lanes share a link by the weights of the low priority table, and the high priority table goes
// first as far as VLHighLimit allows (IBA 7.6.9).
func TestArbitration(t *testing.T) {
	for _, c := range []struct {
		name      string
		low, high mad.VLArbitrationTable
		limit     uint8
		share     [3]int // percent for each of three lanes
	}{
		{"alike", shares(0, 64, 1, 64, 2, 64), shares(), 0, [3]int{33, 33, 33}},
		{"1 to 2 to 5", shares(0, 32, 1, 64, 2, 160), shares(), 0, [3]int{12, 25, 62}},
		{"a lane in no table", shares(0, 64, 1, 64), shares(), 0, [3]int{50, 50, 0}},
		{"high without limit", shares(0, 64, 1, 64), shares(2, 1), 255, [3]int{0, 0, 100}},
		{"high and low in turn", shares(0, 64, 1, 64), shares(2, 1), 0, [3]int{25, 25, 50}},
		{"12 KB of high for one low", shares(0, 64, 1, 64), shares(2, 1), 3, [3]int{7, 7, 85}},
	} {
		f := star(t, 2, topology.Rate{})
		p := f.port(Place{0, 1})
		p.info.VLHighLimit = c.limit
		p.table().arbitration = &[2]mad.VLArbitrationTable{c.low, c.high}
		var count [3]int
		var now clock.Time
		for total := 0; total < 2000; {
			for sl := range uint8(3) {
				for takes(f, Place{0, 1}, sl) {
					transmit(t, f, now, 0, frame(1, 2, sl, ib.PKeyDefault, 2048, 0))
				}
			}
			now = f.Deadline()
			f.Advance(now)
			for b := received(f, now, 1); len(b) > 0; b = received(f, now, 1) {
				count[ib.LRH(b).SL()]++
				total++
			}
		}
		for i, n := range count {
			if got := n * 100 / 2000; got < c.share[i]-3 || got > c.share[i]+3 {
				t.Errorf("%s: lane %d has %d %%, want %d", c.name, i, got, c.share[i])
			}
		}
	}
}

// TestHeadOfQueueLife: a switch drops a packet that stays at the head of its lane for too long. After VLStallCount of
// them the lane drops everything for eight times as long (IBA 18.2.5.4).
func TestHeadOfQueueLife(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	out := f.port(Place{2, 2})
	out.info.HOQLife, out.info.VLStallCount = 10, 2 // 4.2 ms
	life := 4096 * time.Nanosecond << 10
	var now clock.Time
	for i := range uint64(16) {
		for !takes(f, Place{0, 1}, 0) {
			now = f.Deadline()
			f.Advance(now)
		}
		transmit(t, f, now, 0, frame(1, 2, 0, ib.PKeyDefault, 4096, i))
	}
	f.Advance(clock.Time(life / 2))
	if got := out.all().value[ctrHOQDiscards]; got != 0 {
		t.Fatalf("%d packets were dropped too early", got)
	}
	f.Advance(clock.Time(3 * life))
	// Two packets were too old, and with the second all that waited went; then those that came into the stalled lane.
	if got := out.all().value[ctrHOQDiscards]; got != 12 {
		t.Errorf("%d packets are dropped, want 12", got)
	}
	if out.all().value[ctrXmitDiscards] != out.all().value[ctrHOQDiscards] {
		t.Error("PortXmitDiscards does not count them")
	}
	for i := range uint64(4) {
		if got := received(f, clock.Time(3*life), 1); len(got) == 0 || numberOf(got) != i {
			t.Errorf("packet %d: %d bytes arrived", i, len(got))
		}
	}
	f.Advance(clock.Time(12 * life))
	transmit(t, f, clock.Time(12*life), 0, frame(1, 2, 0, ib.PKeyDefault, 8, 99))
	if got := received(f, settle(f), 1); len(got) == 0 || numberOf(got) != 99 {
		t.Error("the lane is still stalled")
	}
}

// TestSwitchLifetime: a packet that stays in a switch for longer than LifeTimeValue is dropped.
func TestSwitchLifetime(t *testing.T) {
	f := star(t, 2, topology.Rate{})
	f.nodes[2].sw.info.LifeTimeValue = 0
	for i := range uint64(10) {
		transmit(t, f, 0, 0, frame(1, 2, 0, ib.PKeyDefault, 4096, i))
	}
	settle(f)
	now := clock.Time(time.Second)
	for n := 0; ; n++ {
		if len(received(f, now, 1)) == 0 {
			if n != 6 {
				t.Errorf("%d packets arrived, want 6: the 4 that had room at the receiver and the 2 that had not reached the switch", n)
			}
			break
		}
		now = max(now, settle(f))
	}
	if got := f.port(Place{2, 2}).all().value[ctrLifetimeDiscards]; got != 4 {
		t.Errorf("%d packets were dropped, want 4", got)
	}
}
