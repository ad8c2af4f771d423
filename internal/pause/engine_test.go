package pause

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

var mac = eth.MAC{2, 0, 0, 0, 0, 1}

func pfc(obeys, asks uint8) Config {
	return Config{Obeys: Only(obeys), Asks: Only(asks), MAC: mac, Rate: 40e9}
}

func at(us int) clock.Time { return clock.Time(us) * clock.Time(time.Microsecond) }

// TestEngine_Obeys: exactly the priorities of a pause are silent, for as long as its quanta last at the speed of the link, or until
// they are resumed (IEEE 802.1Q, 36.1.3.3; IEEE 802.3, 31B.3).
func TestEngine_Obeys(t *testing.T) {
	long := [8]uint16{3: 0xffff, 5: 0x1000} // 838.848 us, 52.4 us
	for _, c := range []struct {
		name string
		cfg  Config
		at   int // us
		f    eth.Pause
		want uint8
		over int // us, at which it is over
	}{
		{"PFC", pfc(All, 0), 0, eth.Pause{PerPriority: true, Enabled: 1<<3 | 1<<5, Quanta: long}, 1<<3 | 1<<5, 839},
		{"only what is obeyed", pfc(1<<3, 0), 0, eth.Pause{PerPriority: true, Enabled: 1<<3 | 1<<5, Quanta: long}, 1 << 3, 839},
		{"not obeyed", pfc(1<<4, 0), 0, eth.Pause{PerPriority: true, Enabled: 1<<3 | 1<<5, Quanta: long}, 0, 0},
		{"a global pause to PFC", pfc(All, 0), 0, eth.Pause{Quanta: [8]uint16{9}}, 0, 0},
		{"PFC to a global pause", Config{Obeys: Whole, Rate: 40e9}, 0, eth.Pause{PerPriority: true, Enabled: 8, Quanta: long}, 0, 0},
		{"global", Config{Obeys: Whole, Rate: 10e6}, 0, eth.Pause{Quanta: [8]uint16{1}}, All, 52},
		{"off", Config{}, 0, eth.Pause{Quanta: [8]uint16{1}}, 0, 0},
	} {
		var e Engine
		e.Set(at(c.at), c.cfg)
		e.Receive(at(c.at), c.f.Append(nil))
		if got := e.Paused(at(c.at)); got != c.want {
			t.Errorf("%s: %08b is paused, want %08b", c.name, got, c.want)
		}
		if n := e.Counters(at(c.at)).Ignored; (n == 1) != (c.want == 0 || c.f.Enabled&^c.cfg.Obeys.Priorities != 0) {
			t.Errorf("%s: %d ignored", c.name, n)
		}
		if c.want == 0 {
			continue
		}
		if got := e.Paused(at(c.over - 1)); got == 0 {
			t.Errorf("%s: nothing is paused any more after %d us", c.name, c.over-1)
		}
		if got := e.Paused(at(c.over)); got != 0 || e.Deadline() != clock.Never {
			t.Errorf("%s: %08b is paused after %d us", c.name, got, c.over)
		}
	}
}

// TestEngine_Resumes: quanta of 0 end a pause of their priorities, and leave the others; what was paused is in the counters.
func TestEngine_Resumes(t *testing.T) {
	var e Engine
	e.Set(0, pfc(All, 0))
	e.Receive(at(10), (&eth.Pause{PerPriority: true, Enabled: 0xc, Quanta: [8]uint16{2: 0xffff, 3: 0xffff}}).Append(nil))
	e.Receive(at(60), (&eth.Pause{PerPriority: true, Enabled: 0x8}).Append(nil))
	if got := e.Paused(at(60)); got != 0x4 {
		t.Errorf("%08b is paused", got)
	}
	c := e.Counters(at(110))
	if p := c.Priority[3]; p.Received != 1 || p.ReceivedTime != 50*time.Microsecond {
		t.Errorf("priority 3: %+v", p)
	}
	if p := c.Priority[2]; p.Received != 1 || p.ReceivedTime != 100*time.Microsecond {
		t.Errorf("priority 2: %+v", p)
	}
	e.Receive(at(110), []byte{12: 0x88, 13: 8, 14: 0, 15: 2, 59: 0})
	if c.Unknown != 1 {
		t.Errorf("an unknown opcode: %+v", c)
	}
}

