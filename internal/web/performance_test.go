package web

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tuning"
)

// tunings holds the log of a fake driver, which stands for a machine with four processors.
var tunings = map[*fake]*tuning.Log{}

func (f *fake) Tuning() (api.Tuning, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tunings[f] == nil {
		tunings[f] = tuning.NewLog("")
	}
	all, err := tunings[f].Entries()
	return api.Tuning{Processors: 4, Scenarios: tuning.Scenarios(), Changes: all}, err
}

func (f *fake) Tune(q tuning.Request) (out tuning.Outcome, err error) {
	if err := q.Check(4); err != nil {
		return out, err
	}
	log, err := f.Tuning()
	if err != nil {
		return out, err
	}
	var adapters []registry.Adapter
	for _, name := range q.Adapters {
		a, ok := f.reg.Adapter(name)
		if !ok {
			return out, fmt.Errorf("no adapter %q", name)
		}
		adapters = append(adapters, a)
	}
	p, err := tuning.NewPlan(f.reg, q, adapters, 4, log.Changes)
	if err != nil || q.DryRun {
		return p.Outcome, err
	}
	if err := tunings[f].Record(tuning.Entry{Time: time.Now(), Scenario: q.Scenario, Changes: p.Changes}); err != nil {
		return out, err
	}
	p.Changed = true
	return p.Outcome, f.reg.Apply(p.Registry...)
}

// value returns the value of a key of the first adapter in the fake driver's registry.
func (b *bench) value(key string) string {
	a, _ := b.reg.Adapter("Ethernet 1")
	s, _ := b.reg.Setting(a, key)
	return s.Text()
}

var lastField = regexp.MustCompile(`name="last" value="([^"]+)"`)

func TestScenariosArePlannedRunAndUndone(t *testing.T) {
	b := newBench(t)
	const path = "/web/adapters/Ethernet%201/performance"
	was := b.value("RecvCompletionMethod")
	w := b.post(path, url.Values{"scenario": {"single"}, "preview": {"1"}, "base": {"0"}, "number": {"4"}})
	if w.Code != 200 || !strings.Contains(w.Body.String(), `id="planned"`) || b.value("RecvCompletionMethod") != was {
		t.Fatalf("preview: %d", w.Code)
	}
	if w := b.post(path, url.Values{"scenario": {"dual"}, "second": {hostile}}); w.Code != 303 || b.value("RecvCompletionMethod") != "2" {
		t.Fatalf("run: %d", w.Code)
	}
	page := b.get(path).Body.String()
	if !strings.Contains(page, "Dual port traffic") || !strings.Contains(page, "were changed") || strings.Contains(page, "<script>") {
		t.Error("want the scenario and what it changed, without scripts:\n", page)
	}
	last := lastField.FindStringSubmatch(page)[1]
	if w := b.post(path, url.Values{"scenario": {"undo"}, "last": {"2020-01-01T00:00:00Z"}}); w.Code != 422 ||
		b.value("RecvCompletionMethod") != "2" {
		t.Errorf("undo of what is not the last: %d", w.Code)
	}
	// Both adapters go back, because the change was made to both.
	if w := b.post(path, url.Values{"scenario": {"undo"}, "last": {last}}); w.Code != 303 || b.value("RecvCompletionMethod") != was {
		t.Errorf("undo: %d", w.Code)
	}
	if other, _ := tunings[b.fake].Entries(); len(other) != 2 || len(other[1].Adapters()) != 2 {
		t.Errorf("the log has %+v, want 2 entries, the second of 2 adapters", other)
	}
	if w := b.post(path, url.Values{"scenario": {"undo"}, "last": {last}}); w.Code != 422 ||
		!strings.Contains(w.Body.String(), "left to undo") {
		t.Errorf("undo again: %d", w.Code)
	}
}

func TestWrongScenariosAreRefusedInPlace(t *testing.T) {
	b := newBench(t)
	for form, want := range map[string]string{
		"scenario=nothing": "allowed: single", "scenario=multicast": "allowed: single", "scenario=dual": "Second adapter",
		"scenario=manual&base=x&number=1": "Base is", "scenario=manual&base=3&number=2": "allowed: 1 to 1",
		"scenario=single&second=Ethernet+1": "two that differ", "": "allowed: single",
	} {
		v, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		if w := b.post("/web/adapters/Ethernet%201/performance", v); w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, without %q", form, w.Code, want)
		}
	}
}
