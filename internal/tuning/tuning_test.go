package tuning

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

// On any machine every scenario sets only values that the keys allow, on processors that exist.
func TestProcessors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 256).Draw(t, "processors")
		there := min(n, MostProcessor+1)
		q := Request{Base: rapid.IntRange(0, there-1).Draw(t, "base")}
		q.Number = rapid.IntRange(1, there-q.Base).Draw(t, "number")
		for _, s := range Scenarios() {
			for i := range s.Most {
				for _, x := range s.assignments(i, s.Most, false, &q, n) {
					keys := catalogue.LookupFor(x.key, catalogue.Target{Generation: catalogue.MLX4})
					if len(keys) == 0 || keys[0].Name != x.key {
						t.Fatalf("no key %s", x.key)
					}
					if x.value == nil {
						continue
					}
					v, err := keys[0].Parse(*x.value)
					if err != nil {
						t.Fatal(err)
					}
					if keys[0].Bound == catalogue.Processors && strings.HasSuffix(x.key, "Processor") && !v.Auto && v.Number >= uint64(n) {
						t.Fatalf("%s: %s is %d of %d processors", s.Name, x.key, v.Number, n)
					}
				}
			}
		}
		if two := share(n, 2); n > 1 && two[0].last() >= two[1].Base {
			t.Fatalf("the processors of two adapters overlap: %v", two)
		}
	})
}

// bed is a registry with two adapters and a log of changes.
type bed struct {
	t   testing.TB
	reg *registry.Registry
	all []registry.Adapter
	log *Log
}

func newBed(t testing.TB, file string) *bed {
	b := &bed{t: t, reg: registry.NewVolatile("test"), log: NewLog(file)}
	b.reg.SetProcessors(8)
	for _, name := range []string{"one", "two"} {
		a, err := b.reg.AddAdapter(name, catalogue.MLX4)
		if err != nil {
			t.Fatal(err)
		}
		b.all = append(b.all, a)
	}
	return b
}

// run runs a scenario for the first n adapters, or for the second alone if n is -1.
func (b *bed) run(scenario string, n int) error {
	list := b.all[:max(n, 0)]
	if n < 0 {
		list = b.all[1:]
	}
	log, err := b.log.Entries()
	if err != nil {
		return err
	}
	p, err := NewPlan(b.reg, Request{Scenario: scenario, Number: 1}, list, 8, log)
	if err != nil || len(p.Changes) == 0 {
		return err
	}
	if err := b.log.Record(Entry{time.Now(), scenario, p.Changes}); err != nil {
		return err
	}
	return b.reg.Apply(p.Registry...)
}

// state returns what the registry holds of an adapter, as text.
func (b *bed) state(i int) string {
	var all []string
	for _, s := range b.reg.Settings(b.all[i]) {
		if v := stored(b.reg, &s); v != nil {
			all = append(all, s.Key.Name+"="+*v)
		}
	}
	return strings.Join(all, " ")
}

// Undoing takes back what was run step by step, separately for each adapter.
func TestUndoGoesBackOverEveryChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBed(t, "")
		var states [2][]string
		for range rapid.IntRange(1, 6).Draw(rt, "runs") {
			n := rapid.SampledFrom([]int{1, -1, 2}).Draw(rt, "adapters")
			s := rapid.SampledFrom(Scenarios()).Draw(rt, "scenario")
			if n == 2 && s.Most < 2 || n != 2 && s.Fewest > 1 {
				continue
			}
			before := [2]string{b.state(0), b.state(1)}
			if err := b.run(s.Name, n); err != nil {
				rt.Fatal(err)
			}
			for i := range before {
				if b.state(i) != before[i] {
					states[i] = append(states[i], before[i])
				}
			}
		}
		for i := range states {
			for _, want := range slices.Backward(states[i]) {
				if err := b.run(Undo, map[int]int{0: 1, 1: -1}[i]); err != nil {
					rt.Fatal(err)
				}
				if got := b.state(i); got != want {
					rt.Fatalf("adapter %d: %s; want %s", i, got, want)
				}
			}
			var e *UndoError
			if err := b.run(Undo, map[int]int{0: 1, 1: -1}[i]); !errors.As(err, &e) {
				rt.Fatalf("more to undo: %v", err)
			}
		}
	})
}

