package healing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

var byDefault = Settings{Every: 4 * time.Second, Looks: 4, Active: 0xffffffff}

// at takes looks at one part at each due time, until a sensor fires or the time has come.
func at(t *testing.T, c *Checker, until clock.Time, read func(clock.Time) Reading) (clock.Time, []Verdict) {
	t.Helper()
	for now := c.Deadline(); now <= until; now = c.Deadline() {
		if v := c.Look(now, []Reading{read(now)}); len(v) > 0 {
			return now, v
		}
	}
	return until, nil
}

// TestStuck: a part that waits and does nothing is found after SHCheckForHangTimeInSeconds * CheckForHangCQMaxNoProgress, of sends in
// software after twice as long (WinOF 5.50, 4.10.1.1.1.1), once, and again after it has got on.
func TestStuck(t *testing.T) {
	for s, want := range map[Sensor]time.Duration{
		SendHardware: 20 * time.Second, ReceiveSoftware: 20 * time.Second, SendSoftware: 36 * time.Second, EventQueue: 20 * time.Second,
		Command: 20 * time.Second, Health: 20 * time.Second,
	} {
		c := New(0, byDefault)
		done := uint64(0)
		stuck := func(clock.Time) Reading { return Reading{Sensor: s, Part: 7, Waits: true, Done: done} }
		now, v := at(t, c, clock.Time(time.Hour), stuck)
		if d := cmp.Diff([]Verdict{{Sensor: s, Part: 7, Restart: true}}, v); d != "" || now != clock.Time(want) {
			t.Errorf("%v is found at %v, want %v: %s", s, time.Duration(now), want, d)
		}
		if most := byDefault.DetectionTime(s); time.Duration(now) > most {
			t.Errorf("%v takes %v, more than %v", s, time.Duration(now), most)
		}
		if now, v := at(t, c, now.Add(time.Hour), stuck); v != nil {
			t.Errorf("%v is found again at %v: %v", s, now, v)
		}
		done++
		if _, v := at(t, c, c.Deadline().Add(time.Hour), stuck); len(v) != 1 || c.Count(s) != 2 {
			t.Errorf("%v is not found again after it got on: %v, %d", s, v, c.Count(s))
		}
		c.Restarted(now)
		if _, v := at(t, c, c.Deadline().Add(time.Hour), stuck); len(v) != 1 || c.Restarts() != 1 {
			t.Errorf("%v is not found again after a restart: %v", s, v)
		}
	}
}

// TestErrors: each look after a further error finds it; errors before the first look count, those from before a restart do not.
func TestErrors(t *testing.T) {
	c := New(0, byDefault)
	for i, x := range []struct {
		count uint64
		found bool
	}{{0, false}, {1, true}, {1, false}, {3, true}, {3, false}} {
		if v := c.Look(c.Deadline(), []Reading{{Sensor: SendCompletion, Done: x.count}}); (len(v) == 1) != x.found {
			t.Errorf("look %d with %d errors: %v", i, x.count, v)
		}
	}
	if v := New(0, byDefault).Look(1, []Reading{{Sensor: ReceiveCompletion, Done: 1}}); len(v) != 1 {
		t.Error("an error before the first look is not found")
	}
	c.Restarted(c.Deadline())
	for _, x := range []struct {
		count uint64
		found bool
	}{{3, false}, {3, false}, {4, true}} {
		if v := c.Look(c.Deadline(), []Reading{{Sensor: SendCompletion, Done: x.count}}); (len(v) == 1) != x.found {
			t.Errorf("after a restart, with %d errors: %v", x.count, v)
		}
	}
}

// TestMasks: a sensor that is not active restarts nothing, and those of the dump mask cause dumps; both change at run time.
func TestMasks(t *testing.T) {
	c := New(0, byDefault)
	s := byDefault
	s.Active &^= SendHardware
	s.Dump = SendHardware
	c.Set(0, s)
	if v := c.Report(0, SendHardware, 1); v != (Verdict{Sensor: SendHardware, Part: 1, Dump: true}) {
		t.Errorf("%+v", v)
	}
	c.Set(0, byDefault)
	if v := c.Report(0, SendHardware, 1); v != (Verdict{Sensor: SendHardware, Part: 1, Restart: true}) || c.Found() != SendHardware {
		t.Errorf("%+v", v)
	}
	s.Every = time.Second
	if c.Set(10, s); c.Deadline() != clock.Time(10).Add(time.Second) {
		t.Error("the new interval does not count from now on: ", c.Deadline())
	}
}

// TestStop: an engine that breaks its rules over and over is not restarted for ever; one that does so now and then is.
func TestStop(t *testing.T) {
	c := New(0, byDefault)
	now := clock.Time(0)
	for i := range mostRestarts + 1 {
		now = now.Add(time.Second)
		if v := c.Report(now, Internal, 0); v.Stop != (i == mostRestarts) || v.Restart == v.Stop {
			t.Errorf("error %d: %+v", i, v)
		}
	}
	for range 3 * mostRestarts {
		now = now.Add(calm)
		if v := c.Report(now, Internal, 0); !v.Restart || v.Stop {
			t.Errorf("after a calm time: %+v", v)
		}
	}
}

// TestChecker_Property: whatever a queue does, it is found if and only if it has waited without progress for so many looks in a row as
// configured, and then once: a moving queue never.
func TestChecker_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{Every: time.Duration(rapid.IntRange(1, 100).Draw(t, "every")) * time.Second, Looks: rapid.IntRange(1, 20).Draw(t, "looks"),
			Active: 0xffffffff}
		x := rapid.SampledFrom([]Sensor{SendHardware, SendSoftware, ReceiveSoftware, EventQueue, Command, Health}).Draw(t, "sensor")
		c := New(0, s)
		most, stalls, known, last := x.looks(s.Looks), 0, false, uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			r := Reading{Sensor: x, Waits: rapid.IntRange(0, 9).Draw(t, "waits") > 0, Done: last}
			if rapid.IntRange(0, 9).Draw(t, "moves") == 0 {
				r.Done += uint64(rapid.IntRange(1, 9).Draw(t, "by"))
			}
			if r.Waits && known && r.Done == last {
				stalls++
			} else {
				stalls = 0
			}
			known, last = true, r.Done
			if got := len(c.Look(c.Deadline(), []Reading{r})); got == 1 != (stalls == most) || got > 1 {
				t.Fatalf("after %d of %d looks without progress: found %d times", stalls, most, got)
			}
		}
	})
}

// TestParts: parts of a sensor are watched apart, and one of which nothing is read begins anew.
func TestParts(t *testing.T) {
	c := New(0, Settings{Every: 1, Looks: 2, Active: 0xffffffff})
	both := []Reading{{Sensor: Health, Part: 1, Waits: true}, {Sensor: Health, Part: 2, Waits: true}}
	c.Look(1, both)
	c.Look(2, both)
	if v := c.Look(3, both[:1]); len(v) != 1 || v[0].Part != 1 {
		t.Errorf("%v", v)
	}
	c.Look(4, both)
	c.Look(5, both)
	if v := c.Look(6, both); len(v) != 1 || v[0].Part != 2 {
		t.Errorf("%v", v)
	}
}
