package congestion

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

const us = time.Microsecond

// recorded are the parameters of testdata/reaction-2to1.csv.
func recorded() Parameters {
	return Parameters{LineRate: 40000, ClampTargetAfterTime: true, TimeReset: 300 * us, Threshold: 1, AIRate: 8, HAIRate: 80,
		AlphaShift: 11, MinDecrease: 0.5, MinRate: 100, G: 1.0 / 256, AlphaPeriod: us, ReducePeriod: 4 * us, InitialAlpha: 1}
}

// TestReactionPoint_Recording: two flows of a simulator written elsewhere (an incast of 2:1 at 40 Gb/s), whose notifications
// are repeated here, have the same alpha and the same rates at every event.
func TestReactionPoint_Recording(t *testing.T) {
	f, err := os.Open("testdata/reaction-2to1.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	p := recorded()
	flows := map[string]*ReactionPoint{}
	for i, row := range rows[1:] {
		var v [7]float64
		for j := range v {
			if j != 2 && j != 1 {
				if v[j], err = strconv.ParseFloat(row[j], 64); err != nil {
					t.Fatal(err)
				}
			}
		}
		now, r := clock.Time(v[0]), flows[row[1]]
		if r == nil {
			flows[row[1]] = NewReactionPoint(&p)
			flows[row[1]].Notified(now)
			continue
		}
		got, _ := r.Rate(now)
		for _, x := range []struct {
			name      string
			got, want float64
		}{{"alpha", got.Alpha, v[3]}, {"target", got.Target, v[4]}, {"current", got.Current, v[5]}} {
			if math.Abs(x.got-x.want) > 1e-6*max(1, x.want) {
				t.Fatalf("row %d (%v): %s is %v, want %v", i+2, row, x.name, x.got, x.want)
			}
		}
		if row[2] == "cnp" {
			r.Notified(now)
		}
	}
	if len(flows) != 2 || len(rows) != 286 {
		t.Errorf("%d flows in %d rows", len(flows), len(rows))
	}
}

// step is what happens to a reaction point, and what its rate is then.
type step struct {
	at    time.Duration
	cnp   bool
	bytes int
	want  Rate // Alpha is not compared if negative
}

// TestReactionPoint_Parameters: each parameter does what the manual's formulas say, worked out by hand (WinOF-2 Ethernet b,
// alpha, "RP" Decrease, "RP" Increase).
func TestReactionPoint_Parameters(t *testing.T) {
	base := func(change func(*Parameters)) Parameters {
		p := Parameters{LineRate: 10000, ClampTargetAfterTime: true, TimeReset: 100 * us, Threshold: 2, AIRate: 10, HAIRate: 100,
			AlphaShift: 11, MinDecrease: 0.5, MinRate: 1, G: 32.0 / 1024, AlphaPeriod: 4 * us, ReducePeriod: 32 * us, InitialAlpha: 1}
		change(&p)
		return p
	}
	none := func(*Parameters) {}
	alpha := func(a float64, periods int) float64 { return a * math.Pow(1-32.0/1024, float64(periods)) }
	// Of a notification at 0 with alpha 1 that decreases the rate at 32 us, behind 8 periods of alpha.
	a8 := alpha(1, 8)
	cr := 10000 * (1 - a8/2)
	for name, c := range map[string]struct {
		p     Parameters
		steps []step
	}{
		"nothing limits before the first notification": {base(none), []step{{at: 50 * us, want: Rate{10000, 10000, -1}}}},
		"DcqcnInitialAlphaValue": {base(func(p *Parameters) { p.InitialAlpha = 0.25 }), []step{
			{cnp: true, want: Rate{10000, 10000, 0.25}},
		}},
		"DcqcnDceTcpG without another notification": {base(none), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 4*us - 1, want: Rate{10000, 10000, 1}},
			{at: 4 * us, want: Rate{10000, 10000, 1 - 32.0/1024}},
			{at: 8 * us, want: Rate{10000, 10000, (1 - 32.0/1024) * (1 - 32.0/1024)}},
		}},
		"DcqcnDceTcpG with one in the first period": {base(func(p *Parameters) { p.InitialAlpha = 0.5 }), []step{
			{cnp: true, want: Rate{10000, 10000, 0.5}},
			{at: us, cnp: true, want: Rate{10000, 10000, 0.5}},
			{at: 4 * us, want: Rate{10000, 10000, 0.5*(1-32.0/1024) + 32.0/1024}},
		}},
		"DcqcnDceTcpRtt": {base(func(p *Parameters) { p.AlphaPeriod = 10 * us }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 9 * us, want: Rate{10000, 10000, 1}},
			{at: 20 * us, want: Rate{10000, 10000, alpha(1, 2)}},
		}},
		"DcqcnDceTcpRtt 0": {base(func(p *Parameters) { p.AlphaPeriod = 0 }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 31 * us, cnp: true, want: Rate{10000, 10000, 1}},
			{at: 33 * us, want: Rate{5000, 10000, 1}},
		}},
		"DcqcnRateReduceMonitorPeriod": {base(none), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 32 * us, want: Rate{10000, 10000, a8}},
			{at: 33 * us, want: Rate{cr, 10000, a8}},
			{at: 65 * us, want: Rate{cr, 10000, alpha(1, 16)}}, // no notification in the second period
			{at: 70 * us, cnp: true, want: Rate{cr, 10000, alpha(1, 17)}},
			{at: 71 * us, cnp: true, want: Rate{cr, 10000, alpha(1, 17)}},
			// One decrease for both, at 96 us: alpha followed the notifications in the period that ended at 72 us.
			{at: 97 * us, want: Rate{cr * (1 - alpha(alpha(1, 18)+32.0/1024, 6)/2), 10000, alpha(alpha(1, 18)+32.0/1024, 6)}},
		}},
		"DcqcnRateReduceMonitorPeriod 0": {base(func(p *Parameters) { p.ReducePeriod = 0 }), []step{
			{cnp: true, want: Rate{5000, 10000, 1}},
			{at: us, cnp: true, want: Rate{2500, 10000, 1}},
		}},
		"DcqcnAlphaToRateShift": {base(func(p *Parameters) { p.InitialAlpha, p.AlphaShift, p.AlphaPeriod = 0.25, 10, 0 }), []step{
			{cnp: true, want: Rate{10000, 10000, 0.25}},
			{at: 33 * us, want: Rate{7500, 10000, 0.25}},
		}},
		"DcqcnRpgMinDecFac": {base(func(p *Parameters) { p.AlphaPeriod, p.MinDecrease = 0, 0.75 }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 33 * us, want: Rate{7500, 10000, 1}},
		}},
		"DcqcnRpgMinRate": {base(func(p *Parameters) { p.AlphaPeriod, p.MinRate = 0, 6000 }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 33 * us, want: Rate{6000, 10000, 1}},
		}},
		"DcqcnRpgMinRate at the line rate": {base(func(p *Parameters) { p.MinRate = 10000 }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 33 * us, want: Rate{10000, 10000, -1}},
		}},
		"DcqcnRateToSetOnFirstCnp": {base(func(p *Parameters) { p.FirstCNPRate, p.AlphaPeriod = 3000, 0 }), []step{
			{cnp: true, want: Rate{3000, 3000, 1}},
			{at: 33 * us, want: Rate{1500, 3000, 1}},
			{at: 34 * us, cnp: true, want: Rate{1500, 3000, 1}}, // not the first
			{at: 65 * us, want: Rate{750, 3000, 1}},
		}},
		"DcqcnRateToSetOnFirstCnp beyond the line rate": {base(func(p *Parameters) { p.FirstCNPRate = 20000 }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
		}},
		"DcqcnRpgTimeReset, DcqcnRpgThreshold, DcqcnRpgAiRate and DcqcnRpgHaiRate": {
			base(func(p *Parameters) { p.AlphaPeriod, p.FirstCNPRate = 0, 4000 }), []step{
				{cnp: true, want: Rate{4000, 4000, 1}},
				{at: 33 * us, want: Rate{2000, 4000, 1}},
				{at: 132 * us, want: Rate{2000, 4000, 1}},
				{at: 133 * us, want: Rate{3000, 4000, 1}}, // fast recovery: half of the way
				{at: 233 * us, want: Rate{3500, 4000, 1}},
				{at: 333 * us, want: Rate{3755, 4010, 1}},        // additive: 2 increases were before
				{at: 433 * us, want: Rate{3932.5, 4110, 1}},      // hyper additive
				{at: 533 * us, want: Rate{4071.25, 4210, 1}},     // the same again
				{at: 633 * us, want: Rate{4190.625, 4310, 1}},    //
				{at: 733 * us, want: Rate{4300.3125, 4410, 1}}}}, //
		"DcqcnRpgByteReset": {base(func(p *Parameters) {
			p.AlphaPeriod, p.FirstCNPRate, p.ByteReset, p.TimeReset = 0, 4000, 10000, 0
		}), []step{
			{cnp: true, want: Rate{4000, 4000, 1}},
			{at: 33 * us, want: Rate{2000, 4000, 1}},
			{at: 34 * us, bytes: 9999, want: Rate{2000, 4000, 1}},
			{at: 35 * us, bytes: 1, want: Rate{3000, 4000, 1}},
			{at: 36 * us, bytes: 20000, want: Rate{3755, 4010, 1}},
		}},
		"both counters: hyper additive increase where both are beyond the threshold": {base(func(p *Parameters) {
			p.AlphaPeriod, p.FirstCNPRate, p.ByteReset = 0, 4000, 10000
		}), []step{
			{cnp: true, want: Rate{4000, 4000, 1}},
			{at: 33 * us, want: Rate{2000, 4000, 1}},
			{at: 34 * us, bytes: 20000, want: Rate{3500, 4000, 1}},
			{at: 35 * us, bytes: 10000, want: Rate{3755, 4010, 1}},
			{at: 133 * us, want: Rate{3887.5, 4020, 1}},
			{at: 333 * us, want: Rate{3999.375, 4040, 1}}, // 2 more by the timer, 3 and 3
			{at: 334 * us, bytes: 10000, want: Rate{4069.6875, 4140, 1}},
		}},
		"DcqcnClampTgtRate": {base(func(p *Parameters) { p.AlphaPeriod, p.ClampTarget = 0, true }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 33 * us, cnp: true, want: Rate{5000, 10000, 1}},
			{at: 65 * us, want: Rate{2500, 5000, 1}},
		}},
		"DcqcnClampTgtRateAfterTimeInc": {base(func(p *Parameters) { p.AlphaPeriod = 0 }), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 33 * us, cnp: true, want: Rate{5000, 10000, 1}},
			{at: 65 * us, want: Rate{2500, 10000, 1}}, // nothing was raised between
			{at: 166 * us, cnp: true, want: Rate{6250, 10000, 1}},
			{at: 193 * us, want: Rate{3125, 6250, 1}},
		}},
		"DcqcnClampTgtRateAfterTimeInc 0": {base(func(p *Parameters) {
			p.AlphaPeriod, p.ClampTargetAfterTime, p.ByteReset = 0, false, 1000
		}), []step{
			{cnp: true, want: Rate{10000, 10000, 1}},
			{at: 33 * us, want: Rate{5000, 10000, 1}},
			{at: 134 * us, cnp: true, want: Rate{7500, 10000, 1}},
			{at: 161 * us, want: Rate{3750, 10000, 1}}, // raised by the timer alone
			{at: 162 * us, bytes: 1000, cnp: true, want: Rate{6875, 10000, 1}},
			{at: 193 * us, want: Rate{3437.5, 6875, 1}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReactionPoint(&c.p)
			for i, s := range c.steps {
				now := clock.Time(time.Second + s.at)
				r.NextSend(now)
				if s.bytes > 0 {
					r.Sent(now, s.bytes, us)
				}
				if s.cnp {
					r.Notified(now)
				}
				got, _ := r.Rate(now)
				if s.want.Alpha < 0 {
					got.Alpha = s.want.Alpha
				}
				if off(got.Current, s.want.Current) || off(got.Target, s.want.Target) || off(got.Alpha, s.want.Alpha) {
					t.Fatalf("step %d at %v: %+v, want %+v", i, s.at, got, s.want)
				}
			}
		})
	}
}

