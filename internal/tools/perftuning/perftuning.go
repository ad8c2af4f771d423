// Package perftuning is perf_tuning: it sets the keys that suit a kind of traffic, and puts them back (WinOF 5.50,
// 4.9.1.5 and 4.9.1.6).
package perftuning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/paths"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const synopsis = `usage: perf_tuning -s  -c1 ADAPTER [-c2 ADAPTER]     traffic of a single port; the second gets its defaults
       perf_tuning -st -c1 ADAPTER [-c2 ADAPTER]     a single stream; the second gets its defaults
       perf_tuning -d  -c1 ADAPTER -c2 ADAPTER       traffic of both ports
       perf_tuning -f  -c1 ADAPTER -c2 ADAPTER       forwarding from one to the other
       perf_tuning -m  -c1 ADAPTER -b BASE -n NUMBER by hand: RSS on NUMBER processors from BASE on
       perf_tuning -r  -c1 ADAPTER [-c2 ADAPTER]     the defaults
       perf_tuning --undo -c1 ADAPTER [-c2 ADAPTER]  what was before the last change
Sets registry keys of adapters, and writes what they were before to the log. Keys that adapters do not have are left
out, and keys that nothing acts on yet are stored; both are said.`

const undoing = "--undo"

// scenarios are the options that say what to do.
var scenarios = []string{"s", "st", "d", "f", "m", "r", "undo"}

type run struct {
	ctx      context.Context
	env      tool.Env
	client   *api.Client
	scenario string
	names    []string // of the adapters
	base     int
	number   int
	dry      bool
	json     bool
	log      string
}

// Main runs perf_tuning.
func Main(ctx context.Context, env tool.Env) int {
	r := &run{ctx: ctx, env: env}
	f := tool.NewFlags(env, synopsis)
	chosen := map[string]*bool{}
	for _, s := range scenarios {
		chosen[s] = f.Bool(s, false, "scenario, as above")
	}
	first := f.String("c1", "", "first `adapter`")
	second := f.String("c2", "", "second `adapter`")
	f.Int(&r.base, "b", -1, 0, mostProcessor, "of the first processor (-m)")
	f.Int(&r.number, "n", 0, 1, mostProcessor+1, "of processors (-m)")
	f.BoolVar(&r.dry, "dry-run", false, "show what would be changed, and change nothing")
	f.BoolVar(&r.json, "json", false, "print JSON")
	f.StringVar(&r.log, "log", "", "`file` of the log (default: LogFiles/PerformanceTunning.log in the driver's state directory)")
	socket := f.String("socket", "", "`path` of the driver's socket")
	if status, done := f.Parse(); done {
		return status
	}
	for _, s := range scenarios {
		if *chosen[s] && r.scenario != "" {
			return f.Refuse(tool.Usagef("-%s and -%s exclude each other", r.scenario, s))
		}
		if *chosen[s] {
			r.scenario = s
		}
	}
	if err := errors.Join(f.NoArguments()); err != nil {
		return f.Refuse(err)
	}
	if err := r.check(*first, *second); err != nil {
		return f.Refuse(err)
	}
	if r.log == "" {
		r.log = filepath.Join(paths.State(), "LogFiles", "PerformanceTunning.log") // the manual's spelling
	}
	r.client = api.NewClient(*socket)
	err := r.tune()
	var usage *tool.UsageError
	var field *api.FieldError
	var value *catalogue.ValueError
	if errors.As(err, &usage) || errors.As(err, &field) || errors.As(err, &value) {
		return f.Refuse(err)
	}
	return env.End(ctx, err)
}

// check finds what is wrong with the options.
func (r *run) check(first, second string) error {
	both := r.scenario == "d" || r.scenario == "f"
	switch {
	case r.scenario == "":
		return tool.Usagef("the scenario is missing; allowed: -s -st -d -f -m -r --undo")
	case first == "":
		return tool.Usagef("-c1 is missing; it is the name of an adapter")
	case both && second == "":
		return tool.Usagef("-%s needs -c2, the name of the second adapter", r.scenario)
	case r.scenario == "m" && second != "":
		return tool.Usagef("-m is for one adapter; -c2 does not go with it")
	case strings.EqualFold(first, second):
		return tool.Usagef("-c1 and -c2 are the same adapter")
	case r.scenario == "m" && (r.base < 0 || r.number == 0):
		return tool.Usagef("-m needs -b, the first processor, and -n, their number")
	case r.scenario != "m" && (r.base >= 0 || r.number != 0):
		return tool.Usagef("-b and -n go with -m alone")
	case r.scenario == "m" && r.base+r.number > runtime.NumCPU():
		return tool.Usagef("-b %d and -n %d reach beyond the last processor; allowed: processors 0 to %d", r.base, r.number, runtime.NumCPU()-1)
	}
	r.names = []string{first}
	if second != "" {
		r.names = append(r.names, second)
	}
	return nil
}

// outcome is what a run did.
type outcome struct {
	Scenario string   `json:"scenario"`
	Changed  bool     `json:"changed"`
	Log      string   `json:"log"`
	Changes  []change `json:"changes"`
	Missing  []string `json:"missing"` // keys that adapters do not have
	registry []registry.Change
}

func (r *run) tune() error {
	adapters, err := r.adapters()
	if err != nil {
		return err
	}
	out := outcome{Scenario: "-" + r.scenario, Log: r.log, Changes: []change{}, Missing: []string{}}
	if r.scenario == "undo" {
		out.Scenario = undoing
	}
	for i, a := range adapters {
		list, err := r.assignments(i, len(adapters), a)
		if err == nil {
			err = r.plan(&out, a, list)
		}
		if err != nil {
			return err
		}
	}
	if !r.dry && len(out.Changes) > 0 {
		// The log first: a change that is made can then be undone, whatever happens between the two.
		if err := record(r.log, entry{time.Now().UTC(), out.Scenario, out.Changes}); err != nil {
			return err
		}
		if _, err := r.client.ChangeRegistry(r.ctx, out.registry, false); err != nil {
			return err
		}
		out.Changed = true
	}
	if r.json {
		e := json.NewEncoder(r.env.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(out)
	}
	return out.text(r.env.Stdout)
}

// adapters are those of -c1 and -c2.
func (r *run) adapters() ([]*api.AdapterStatus, error) {
	s, err := r.client.Status(r.ctx)
	if err != nil {
		return nil, err
	}
	var out []*api.AdapterStatus
	for i, name := range r.names {
		var names []string
		var found *api.AdapterStatus
		for j := range s.Adapters {
			a := &s.Adapters[j]
			if a.Name == name || found == nil && strings.EqualFold(a.Name, name) {
				found = a
			}
			names = append(names, strconv.Quote(a.Name))
		}
		if found == nil {
			return nil, &api.FieldError{Field: "-c" + strconv.Itoa(i+1), Value: strconv.Quote(name), Allowed: strings.Join(names, ", ")}
		}
		out = append(out, found)
	}
	return out, nil
}

// assignments are the keys that the scenario sets of adapter i of n.
func (r *run) assignments(i, n int, a *api.AdapterStatus) ([]assignment, error) {
	all := share(runtime.NumCPU(), 1)[0]
	switch r.scenario {
	case "s", "st":
		if i > 0 {
			return defaults(), nil
		}
		if r.scenario == "s" {
			return single(all), nil
		}
		return stream(all), nil
	case "d":
		return dual(share(runtime.NumCPU(), n)[i]), nil
	case "f":
		shares := share(runtime.NumCPU(), n)
		return forwarding(shares[i], shares[1-i]), nil
	case "m":
		return manual(port{r.base, r.number}), nil
	case "r":
		return defaults(), nil
	}
	was, err := before(r.log, a.Name)
	if err != nil {
		return nil, err
	}
	var out []assignment
	for key, value := range was {
		x := assignment{key: key}
		if value != nil {
			x.value = *value
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(x, y assignment) int { return strings.Compare(x.key, y.key) })
	return out, nil
}

// plan adds what assignments change of an adapter. The empty value is the default of the key.
func (r *run) plan(out *outcome, a *api.AdapterStatus, list []assignment) error {
	settings, err := r.client.Settings(r.ctx, a.Name)
	if err != nil {
		return err
	}
	for _, x := range list {
		i := slices.IndexFunc(settings, func(s api.Setting) bool { return s.Name == x.key })
		if i < 0 {
			out.Missing = append(out.Missing, fmt.Sprintf("%s of %s (%s)", x.key, a.Name, a.Generation))
			continue
		}
		s := settings[i]
		var value *string
		if x.value != "" {
			value = &x.value
		}
		same := s.Stored == value || s.Stored != nil && value != nil && *s.Stored == *value
		if same && r.scenario != "undo" { // what is undone stands in the log, also where somebody had done it before
			continue
		}
		changes, err := a.Identity().SetKey(x.key, value)
		if err != nil {
			return err
		}
		out.registry = append(out.registry, changes...)
		out.Changes = append(out.Changes, change{a.Name, x.key, s.Stored, value, s.Status, s.Effect})
	}
	return nil
}

// text prints what was done, or would be.
func (o *outcome) text(w io.Writer) error {
	var b strings.Builder
	show := func(s *string) string {
		if s == nil {
			return "(default)"
		}
		return *s
	}
	row := func(cells ...any) { fmt.Fprintf(&b, "%-20s %-26s %-10s %-10s %s\n", cells...) }
	stored := 0
	if len(o.Changes) > 0 {
		row("Adapter", "Registry Key", "Before", "After", "Status")
	}
	for _, c := range o.Changes {
		status := c.Effect
		if c.Status != "built" {
			status = "stored only"
			stored++
		}
		row(c.Adapter, c.Key, show(c.Before), show(c.After), status)
	}
	for _, m := range o.Missing {
		fmt.Fprintf(&b, "Left out: %s; the adapter has no such key.\n", m)
	}
	if stored > 0 {
		fmt.Fprintf(&b, "Stored only: %d of the keys have nothing to act on yet.\n", stored)
	}
	switch {
	case len(o.Changes) == 0:
		b.WriteString("Everything is set so already.\n")
	case o.Changed:
		fmt.Fprintf(&b, "Changed. A restart of the adapters may be needed. Log: %s\n", o.Log)
	default:
		b.WriteString("Nothing was changed: --dry-run.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