// TestEngine_PauseAfterAnother: a pause that comes when the last one is over counts by itself, and not the time between them, even if
// nobody has looked at the engine meanwhile; one that comes earlier goes on with it.
func TestEngine_PauseAfterAnother(t *testing.T) {
	for _, c := range []struct {
		next, since int // us
		paused      time.Duration
	}{{50, 10, 91200 * time.Nanosecond}, {62, 62, 102400 * time.Nanosecond}, {1000, 1000, 102400 * time.Nanosecond}} {
		var e Engine
		e.Set(0, Config{Obeys: Only(1 << 3), Rate: 10e9})
		frame := (&eth.Pause{PerPriority: true, Enabled: 1 << 3, Quanta: [8]uint16{3: 1000}}).Append(nil) // 51.2 us
		e.Receive(at(10), frame)
		e.Receive(at(c.next), frame)
		if got := e.Since(3); got != at(c.since) {
			t.Errorf("the next at %d us: paused since %d ns, want %d us", c.next, got, c.since)
		}
		if got := e.Counters(at(2000)).Priority[3].ReceivedTime; got != c.paused {
			t.Errorf("the next at %d us: paused for %v, want %v", c.next, got, c.paused)
		}
	}
}

// told takes what the engine sends at a time, if it sends anything.
func told(t *testing.T, e *Engine, now clock.Time) *eth.Pause {
	t.Helper()
	if !e.Ready(now) {
		return nil
	}
	p, err := eth.ParsePause(e.Append(now, nil))
	if err != nil || p.Src != e.Config().MAC {
		t.Fatal(p, err)
	}
	if e.Ready(now) && e.last == e.cfg.Asks.Mode {
		t.Fatal("it would say it twice")
	}
	return &p
}

// TestEngine_Asks: a pause is sent when one begins, again after half of its time, and when it ends.
func TestEngine_Asks(t *testing.T) {
	var e Engine
	e.Set(0, pfc(0, 1<<3|1<<4))
	if told(t, &e, 0) != nil || e.Deadline() != clock.Never {
		t.Error("it says something unasked")
	}
	e.Ask(1<<3 | 1<<6)
	if p := told(t, &e, at(1)); p == nil || *p != (eth.Pause{Src: mac, PerPriority: true, Enabled: 1 << 3, Quanta: [8]uint16{3: 0xffff}}) {
		t.Errorf("%+v", p)
	}
	if told(t, &e, at(420)) != nil || e.Deadline() != at(1).Add(419424*time.Nanosecond) {
		t.Error("not again after half of the time, but at", e.Deadline())
	}
	e.Ask(1<<3 | 1<<4)
	if p := told(t, &e, at(421)); p == nil || p.Enabled != 1<<3|1<<4 || p.Quanta != [8]uint16{3: 0xffff, 4: 0xffff} {
		t.Errorf("%+v", p)
	}
	e.Ask(1 << 4)
	if p := told(t, &e, at(430)); p == nil || p.Enabled != 1<<3|1<<4 || p.Quanta != [8]uint16{4: 0xffff} {
		t.Errorf("%+v", p)
	}
	if e.Told() != 1<<4 {
		t.Errorf("told %08b", e.Told())
	}
	c := e.Counters(at(441))
	p, q := c.Priority[3], c.Priority[4]
	if p.Sent != 2 || p.SentTime != 429*time.Microsecond || q.Sent != 2 || q.SentTime != 20*time.Microsecond {
		t.Errorf("%+v, %+v", p, q)
	}
}