func off(got, want float64) bool { return math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) }

// TestReactionPoint_Release: a rate that is back at the line rate is no limit any more, and the next notification is a first
// one again.
func TestReactionPoint_Release(t *testing.T) {
	p := recorded()
	p.FirstCNPRate = 1000
	r := NewReactionPoint(&p)
	r.Notified(0)
	if x, limited := r.Rate(us0(10)); !limited || x.Current > 1000 {
		t.Fatalf("%+v, limited %v", x, limited)
	}
	if x, limited := r.Rate(us0(10e6)); limited || x.Current != p.LineRate {
		t.Errorf("after 10 s: %+v, limited %v", x, limited)
	}
	r.Notified(us0(20e6))
	if x, limited := r.Rate(us0(20e6)); !limited || x != (Rate{1000, 1000, 1}) {
		t.Errorf("after another notification: %+v, limited %v", x, limited)
	}
}

func us0(n float64) clock.Time { return clock.Time(n * 1000) }

// TestReactionPoint_LongAfter: what is worked out for a long time at once is what many short steps make of it.
func TestReactionPoint_LongAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := recorded()
		p.ByteReset = rapid.SampledFrom([]int64{0, 25600}).Draw(t, "bytes")
		p.TimeReset = time.Duration(rapid.IntRange(1, 300).Draw(t, "timer")) * us
		p.AIRate = float64(rapid.IntRange(1, 50).Draw(t, "AI"))
		p.Threshold = rapid.IntRange(1, 31).Draw(t, "threshold")
		p.FirstCNPRate = float64(rapid.IntRange(100, 39000).Draw(t, "first"))
		a, b := NewReactionPoint(&p), NewReactionPoint(&p)
		a.Notified(0)
		b.Notified(0)
		end := rapid.IntRange(1, 200000).Draw(t, "end")
		for now := 0; now < end; now += 7 {
			a.NextSend(us0(float64(now)))
		}
		x, xOn := a.Rate(us0(float64(end)))
		y, yOn := b.Rate(us0(float64(end)))
		if xOn != yOn || math.Abs(x.Current-y.Current) > 1e-6*x.Current || math.Abs(x.Target-y.Target) > 1e-6*x.Target ||
			math.Abs(x.Alpha-y.Alpha) > 1e-9 {
			t.Fatalf("%+v (%v) step by step, %+v (%v) at once", x, xOn, y, yOn)
		}
	})
}

