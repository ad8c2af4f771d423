package tuning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

// Request asks for a scenario.
type Request struct {
	Scenario string   `json:"scenario" doc:"The name of a scenario, or undo: what was before the last change."`
	Adapters []string `json:"adapters" minItems:"1" maxItems:"2" doc:"By name; the first is the one that a scenario of a single port is for."`
	Base     int      `json:"base,omitempty" doc:"Of manual: the first processor."`
	Number   int      `json:"number,omitempty" doc:"Of manual: how many processors."`
	DryRun   bool     `json:"dry_run,omitempty" doc:"Change nothing."`
}

// RequestError reports an invalid field of a request.
type RequestError struct{ Field, Value, Allowed string }

func (e *RequestError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, e.Value, e.Allowed)
}

// UndoError reports a request to undo when there is nothing to undo.
type UndoError struct{ Adapter string }

func (e *UndoError) Error() string {
	return fmt.Sprintf("no change of adapter %q is left to undo", e.Adapter)
}

// Change is the change of a key. Nil values mean the default of the key.
type Change struct {
	Adapter string  `json:"adapter"`
	Key     string  `json:"key"`
	Before  *string `json:"before" doc:"What was stored; null: nothing."`
	After   *string `json:"after"`
	Built   bool    `json:"built" doc:"Something acts on the key; otherwise it is stored only."`
	AtOnce  bool    `json:"at_once" doc:"It takes effect at once; otherwise at a restart of the adapter."`
}

// Missing is a key that is skipped because an adapter does not have it.
type Missing struct {
	Adapter    string `json:"adapter"`
	Generation string `json:"generation"`
	Key        string `json:"key"`
}

// Outcome is what a request changed, or would change.
type Outcome struct {
	Scenario string    `json:"scenario"`
	Changed  bool      `json:"changed"`
	Log      string    `json:"log" doc:"The file of the log; empty: it is kept in memory only."`
	Changes  []Change  `json:"changes"`
	Missing  []Missing `json:"missing"`
}

// Plan is what a request would change.
type Plan struct {
	Outcome
	Registry []registry.Change
}

// Reverted returns the log entry for a plan that was recorded but not carried out.
func (p *Plan) Reverted(now time.Time) Entry {
	e := Entry{Time: now, Scenario: Undo}
	for _, c := range p.Changes {
		c.Before, c.After = c.After, c.Before
		e.Changes = append(e.Changes, c)
	}
	return e
}

// Check checks a request on a machine with the given number of processors.
func (q *Request) Check(processors int) error {
	s, ok := Find(q.Scenario)
	if q.Scenario == Undo {
		s, ok = Scenario{Fewest: 1, Most: 2}, true
	}
	switch {
	case !ok:
		names := make([]string, len(scenarios))
		for i := range scenarios {
			names[i] = scenarios[i].Name
		}
		return &RequestError{"scenario", strconv.Quote(q.Scenario), strings.Join(names, ", ") + ", " + Undo}
	case len(q.Adapters) < s.Fewest || len(q.Adapters) > s.Most:
		allowed := strconv.Itoa(s.Fewest)
		if s.Most > s.Fewest {
			allowed += " or " + strconv.Itoa(s.Most)
		}
		return &RequestError{"adapters", strconv.Itoa(len(q.Adapters)), allowed + " for " + q.Scenario}
	case len(q.Adapters) == 2 && q.Adapters[0] == q.Adapters[1]:
		return &RequestError{"adapters", "twice " + strconv.Quote(q.Adapters[0]), "two that differ"}
	}
	return q.checkProcessors(s.Chosen, min(max(processors, 1), MostProcessor+1))
}

func (q *Request) checkProcessors(chosen bool, n int) error {
	switch {
	case !chosen && q.Base != 0:
		return &RequestError{"base", strconv.Itoa(q.Base), "0 unless the scenario is manual"}
	case !chosen && q.Number != 0:
		return &RequestError{"number", strconv.Itoa(q.Number), "0 unless the scenario is manual"}
	case !chosen:
		return nil
	case q.Base < 0 || q.Base >= n:
		return &RequestError{"base", strconv.Itoa(q.Base), fmt.Sprintf("0 to %d", n-1)}
	case q.Number < 1 || q.Number > n-q.Base:
		return &RequestError{"number", strconv.Itoa(q.Number), fmt.Sprintf("1 to %d from processor %d on", n-q.Base, q.Base)}
	}
	return nil
}

// NewPlan plans a request, checked by Check, for the adapters that it names. The log tells what to undo.
func NewPlan(r *registry.Registry, q Request, adapters []registry.Adapter, processors int, log []Entry) (*Plan, error) {
	p := &Plan{Outcome: Outcome{Scenario: q.Scenario, Changes: []Change{}, Missing: []Missing{}}}
	s, _ := Find(q.Scenario)
	for i, a := range adapters {
		if s.Ethernet && a.InfiniBand {
			return nil, &RequestError{"adapters", strconv.Quote(a.Name) + ", which is InfiniBand", "Ethernet adapters for " + q.Scenario}
		}
		list := s.assignments(i, len(adapters), a.InfiniBand, &q, processors)
		if q.Scenario == Undo {
			last, ok := Last(log, a.Name)
			if !ok {
				return nil, &UndoError{a.Name}
			}
			list = last.before(a.Name)
		}
		if err := p.add(r, a, list); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// add adds the changes that assignments make to an adapter.
func (p *Plan) add(r *registry.Registry, a registry.Adapter, list []assignment) error {
	settings := r.Settings(a)
	for _, x := range list {
		i := slices.IndexFunc(settings, func(s registry.Setting) bool { return s.Key.Name == x.key })
		if i < 0 {
			p.Missing = append(p.Missing, Missing{a.Name, generation(a), x.key})
			continue
		}
		s := &settings[i]
		before := stored(r, s)
		same := before == x.value || before != nil && x.value != nil && *before == *x.value
		if same && p.Scenario != Undo { // undoing is logged even if somebody had already restored the value
			continue
		}
		changes, err := a.SetKey(x.key, x.value)
		if err != nil {
			return err
		}
		p.Registry = append(p.Registry, changes...)
		p.Changes = append(p.Changes, Change{a.Name, x.key, before, x.value, s.Key.Status == catalogue.Built,
			s.Key.Effect == catalogue.AtOnce})
	}
	return nil
}

func generation(a registry.Adapter) string {
	if a.Generation == catalogue.MLX4 {
		return "mlx4"
	}
	return "mlx5"
}

// stored returns the value of a setting in the registry as text; nil: there is no valid one.
func stored(r *registry.Registry, s *registry.Setting) *string {
	if !s.Stored || s.Problem != nil {
		return nil
	}
	text := s.Key.Format(s.Value)
	return &text
}
