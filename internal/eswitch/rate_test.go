package eswitch

import (
	"math"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// simulate lets functions that always want to send have a wire of a rate, in Mbit/s, for a time, and returns what each had, in Mbit/s.
func simulate(r *Rates, want Set, wire float64, packet int, length time.Duration) map[Port]float64 {
	sent := map[Port]float64{}
	now := clock.Time(0)
	for now < clock.Time(length) {
		p, ok, at := r.Next(now, &want)
		if !ok {
			now = at
			continue
		}
		r.Sent(now, p, packet)
		sent[p] += float64(packet)
		now = now.Add(time.Duration(float64(packet) * 8000 / wire))
	}
	for p := range sent {
		sent[p] = sent[p] * 8 / 1e6 / length.Seconds()
	}
	return sent
}

func near(got, want float64) bool { return math.Abs(got-want) <= 0.03*want }

// TestRates_Maximum: eight functions have their maximum each, with packets and with large sends, and the wire's rest is one's without.
func TestRates_Maximum(t *testing.T) {
	for _, packet := range []int{1514, 64 << 10} {
		var r Rates
		var want Set
		for n := range 8 {
			want.Add(VF(n))
			if err := r.Set(0, VF(n), 0, uint32(100_000*(n+1))); err != nil {
				t.Fatal(err)
			}
		}
		want.Add(PF)
		got := simulate(&r, want, 10_000, packet, 2*time.Second)
		for n := range 8 {
			if w := float64(100 * (n + 1)); !near(got[VF(n)], w) {
				t.Errorf("packets of %d: VF %d has %.1f Mbit/s, want %.1f", packet, n, got[VF(n)], w)
			}
		}
		if !near(got[PF], 10_000-3600) {
			t.Errorf("packets of %d: the PF has %.1f Mbit/s", packet, got[PF])
		}
	}
}

// TestRates_Minimum: while all want more than there is, nobody has less than its minimum, and the rest is shared equally.
func TestRates_Minimum(t *testing.T) {
	var r Rates
	var want Set
	for n := range 4 {
		want.Add(VF(n))
	}
	if err := r.Set(0, VF(0), 600_000, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(0, VF(1), 100_000, 100_000); err != nil {
		t.Fatal(err)
	}
	got := simulate(&r, want, 1000, 1514, 2*time.Second)
	for p, w := range map[Port]float64{VF(0): 700, VF(1): 100, VF(2): 100, VF(3): 100} {
		if !near(got[p], w) {
			t.Errorf("%s has %.1f Mbit/s, want %.1f: %v", p, got[p], w, got)
		}
	}
}

// TestRates_Minimum_TooMuch: minimums of which the wire does not have the sum are held for nobody, and starve nobody.
func TestRates_Minimum_TooMuch(t *testing.T) {
	var r Rates
	var want Set
	for n := range 4 {
		want.Add(VF(n))
		if err := r.Set(0, VF(n), 900_000, 0); err != nil {
			t.Fatal(err)
		}
	}
	for p, mbps := range simulate(&r, want, 1000, 9000, time.Second) {
		if !near(mbps, 250) {
			t.Errorf("%s has %.1f Mbit/s", p, mbps)
		}
	}
}

// TestRates_Return: one that did not want to send for a while gets its share when it does, and not what it left to others.
func TestRates_Return(t *testing.T) {
	var r Rates
	var one, two Set
	one.Add(VF(0))
	two.Add(VF(0))
	two.Add(VF(1))
	simulate(&r, one, 1000, 9000, time.Second)
	now := clock.Time(time.Second)
	sent := map[Port]int{}
	for range 2000 {
		p, _, _ := r.Next(now, &two)
		r.Sent(now, p, 9000)
		sent[p]++
	}
	if n := sent[VF(0)]; n < 980 || n > 1000 {
		t.Errorf("%v of 2000 turns", sent)
	}
}

// TestRates_Refused: rates that cannot be.
func TestRates_Refused(t *testing.T) {
	var r Rates
	for name, err := range map[string]error{
		"minimum above maximum": r.Set(0, VF(0), 2, 1),
		"too much":              r.Set(0, VF(0), 0, math.MaxUint32),
		"too much at least":     r.Set(0, VF(0), math.MaxUint32, 0),
		"no port":               r.Set(0, Port(mostPorts), 0, 0),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if p, ok, at := r.Next(5, &Set{}); ok || at != clock.Never {
		t.Errorf("nobody wants to send, and %s does at %d", p, at)
	}
	if n := r.Room(0, VF(0)); n != burst {
		t.Errorf("without a limit there is room for %d", n)
	}
	if err := r.Set(0, VF(0), 0, 8); err != nil { // 1 byte a millisecond
		t.Fatal(err)
	}
	r.Sent(0, VF(0), burst-100)
	if n := r.Room(0, VF(0)); n != 100 {
		t.Errorf("room for %d, want 100", n)
	}
	var want Set
	want.Add(VF(0))
	if _, ok, at := r.Next(0, &want); ok || at != clock.Time((leastPacket-100)*time.Millisecond) {
		t.Errorf("its turn is at %d", at)
	}
}