// TestReactionPoint_Bounds: whatever comes when, the rates stay between the least and the line rate, and alpha between 0 and 1.
func TestReactionPoint_Bounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, most int) float64 { return float64(rapid.IntRange(0, most).Draw(t, name)) }
		p := Parameters{
			LineRate:    1 + number("line", 400000),
			ClampTarget: rapid.Bool().Draw(t, "clamp"), ClampTargetAfterTime: rapid.Bool().Draw(t, "after"),
			TimeReset: time.Duration(number("T", 131071)) * us, ByteReset: 64 * int64(number("B", 32767)), Threshold: 1 + int(number("F", 30)),
			AIRate: number("AI", 400000), HAIRate: number("HAI", 400000), AlphaShift: uint(number("shift", 11)),
			MinDecrease: number("fac", 100) / 100, MinRate: number("min", 400000), FirstCNPRate: number("first", 400000), G: number("g", 1023) / 1024,
			AlphaPeriod: time.Duration(number("rtt", 131071)) * us, ReducePeriod: time.Duration(number("period", 1<<32-2)) * us,
			InitialAlpha: number("alpha", 1023) / 1024,
		}
		if rapid.Bool().Draw(t, "short") {
			p.ReducePeriod /= 1 << 20
		}
		r, now := NewReactionPoint(&p), clock.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(1, 36).Draw(t, "scale")).Draw(t, "gap")))
			if rapid.Bool().Draw(t, "CNP") {
				r.Notified(now)
			} else if r.NextSend(now) == now {
				r.Sent(now, rapid.IntRange(64, 65536).Draw(t, "bytes"), us)
			}
			x, _ := r.Rate(now)
			low := x.Current < min(leastRate, p.LineRate) || x.Target <= 0 || x.Alpha < 0
			if high := x.Current > p.LineRate || x.Target > p.LineRate || x.Alpha > 1; low || high {
				t.Fatalf("at %v: %+v", now, x)
			}
			if _, b := r.Turn(now, us); b < 1 {
				t.Fatalf("a burst of %d bytes", b)
			}
		}
	})
}

