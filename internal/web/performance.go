package web

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tuning"
)

// performanceView is the contents of the Performance tab.
type performanceView struct {
	api.Tuning
	Chosen  tuning.Request
	Second  string
	Others  []string        // adapters that can be the second one
	Planned *tuning.Outcome // what the chosen scenario would change; nil: not requested
	History []tuningEntry   // of the adapter, the newest first
	// Last is the change that is undone next, Pair the adapters for which it is undone.
	Last *tuning.Entry
	Pair []string
}

// tuningEntry is a change in the log as displayed.
type tuningEntry struct {
	tuning.Entry
	Title  string
	Undone bool // it reverted another one
}

// errChangedSince says that the change to undo is no longer the last one.
var errChangedSince = errors.New("settings have changed since this page was loaded; check them, and try again")

// LastProcessor returns the highest processor number.
func (v performanceView) LastProcessor() int { return v.Processors - 1 }

// Stored returns how many keys of a planned change have no effect yet.
func (v performanceView) Stored() (n int) {
	for _, c := range v.Planned.Changes {
		if !c.Built {
			n++
		}
	}
	return n
}

// performance shows the Performance tab (WinOF 5.50, 4.9.1.5).
func (s *Server) performance(q *request) error {
	return s.showPerformance(q, tuning.Request{Scenario: tuning.Scenarios()[0].Name}, nil, nil)
}

// showPerformance shows the tab with a choice, and with what that would change or what is wrong with it.
func (s *Server) showPerformance(q *request, chosen tuning.Request, planned *tuning.Outcome, wrong error) error {
	v, err := s.adapterView(q, "performance")
	if err != nil {
		return err
	}
	d := performanceView{Chosen: chosen, Planned: planned}
	if d.Tuning, err = s.client.Tuning(q.r.Context()); err != nil {
		return err
	}
	if wrong != nil {
		v.Problem = sentence(wrong.Error())
	}
	if d.Chosen.Number == 0 {
		d.Chosen.Number = d.Processors
	}
	if len(chosen.Adapters) > 1 {
		d.Second = chosen.Adapters[1]
	}
	for _, a := range v.Adapters {
		if a.Name != v.Adapter.Name {
			d.Others = append(d.Others, a.Name)
		}
	}
	d.remember(v.Adapter.Name)
	v.Data = d
	return s.show(q, "performance", v)
}

// remember copies from the log what concerns an adapter.
func (v *performanceView) remember(adapter string) {
	for _, e := range slices.Backward(v.Changes) {
		if slices.Contains(e.Adapters(), adapter) {
			v.History = append(v.History, tuningEntry{e, scenarioTitle(e.Scenario), e.Scenario == tuning.Undo})
		}
	}
	last, ok := tuning.Last(v.Changes, adapter)
	if !ok {
		return
	}
	v.Last, v.Pair = &last, []string{adapter}
	for _, other := range last.Adapters() {
		if o, ok := tuning.Last(v.Changes, other); ok && other != adapter && o.Time.Equal(last.Time) {
			v.Pair = append(v.Pair, other)
		}
	}
}

// scenarioTitle returns the title of a scenario in the log.
func scenarioTitle(name string) string {
	if x, ok := tuning.Find(name); ok {
		return x.Title
	}
	if name == tuning.Undo {
		return "Undone"
	}
	return name
}

// tune runs a scenario, shows what it would change, or reverts the last one.
func (s *Server) tune(q *request) error {
	form, name := q.r.PostForm, q.r.PathValue("name")
	ask := tuning.Request{Scenario: form.Get("scenario"), Adapters: []string{name}, DryRun: form.Has("preview")}
	if ask.Scenario == tuning.Undo {
		return s.undoTuning(q)
	}
	x, _ := tuning.Find(ask.Scenario)
	if second := form.Get("second"); second != "" && x.Most > 1 {
		ask.Adapters = append(ask.Adapters, second)
	}
	if x.Chosen {
		var err error
		for field, n := range map[string]*int{"base": &ask.Base, "number": &ask.Number} {
			if *n, err = strconv.Atoi(form.Get(field)); err != nil {
				return s.showPerformance(q, ask, nil, &api.FieldError{Field: field, Value: strconv.Quote(form.Get(field)),
					Allowed: "a number"})
			}
		}
	}
	if len(ask.Adapters) < x.Fewest {
		return s.showPerformance(q, ask, nil, &api.FieldError{Field: "second adapter", Value: "none",
			Allowed: "one of the other adapters, for " + x.Title})
	}
	out, err := s.client.Tune(q.r.Context(), ask)
	if err != nil || ask.DryRun {
		return s.showPerformance(q, ask, &out, err)
	}
	return s.done(q, x.Title+": "+tuned(&out), adapterURL(name, "/performance"))
}

// tuned says what was changed.
func tuned(out *tuning.Outcome) string {
	if len(out.Changes) == 0 {
		return "everything was already set this way."
	}
	restart := 0
	for _, c := range out.Changes {
		if c.Built && !c.AtOnce {
			restart++
		}
	}
	text := keysText(len(out.Changes)) + " changed."
	if restart > 0 {
		text += " " + strconv.Itoa(restart) + " of them wait for a restart of the adapter."
	}
	return text
}

func keysText(n int) string {
	if n == 1 {
		return "1 key was"
	}
	return strconv.Itoa(n) + " keys were"
}

// undoTuning reverts the change that the page showed, unless there has been another one since.
func (s *Server) undoTuning(q *request) error {
	name := q.r.PathValue("name")
	t, err := s.client.Tuning(q.r.Context())
	if err != nil {
		return err
	}
	v := performanceView{Tuning: t}
	v.remember(name)
	again := tuning.Request{Scenario: tuning.Scenarios()[0].Name}
	switch {
	case v.Last == nil:
		return s.showPerformance(q, again, nil, &tuning.UndoError{Adapter: name})
	case v.Last.Time.Format(time.RFC3339Nano) != q.r.PostForm.Get("last"):
		return s.showPerformance(q, again, nil, errChangedSince)
	}
	out, err := s.client.Tune(q.r.Context(), tuning.Request{Scenario: tuning.Undo, Adapters: v.Pair})
	if err != nil {
		return s.showPerformance(q, again, nil, err)
	}
	return s.done(q, scenarioTitle(v.Last.Scenario)+" is undone: "+tuned(&out), adapterURL(name, "/performance"))
}
