package driver

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tuning"
)

var _ api.Tuner = (*Driver)(nil)

// newestTunings is how many changes of tuning scenarios are told.
const newestTunings = 50

// openTunings opens the log of the tuning scenarios: beside the registry, and in memory where that is.
func (d *Driver) openTunings() {
	file := filepath.Join(d.cfg.State, "LogFiles", "PerformanceTunning.log") // the manual's spelling
	if d.registry.Volatile() != "" {
		file = ""
	}
	d.tunings = tuning.NewLog(file)
}

// processors is how many processors tuning scenarios share out.
func processors() int { return min(runtime.NumCPU(), tuning.MostProcessor+1) }

// Tuning is what can be run, and the newest changes.
func (d *Driver) Tuning() (api.Tuning, error) {
	log, err := d.tunings.Entries()
	if err != nil {
		return api.Tuning{}, err
	}
	log = log[max(0, len(log)-newestTunings):]
	return api.Tuning{Processors: processors(), Scenarios: tuning.Scenarios(), Log: d.tunings.File(), Changes: append([]tuning.Entry{}, log...)}, nil
}

// Tune runs a tuning scenario: its keys are set all or none.
func (d *Driver) Tune(q tuning.Request) (tuning.Outcome, error) {
	adapters, err := d.tuned(&q)
	if err != nil {
		return tuning.Outcome{}, err
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	log, err := d.tunings.Entries()
	if err != nil {
		return tuning.Outcome{}, err
	}
	p, err := tuning.NewPlan(d.registry, q, adapters, processors(), log)
	if err != nil {
		return tuning.Outcome{}, err
	}
	p.Log = d.tunings.File()
	if q.DryRun || len(p.Changes) == 0 {
		return p.Outcome, nil
	}
	// The log first: a change that is made can then be undone, whatever happens between the two.
	if err := d.tunings.Record(tuning.Entry{Time: time.Now().UTC(), Scenario: q.Scenario, Changes: p.Changes}); err != nil {
		return tuning.Outcome{}, err
	}
	if _, err := d.changeRegistry(p.Registry, false); err != nil {
		return tuning.Outcome{}, errors.Join(err, d.tunings.Record(p.Reverted(time.Now().UTC())))
	}
	p.Changed = true
	return p.Outcome, nil
}

// tuned are the adapters of a request, whose names it spells as they are spelt.
func (d *Driver) tuned(q *tuning.Request) (list []registry.Adapter, err error) {
	names := slices.Clone(q.Adapters)
	for i := range names {
		names[i] = d.spelt(names[i])
		index, err := d.find(names[i])
		if err != nil {
			return nil, err
		}
		list = append(list, d.running[index].known())
	}
	q.Adapters = names
	var wrong *tuning.RequestError
	if err := q.Check(processors()); errors.As(err, &wrong) {
		return nil, api.Wrong(wrong.Field, wrong.Value, wrong.Allowed)
	} else if err != nil {
		return nil, err
	}
	return list, nil
}

// spelt is the name of an adapter that is given in any letter case.
func (d *Driver) spelt(name string) string {
	other := name
	for _, a := range d.cfg.Adapters {
		switch {
		case a.Name == name:
			return name
		case other == name && strings.EqualFold(a.Name, name):
			other = a.Name
		}
	}
	return other
}