// TestReactionPoint_Pace: what leaves as soon as NextSend allows, with the turns late by up to the slack, leaves at the rate.
func TestReactionPoint_Pace(t *testing.T) {
	for _, slack := range []time.Duration{1, 100 * us} {
		p := recorded()
		p.TimeReset, p.AlphaPeriod, p.ReducePeriod, p.FirstCNPRate = 0, 0, time.Hour, 1000
		r := NewReactionPoint(&p)
		now, sent := clock.Time(0), 0
		r.Notified(now)
		for i := 0; now < us0(10000); i++ {
			at, burst := r.Turn(now, slack)
			if at > now {
				now = at.Add(slack * time.Duration(i%2))
				continue
			}
			if most := int(2*slack.Seconds()*1e9/8) + 2; burst > most {
				t.Fatalf("a burst of %d bytes, want at most %d", burst, most)
			}
			sent += 1000
			r.Sent(now, 1000, slack)
		}
		if got := float64(sent) * 8 / now.Sub(0).Seconds() / 1e6; math.Abs(got-1000) > 15 {
			t.Errorf("slack %v: %.0f Mbit/s, want 1000", slack, got)
		}
	}
}

// TestReactionPoint_FollowsTheRate: who waits at a low rate does not wait at it any longer when the rate has risen.
func TestReactionPoint_FollowsTheRate(t *testing.T) {
	p := recorded()
	p.TimeReset, p.ReducePeriod, p.AlphaPeriod, p.FirstCNPRate, p.AIRate, p.Threshold = 300*us, 0, 0, 100, 20000, 1
	p.ClampTarget, p.HAIRate = true, 20000
	r := NewReactionPoint(&p)
	r.Notified(0)              // and then a decrease, to the least rate
	r.Sent(us0(290), 10000, 1) // which takes 800 us
	r.NextSend(us0(290))       //
	if at := r.NextSend(us0(290)); at != us0(300) {
		t.Fatalf("asked again at %v, want the time of the increase", at)
	}
	if at := r.NextSend(us0(300)); at != us0(600) { // fast recovery: the target is the rate
		t.Fatalf("asked again at %v, want the next increase", at)
	}
	// Then it is raised by half of 20000: what left at 290 us has long had the time that it takes.
	if at := r.NextSend(us0(600)); at != us0(600) {
		t.Fatalf("may send at %v, want at once", at)
	}
}