// TestEngine_ChangesMode: whoever was paused in one mode is resumed in that mode when the mode changes, and paused in the new one.
func TestEngine_ChangesMode(t *testing.T) {
	var e Engine
	e.Set(0, pfc(All, All))
	e.Ask(1 << 3)
	told(t, &e, 0)
	e.Receive(0, (&eth.Pause{PerPriority: true, Enabled: 8, Quanta: [8]uint16{3: 9}}).Append(nil))
	e.Set(at(1), Config{Obeys: Whole, Asks: Whole, MAC: mac})
	if e.Paused(at(1)) != 0 {
		t.Error("what a mode has paused stays paused")
	}
	e.Ask(All)
	if p := told(t, &e, at(1)); p == nil || !p.PerPriority || p.Enabled != 8 || p.Quanta != [8]uint16{} {
		t.Errorf("%+v", p)
	}
	if p := told(t, &e, at(1)); p == nil || p.PerPriority || p.Quanta[0] != 0xffff || e.Told() != All {
		t.Errorf("%+v", p)
	}
	e.Set(at(2), Config{})
	if p := told(t, &e, at(2)); p == nil || p.PerPriority || p.Quanta[0] != 0 || e.Deadline() != clock.Never {
		t.Errorf("%+v", p)
	}
}

// TestEngine_KeepsPeerSilent: whatever is asked for, a peer that obeys is silent at exactly the priorities that are asked for, at each
// moment at which the engine had its deadlines.
func TestEngine_KeepsPeerSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e, peer Engine
		asks := rapid.Byte().Draw(t, "asks")
		cfg := pfc(0, asks)
		cfg.Rate = rapid.Uint64Range(1e6, 400e9).Draw(t, "rate")
		cfg.Quanta = rapid.Uint16Range(2, 0xffff).Draw(t, "quanta")
		obeys := cfg
		obeys.Obeys, obeys.Asks = Only(All), Scope{}
		e.Set(0, cfg)
		peer.Set(0, obeys)
		now := clock.Time(0)
		speak := func() {
			for e.Ready(now) {
				peer.Receive(now, e.Append(now, nil))
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			want := rapid.Byte().Draw(t, "want")
			e.Ask(want)
			speak()
			end := now.Add(time.Duration(rapid.Int64Range(0, int64(3*eth.PauseTime(cfg.Quanta, cfg.Rate))).Draw(t, "for")))
			for due := e.Deadline(); due <= end; due = e.Deadline() {
				now = max(due, now)
				speak()
			}
			now = end
			if got := peer.Paused(now); got != want&asks || e.Told() != want&asks {
				t.Fatalf("%08b is paused, want %08b of %08b", got, want, asks)
			}
		}
	})
}

// TestEngine_Forget: when a link goes down both ends forget who is paused; what was asked for is told again when it is up.
func TestEngine_Forget(t *testing.T) {
	var e Engine
	e.Set(0, pfc(1<<3, 1<<3))
	e.Receive(at(0), (&eth.Pause{PerPriority: true, Enabled: 8, Quanta: [8]uint16{3: 0xffff}}).Append(nil))
	e.Ask(1 << 3)
	e.Append(at(0), nil)
	if e.Held() != 1<<3 || e.Since(3) != at(0) || e.Until(3) <= at(0) || e.Repeats() == clock.Never || e.Sent() != 1 {
		t.Fatalf("held %b since %v until %v, repeats at %v", e.Held(), e.Since(3), e.Until(3), e.Repeats())
	}
	e.Forget(at(5))
	if e.Held() != 0 || e.Paused(at(5)) != 0 || e.Told() != 0 || e.Repeats() != clock.Never || !e.Ready(at(5)) {
		t.Errorf("held %b, told %b, repeats at %v, ready %v", e.Held(), e.Told(), e.Repeats(), e.Ready(at(5)))
	}
	if c := e.Counters(at(9)).Priority[3]; c.SentTime != at(5).Sub(0) || c.ReceivedTime != at(5).Sub(0) {
		t.Errorf("counted %+v", c)
	}
}
