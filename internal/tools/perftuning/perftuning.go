// Package perftuning is perf_tuning: it sets the keys that suit a kind of traffic, and restores them
// (WinOF 5.50, 4.9.1.5 and 4.9.1.6).
package perftuning

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/tuning"
)

const synopsis = `usage: perf_tuning -s  -c1 ADAPTER [-c2 ADAPTER]     traffic of a single port; the second gets its defaults
       perf_tuning -st -c1 ADAPTER [-c2 ADAPTER]     a single stream; the second gets its defaults
       perf_tuning -d  -c1 ADAPTER -c2 ADAPTER       traffic of both ports
       perf_tuning -f  -c1 ADAPTER -c2 ADAPTER       forwarding from one to the other
       perf_tuning -m  -c1 ADAPTER -b BASE -n NUMBER by hand: RSS on NUMBER processors from BASE on
       perf_tuning -r  -c1 ADAPTER [-c2 ADAPTER]     the defaults
       perf_tuning --undo -c1 ADAPTER [-c2 ADAPTER]  what was before the last change
Sets registry keys of adapters; the driver writes what they were before to a log. Keys that adapters do not have are
left out, and keys that nothing acts on yet are stored; the output says both.`

// choice is an option that selects a scenario.
type choice struct{ option, scenario string }

func choices() (list []choice) {
	for _, s := range tuning.Scenarios() {
		list = append(list, choice{s.Option, s.Name})
	}
	return append(list, choice{"--" + tuning.Undo, tuning.Undo})
}

// Main runs perf_tuning.
func Main(ctx context.Context, env tool.Env) int {
	var q tuning.Request
	f := tool.NewFlags(env, synopsis)
	chosen := map[string]*bool{}
	for _, c := range choices() {
		chosen[c.scenario] = f.Bool(strings.TrimLeft(c.option, "-"), false, "scenario, as above")
	}
	first := f.String("c1", "", "first `adapter`")
	second := f.String("c2", "", "second `adapter`")
	f.Int(&q.Base, "b", 0, 0, tuning.MostProcessor, "of the first processor (-m)")
	f.Int(&q.Number, "n", 0, 1, tuning.MostProcessor+1, "of processors (-m)")
	f.BoolVar(&q.DryRun, "dry-run", false, "show what would be changed, and change nothing")
	asJSON := f.Bool("json", false, "print JSON")
	socket := f.String("socket", "", "`path` of the driver's socket")
	if status, done := f.Parse(); done {
		return status
	}
	if err := f.NoArguments(); err != nil {
		return f.Refuse(err)
	}
	option := ""
	for _, c := range choices() {
		if !*chosen[c.scenario] {
			continue
		}
		if option != "" {
			return f.Refuse(tool.Usagef("%s and %s exclude each other", option, c.option))
		}
		option, q.Scenario = c.option, c.scenario
	}
	if err := check(f, option, *first, *second); err != nil {
		return f.Refuse(err)
	}
	q.Adapters = []string{*first}
	if *second != "" {
		q.Adapters = append(q.Adapters, *second)
	}
	out, err := api.NewClient(*socket).Tune(ctx, q)
	if err == nil {
		err = show(env.Stdout, &out, *asJSON)
	}
	return env.End(ctx, err)
}

// check checks the options before the driver would report problems in its own words.
func check(f *tool.Flags, option, first, second string) error {
	both := option == "-d" || option == "-f"
	switch {
	case option == "":
		return tool.Usagef("the scenario is missing; allowed: -s -st -d -f -m -r --undo")
	case first == "":
		return tool.Usagef("-c1 is missing; it is the name of an adapter")
	case both && second == "":
		return tool.Usagef("%s needs -c2, the name of the second adapter", option)
	case option == "-m" && second != "":
		return tool.Usagef("-m is for one adapter; -c2 does not go with it")
	case strings.EqualFold(first, second):
		return tool.Usagef("-c1 and -c2 are the same adapter")
	case option == "-m" && (!f.Given("b") || !f.Given("n")):
		return tool.Usagef("-m needs -b, the first processor, and -n, their number")
	case option != "-m" && (f.Given("b") || f.Given("n")):
		return tool.Usagef("-b and -n go only with -m")
	}
	return nil
}

func show(w io.Writer, o *tuning.Outcome, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(o)
	}
	_, err := io.WriteString(w, text(o))
	return err
}

// text describes what was done, or would be.
func text(o *tuning.Outcome) string {
	var b strings.Builder
	value := func(s *string) string {
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
		status := "at restart"
		switch {
		case !c.Built:
			status = "stored only"
			stored++
		case c.AtOnce:
			status = "at once"
		}
		row(c.Adapter, c.Key, value(c.Before), value(c.After), status)
	}
	for _, m := range o.Missing {
		fmt.Fprintf(&b, "Left out: %s of %s (%s); the adapter has no such key.\n", m.Key, m.Adapter, m.Generation)
	}
	if stored > 0 {
		fmt.Fprintf(&b, "Stored only: %d of the keys have nothing to act on yet.\n", stored)
	}
	switch {
	case len(o.Changes) == 0:
		b.WriteString("Everything is already set this way.\n")
	case o.Changed && o.Log == "":
		b.WriteString("Changed. A restart of the adapters may be needed. The driver keeps nothing: no log is written.\n")
	case o.Changed:
		fmt.Fprintf(&b, "Changed. A restart of the adapters may be needed. Log: %s\n", o.Log)
	default:
		b.WriteString("Nothing was changed: --dry-run.\n")
	}
	return b.String()
}