// TestNotificationPoint_Interval: at most one notification leaves in an interval.
func TestNotificationPoint_Interval(t *testing.T) {
	var p NotificationPoint
	n := 0
	for at := range 1000 {
		if p.Answer(us0(float64(at)), 50*us) {
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d notifications in 1 ms, want 20", n)
	}
}

func BenchmarkReactionPoint(b *testing.B) {
	p := recorded()
	r := NewReactionPoint(&p)
	now := clock.Time(0)
	b.ReportAllocs()
	for i := range b.N {
		if i%64 == 0 {
			r.Notified(now)
		}
		now = r.NextSend(now)
		r.Sent(now, 1000, 1)
	}
}

// TestReactionPoint_Asked: a reaction point whose rate is asked for in between does the same as one that is asked only before it sends.
func TestReactionPoint_Asked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := recorded()
		p.ByteReset = int64(rapid.SampledFrom([]int{0, 50_000}).Draw(t, "byte reset"))
		seldom, often := NewReactionPoint(&p), NewReactionPoint(&p)
		now := clock.Time(0)
		for i := range 500 {
			now += clock.Time(rapid.IntRange(1, 30_000).Draw(t, "ns"))
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				seldom.Notified(now)
				often.Notified(now)
			case 1, 2, 3:
				often.Turn(now, 0)
			default:
				a, bytes := seldom.Turn(now, us)
				b, more := often.Turn(now, us)
				if bytes != more {
					t.Fatalf("%d: a burst of %d, %d if it is asked often", i, bytes, more)
				}
				if a != b {
					t.Fatalf("%d: it sends at %d, at %d if it is asked often", i, a, b)
				}
				if a <= now {
					seldom.Sent(now, 1100, us)
					often.Sent(now, 1100, us)
				}
			}
		}
	})
}

// TestReactionPoint_LongAfter_AtTheLineRate: so is where the target rate was at the line rate already, and where it gets there
// with less than a step.
func TestReactionPoint_LongAfter_AtTheLineRate(t *testing.T) {
	p := recorded()
	p.TimeReset, p.AIRate, p.HAIRate = 2*us, 16, 16
	for first := 38900.0; first < 39100; first++ {
		p.FirstCNPRate = first
		a := NewReactionPoint(&p)
		a.Notified(0)
		for now := range 150 {
			b := NewReactionPoint(&p)
			b.Notified(0)
			x, _ := a.Rate(us0(float64(now)))
			if y, _ := b.Rate(us0(float64(now))); math.Abs(x.Current-y.Current) > 1e-6 || x.Target != y.Target {
				t.Fatalf("from %v, after %d us: %+v step by step, %+v at once", first, now, x, y)
			}
		}
	}
}
