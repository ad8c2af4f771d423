package cmdlets

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/powershell"
)

func counterCmdlets() []cmdlet {
	return []cmdlet{
		{powershell.Cmdlet{Name: "Get-Counter", Help: "Read counters by typeperf's paths; rates over an interval.", Params: []powershell.Param{
			{Name: "Counter", Kind: powershell.Strings, Position: 1, Set: "read", Piped: true, Help: `Paths such as "\Set(Instance)\Counter", with *.`},
			{Name: "ListSet", Kind: powershell.Strings, Set: "list", Help: "List the sets of these names, with wildcards."},
			{Name: "SampleInterval", Kind: powershell.Number, Min: 1, Max: 3600, Set: "read", Help: "Seconds between samples; 1."},
			{Name: "MaxSamples", Kind: powershell.Number, Min: 1, Max: 100000, Set: "read", Help: "How many; 1."}}},
			func(r *run) error {
				if r.Given("ListSet") {
					return r.listCounters()
				}
				return r.readCounters()
			}},
	}
}

func (r *run) listCounters() error {
	var sets []counters.Set
	if err := r.driver.Get(r.Context, "/counters/sets", nil, &sets); err != nil {
		return err
	}
	for _, s := range sets {
		for _, want := range r.Texts("ListSet") {
			if !powershell.Like(s.Name, want) && !powershell.Like(s.Short, want) {
				continue
			}
			var paths []any
			for _, c := range s.Counters {
				paths = append(paths, `\`+s.Name+`(*)\`+c.Name)
			}
			o := powershell.NewObject("CounterSet")
			o.List = true
			r.Emit(o.With("CounterSetName", s.Name).With("MachineName", ".").With("Description", s.Description).With("Paths", paths))
			break
		}
	}
	return nil
}

func (r *run) readCounters() error {
	paths := r.Texts("Counter")
	if len(paths) == 0 {
		return &powershell.ParameterError{Parameter: "-Counter is missing", Allowed: `paths such as "\Set(Instance)\Counter"; -ListSet * lists them`}
	}
	for _, p := range paths {
		if err := counters.CheckPath(p); err != nil {
			return err
		}
	}
	interval, samples := time.Second, int64(1)
	if r.Given("SampleInterval") {
		interval = time.Duration(r.Number("SampleInterval")) * time.Second
	}
	if r.Given("MaxSamples") {
		samples = r.Number("MaxSamples")
	}
	var reader counters.Reader
	s, err := r.sampleCounters(paths)
	if err != nil {
		return err
	}
	readings := reader.Read(s)
	if samples == 1 && !s.HasRates() {
		r.emitSample(s.Time, readings)
		return nil
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	for range samples {
		select {
		case <-r.Context.Done():
			return r.Context.Err()
		case <-t.C:
		}
		if s, err = r.sampleCounters(paths); err != nil {
			return err
		}
		r.emitSample(s.Time, reader.Read(s))
	}
	return nil
}

func (r *run) sampleCounters(paths []string) (s counters.Snapshot, err error) {
	err = r.driver.Get(r.Context, "/counters", url.Values{"path": paths}, &s)
	return s, err
}

func (r *run) emitSample(at time.Time, list []counters.Reading) {
	var samples []any
	var text []string
	for _, x := range list {
		path := fmt.Sprintf(`\%s(%s)\%s`, x.Set, x.Instance, x.Counter)
		var value any
		switch {
		case x.Value.Whole:
			value = int64(x.Value.Integer)
		case x.Value.Known:
			value = x.Value.Real
		}
		samples = append(samples, powershell.NewObject("PerformanceCounterSample", "Path", "InstanceName", "CookedValue").With("Path", path).
			With("InstanceName", x.Instance).With("CookedValue", value))
		text = append(text, path+" :", x.Value.String(), "")
	}
	r.Emit(powershell.NewObject("PerformanceCounterSampleSet", "Timestamp", "Readings").With("Timestamp", at.Local().Format("2006-01-02 15:04:05")).
		With("Readings", strings.Join(text, "\n")).With("CounterSamples", samples))
}
