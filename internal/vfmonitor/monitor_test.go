package vfmonitor

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

// standard has the keys' defaults, but for being on.
var standard = Config{Enabled: true, Period: time.Minute, MostUsage: 20, MostErrors: 1000}

func monitor(t testing.TB) *Monitor {
	t.Helper()
	m, err := New(0, standard)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func at(d time.Duration) clock.Time { return clock.Time(d) }

// TestAdvance: a warning for what is above a threshold since the last reading, in the manual's words, and for nothing else.
func TestAdvance(t *testing.T) {
	m := monitor(t)
	m.Spent(3, 15*time.Second) // 25 %
	m.Spent(4, 12*time.Second) // 20 %, which is allowed
	for range 1001 {
		m.Refused(5)
	}
	for range 1000 {
		m.Refused(6)
	}
	if list := m.Advance(at(time.Minute-1), nil); list != nil || m.Deadline() != at(time.Minute) {
		t.Errorf("before its time: %v", list)
	}
	var text []string
	for _, w := range m.Advance(at(time.Minute), nil) {
		text = append(text, w.String())
	}
	if want := []string{
		"VF 3 used too many resources over the last 60 seconds: FwCpuUsage 25%, Errors2Fw 0",
		"VF 5 used too many resources over the last 60 seconds: FwCpuUsage 0%, Errors2Fw 1001",
	}; !slices.Equal(text, want) {
		t.Errorf("%q\nwant %q", text, want)
	}
	m.Spent(3, 12*time.Second)
	if list := m.Advance(at(2*time.Minute), nil); len(list) != 0 {
		t.Errorf("the next period: %v", list)
	}
}

// TestAdvance_Late: a reading that comes late is held against the time that has passed.
func TestAdvance_Late(t *testing.T) {
	m := monitor(t)
	m.Spent(1, 20*time.Second)
	for range 1500 {
		m.Refused(1)
	}
	if list := m.Advance(at(2*time.Minute), nil); len(list) != 0 {
		t.Errorf("%v", list)
	}
	if m.Deadline() != at(3*time.Minute) {
		t.Errorf("the next reading is at %d", m.Deadline())
	}
}

// TestChange: keys act at once; off there are no warnings, and the counters go on.
func TestChange(t *testing.T) {
	m := monitor(t)
	m.Refused(0)
	off := standard
	off.Enabled = false
	if err := m.Change(5, off); err != nil || m.State() != "Disabled" || m.Deadline() != clock.Never {
		t.Errorf("%v, %s, %d", err, m.State(), m.Deadline())
	}
	m.Refused(0)
	if list := m.Advance(at(time.Hour), nil); list != nil {
		t.Errorf("off: %v", list)
	}
	if got, err := m.Batch(1, 1, int(Errors2FW)); err != nil || got[0] != 2 {
		t.Errorf("%v, %v", got, err)
	}
	low := standard
	low.MostErrors = 1
	if err := m.Change(0, low); err != nil || m.State() != "Enabled" {
		t.Error(err)
	}
	if list := m.Advance(at(time.Minute), nil); len(list) != 0 {
		t.Errorf("what was before counts: %v", list)
	}
	for name, c := range map[string]Config{
		"VfCpuMonBatchPeriodSec": {Period: 0, MostUsage: 1, MostErrors: 1},
		"VfCpuMonFwCpuUsageMax":  {Period: time.Second, MostUsage: 101, MostErrors: 1},
		"VfCpuMonErrors2FwMax":   {Period: time.Second, MostUsage: 1},
	} {
		var e *FieldError
		if err := m.Change(0, c); !errors.As(err, &e) || e.Field != name || m.State() != "Enabled" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(0, c); err == nil {
			t.Errorf("%s is accepted at first", name)
		}
	}
}

// TestBatch: the manual's two examples, and what is refused.
func TestBatch(t *testing.T) {
	m := monitor(t)
	for vf := range MostVFs {
		m.Spent(vf, time.Duration(vf)*time.Microsecond)
		for range vf {
			m.Refused(vf)
		}
	}
	m.Spent(-1, 1)
	m.Refused(MostVFs)
	if got, err := m.Batch(1, 32, 1); err != nil || len(got) != 32 || got[0] != 0 || got[31] != 31 {
		t.Errorf("VF 0 to 31: %v, %v", got, err)
	}
	if got, err := m.Batch(2, 8, 2); err != nil || !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("VF 1 to 8: %v, %v", got, err)
	}
	for _, c := range []struct {
		first, n, of int
		field        string
	}{
		{0, 1, 1, "Index1"}, {128, 1, 1, "Index1"}, {1, 0xffff, 1, "NumOfObj1"}, {1, 0xfffe, 1, "NumOfObj1"}, {1, 128, 1, "NumOfObj1"},
		{127, 2, 1, "NumOfObj1"}, {1, 0, 1, "NumOfObj1"}, {1, 1, 0, "Index2"}, {1, 1, 3, "Index2"},
	} {
		var e *FieldError
		if _, err := m.Batch(c.first, c.n, c.of); !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%+v: %v", c, err)
		}
	}
	m.Reset(5)
	m.Reset(-1)
	if got, _ := m.Batch(6, 1, 2); got[0] != 0 {
		t.Error("a new function has the counters of the one before")
	}
	if FwCPUUsage.String() != "FwCpuUsage" || Errors2FW.String() != "Errors2FW" {
		t.Error("other names")
	}
}

// TestAdvance_Model: who is warned of is who made more than the thresholds between two readings.
func TestAdvance_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Enabled: true, Period: time.Duration(rapid.IntRange(1, 100).Draw(t, "period")) * time.Second,
			MostUsage: rapid.IntRange(1, 100).Draw(t, "usage"), MostErrors: uint64(rapid.IntRange(1, 5).Draw(t, "errors"))}
		m, err := New(0, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for round := 1; round <= 4; round++ {
			var want []int
			for vf := range 5 {
				percent, errors := rapid.IntRange(0, 100).Draw(t, "spent"), rapid.IntRange(0, 6).Draw(t, "refused")
				m.Spent(vf, cfg.Period/100*time.Duration(percent))
				for range errors {
					m.Refused(vf)
				}
				if percent > cfg.MostUsage || uint64(errors) > cfg.MostErrors {
					want = append(want, vf)
				}
			}
			var got []int
			for _, w := range m.Advance(at(cfg.Period*time.Duration(round)), nil) {
				got = append(got, w.VF)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("warned of %v, want %v", got, want)
			}
		}
	})
}
