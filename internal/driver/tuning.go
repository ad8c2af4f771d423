package driver

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tuning"
)

var _ apiserver.Tuner = (*Driver)(nil)

// newestTunings is the number of recent changes by tuning scenarios that are reported.
const newestTunings = 50

// openTunings opens the log of the tuning scenarios: next to the registry, or in memory if the registry
// is.
func (d *Driver) openTunings() {
	file := filepath.Join(d.cfg.State, "LogFiles", "PerformanceTunning.log") // the manual's spelling
	if d.registry.Volatile() != "" {
		file = ""
	}
	d.tunings = tuning.NewLog(file)
}

// processors returns the number of processors that tuning scenarios distribute.
func processors() int { return min(runtime.NumCPU(), tuning.MostProcessor+1) }

// Tuning returns the available scenarios and the newest changes.
func (d *Driver) Tuning() (api.Tuning, error) {
	log, err := d.tunings.Entries()
	if err != nil {
		return api.Tuning{}, err
	}
	log = log[max(0, len(log)-newestTunings):]
	return api.Tuning{Processors: processors(), Scenarios: tuning.Scenarios(), Log: d.tunings.File(),
		Changes: append([]tuning.Entry{}, log...)}, nil
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
		return tuning.Outcome{}, refused(err)
	}
	p.Log = d.tunings.File()
	if q.DryRun || len(p.Changes) == 0 {
		return p.Outcome, nil
	}
	// Log first, so that a change that was made can always be undone.
	if err := d.tunings.Record(tuning.Entry{Time: time.Now().UTC(), Scenario: q.Scenario, Changes: p.Changes}); err != nil {
		return tuning.Outcome{}, err
	}
	if _, err := d.changeRegistry(p.Registry, false); err != nil {
		return tuning.Outcome{}, errors.Join(err, d.tunings.Record(p.Reverted(time.Now().UTC())))
	}
	p.Changed = true
	return p.Outcome, nil
}

// tuned returns the adapters of a request, in which it corrects the letter case of names.
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
	if err := q.Check(processors()); err != nil {
		return nil, refused(err)
	}
	return list, nil
}

// refused returns the error of the API for an invalid field of a request, and others as they are.
func refused(err error) error {
	if wrong, ok := errors.AsType[*tuning.RequestError](err); ok {
		return api.Wrong(wrong.Field, wrong.Value, wrong.Allowed)
	}
	return err
}

// spelt returns the name of an adapter that is given in any letter case.
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