// A plan that was logged but could not be carried out is marked as reverted in the log and is not undone.
func TestRevertedPlansAreNotUndone(t *testing.T) {
	b := newBed(t, "")
	p, err := NewPlan(b.reg, Request{Scenario: "single"}, b.all[:1], 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := []Entry{{Scenario: "single", Changes: p.Changes}, p.Reverted(time.Now())}
	if e, ok := Last(log, "one"); ok {
		t.Errorf("the last change to undo is %+v, want none", e)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	for _, c := range []struct {
		q    Request
		want string
	}{
		{Request{Scenario: "multicast"}, "scenario is \"multicast\"; allowed: single, stream, dual, forwarding, manual, defaults, undo"},
		{Request{Scenario: "single"}, "adapters is 0; allowed: 1 or 2 for single"},
		{Request{Scenario: "dual", Adapters: []string{"a"}}, "adapters is 1; allowed: 2 for dual"},
		{Request{Scenario: "manual", Adapters: []string{"a", "b"}}, "adapters is 2; allowed: 1 for manual"},
		{Request{Scenario: "dual", Adapters: []string{"a", "a"}}, `adapters is twice "a"; allowed: two that differ`},
		{Request{Scenario: "single", Adapters: []string{"a"}, Base: 1}, "base is 1; allowed: 0 unless the scenario is manual"},
		{Request{Scenario: "undo", Adapters: []string{"a"}, Number: 1}, "number is 1; allowed: 0 unless the scenario is manual"},
		{Request{Scenario: "manual", Adapters: []string{"a"}, Base: 4, Number: 1}, "base is 4; allowed: 0 to 3"},
		{Request{Scenario: "manual", Adapters: []string{"a"}, Base: 3, Number: 2}, "number is 2; allowed: 1 to 1 from processor 3 on"},
		{Request{Scenario: "manual", Adapters: []string{"a"}}, "number is 0; allowed: 1 to 4 from processor 0 on"},
		{Request{Scenario: "manual", Adapters: []string{"a"}, Base: 3, Number: 1}, ""},
		{Request{Scenario: "forwarding", Adapters: []string{"a", "b"}}, ""},
		{Request{Scenario: "undo", Adapters: []string{"a", "b"}}, ""},
	} {
		got := ""
		if err := c.q.Check(4); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %s; want %s", c.q, got, c.want)
		}
	}
}

// A last line that was cut off costs that entry of the log alone: the next entry is written whole.
func TestLogSurvivesAnUnfinishedLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logs", "log")
	b := newBed(t, file)
	if err := b.run("single", 1); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026-`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := b.run("dual", 2); err != nil {
		t.Fatal(err)
	}
	log, err := b.log.Entries()
	if err != nil || len(log) != 2 || log[1].Scenario != "dual" || !slices.Equal(log[1].Adapters(), []string{"one", "two"}) {
		t.Errorf("%v, entries %+v; want 2, the second of scenario dual for both adapters", err, log)
	}
}

// The log has a limit in size, at which only the newest entries are kept.
func TestLogIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("x", 1000)
	var text []byte
	for i := 0; len(text) < maxLog; i++ {
		line, err := json.Marshal(Entry{Scenario: strconv.Itoa(i), Changes: []Change{{Adapter: long}}})
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l := NewLog(file)
	if err := l.Record(Entry{Scenario: "newest", Changes: []Change{{Adapter: "a"}}}); err != nil {
		t.Fatal(err)
	}
	s, err := os.Stat(file)
	if err != nil || s.Size() > maxLog/2+maxLine || s.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want it half as long as the limit, with mode 0600", s, err)
	}
	all, err := l.Entries()
	if err != nil || len(all) < 1000 || all[len(all)-1].Scenario != "newest" {
		t.Errorf("%d entries, %v; want at least 1000 that end with the newest", len(all), err)
	}
	memory := NewLog("")
	for range 2 * maxKept {
		if err := memory.Record(Entry{}); err != nil {
			t.Fatal(err)
		}
	}
	if all, _ := memory.Entries(); len(all) != maxKept {
		t.Errorf("%d entries in memory, want %d", len(all), maxKept)
	}
}
