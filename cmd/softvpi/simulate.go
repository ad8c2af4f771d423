package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/cpu/hugepages"
	"github.com/softvpi/softvpi/internal/simulate"
	"github.com/softvpi/softvpi/internal/simulate/report"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// simulateCmd runs a scenario in virtual time.
type simulateCmd struct {
	File       string   `arg:"" help:"Scenario (JSON, described in docs/simulate.md)."`
	Set        []string `sep:"none" placeholder:"FIELD=VALUE" help:"Put a value in the place of a field's, such as lean=true or switch.kmin=5KB; several are possible."`
	Sweep      []string `sep:"none" placeholder:"FIELD=VALUE,..." help:"Run the scenario once for each value of a field, such as kmin=5,40,160, and compare; with several, for each combination."`
	JSON       string   `name:"json" placeholder:"FILE" help:"Write the result to this file, as JSON."`
	CSV        string   `name:"csv" placeholder:"DIR" help:"Write flows, time series, queues and ports to this directory, as CSV."`
	HTML       string   `name:"html" placeholder:"FILE" help:"Write a report with plots to this file, which needs no network."`
	Processors int      `help:"Processors that the runs of --sweep, or the parts of one run, use at once (default: all; the results do not depend on it)."`
	Quiet      bool     `help:"Show no progress."`
}

func (c simulateCmd) Run(s *session) error {
	if c.Processors < 0 || c.Processors > 1024 {
		return tool.Usagef("--processors is %d; allowed: 1 to 1024, or 0 for all", c.Processors)
	}
	if c.Processors == 0 {
		c.Processors = runtime.GOMAXPROCS(0)
	}
	base, values, err := c.values()
	if err != nil {
		return asUsage(err)
	}
	runs, err := scenario.Combine(base, values, c.Sweep)
	if err != nil {
		return asUsage(err)
	}
	if err := c.places(); err != nil {
		return err
	}
	if slices.ContainsFunc(runs, func(x scenario.Labelled) bool { return x.IdleLACP() }) {
		fmt.Fprintln(s.env.Stderr, "simulate: lacp has no effect where no host has several links (topology.bundle, or topology.links)")
	}
	progress := newProgress(s, c.Quiet)
	memory := gathering{next: time.Now().Add(gatherAfter)}
	results, err := simulate.All(s.ctx, runs, c.Processors, func(x simulate.Progress) {
		memory.gather(time.Now())
		progress.report(x)
	})
	progress.end()
	if err != nil {
		return asUsage(err)
	}
	return c.write(s, results)
}

// gathering moves what long simulations have in memory to large pages, again and again while it grows: engines of thousands of hosts
// take turns there, and a processor that need not look up where it is saves a tenth of the time. Moving costs that of some seconds.
type gathering struct{ next time.Time }

// gatherAfter is how long a simulation takes before it is a long one, and gatherEvery how often its memory is looked after; no more than a
// tenth of the time is for it.
const (
	gatherAfter = 2 * time.Second
	gatherEvery = 250 * time.Millisecond
)

func (g *gathering) gather(now time.Time) {
	if now.Before(g.next) {
		return
	}
	g.next = now.Add(gatherEvery)
	hugepages.GatherHeap(gatherEvery / 10)
}

// places refuses files that could not be written after a long run.
func (c simulateCmd) places() error {
	for _, f := range []struct{ option, name string }{{"json", c.JSON}, {"html", c.HTML}} {
		if f.name == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(f.name)); err != nil || !info.IsDir() {
			return tool.Usagef("--%s is %q; allowed: a file in a directory that there is", f.option, f.name)
		}
	}
	if c.CSV == "" {
		return nil
	}
	if err := os.MkdirAll(c.CSV, 0o777); err != nil {
		return tool.Usagef("--csv: %v; allowed: a directory", err)
	}
	return nil
}

// values reads the scenario with the values of --set.
func (c simulateCmd) values() (base *scenario.Scenario, values []scenario.Set, err error) {
	if base, err = scenario.Load(c.File); err != nil || len(c.Set) == 0 {
		return base, nil, err
	}
	for _, text := range c.Set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" {
			return nil, nil, tool.Usagef("--set is %q; allowed: FIELD=VALUE, such as switch.kmin=5KB", text)
		}
		v, err := base.Assign("--set "+text, name, value)
		if err != nil {
			return nil, nil, err
		}
		values = append(values, v)
	}
	base, err = scenario.Load(c.File, values...)
	return base, values, err
}

// asUsage makes the errors of scenarios those of usage.
func asUsage(err error) error {
	var bad *scenario.Error
	if errors.As(err, &bad) {
		return tool.Usagef("%s", bad)
	}
	return err
}

func (c simulateCmd) write(s *session, results []simulate.Labelled) error {
	if err := report.Text(s.env.Stdout, results); err != nil {
		return err
	}
	var errs []error
	file := func(name string, write func(io.Writer) error) {
		f, err := os.Create(name)
		if err == nil {
			err = errors.Join(write(f), f.Close())
		}
		errs = append(errs, err)
	}
	if c.JSON != "" {
		file(c.JSON, func(w io.Writer) error { return report.JSON(w, results) })
	}
	if c.CSV != "" {
		for _, t := range report.Tables {
			file(filepath.Join(c.CSV, t.Name+".csv"), func(w io.Writer) error { return t.Write(w, results) })
		}
	}
	if c.HTML != "" {
		file(c.HTML, func(w io.Writer) error { return report.HTML(w, results) })
	}
	return errors.Join(errs...)
}

// progress shows how far runs are: on a terminal in a line that changes, elsewhere in a line now and then.
type progress struct {
	to       io.Writer // nil: nowhere
	terminal bool
	every    time.Duration
	start    time.Time
	shown    time.Time
}

const (
	// onTerminals is how often what a terminal shows changes, and elsewhere how often there is a line.
	onTerminals = 200 * time.Millisecond
	elsewhere   = 10 * time.Second
)

func newProgress(s *session, quiet bool) *progress {
	p := &progress{terminal: s.env.Terminal, every: elsewhere, start: time.Now()}
	if !quiet {
		p.to = s.env.Stderr
	}
	if p.terminal {
		p.every = onTerminals
	} else {
		p.shown = p.start
	}
	return p
}

// report shows how far all runs are together.
func (p *progress) report(x simulate.Progress) {
	now := time.Now()
	if p.to == nil || now.Sub(p.shown) < p.every {
		return
	}
	p.shown = now
	text := progressText(x, now.Sub(p.start))
	if p.terminal {
		text = "\r\x1b[K" + text
	} else {
		text += "\n"
	}
	io.WriteString(p.to, text)
}

// progressText says how far all runs are after a time, and how long they will still take.
func progressText(x simulate.Progress, took time.Duration) string {
	share := float64(x.Now) / float64(x.Of)
	left := "?"
	if share > 0.005 {
		left = time.Duration(float64(took) * (1 - share) / share).Round(time.Second / 10).String()
	}
	return fmt.Sprintf("%5.1f %%  %v of %v  %.2f M packets/s  %s left", 100*share, x.Now.Round(time.Microsecond), x.Of,
		float64(x.Packets)/took.Seconds()/1e6, left)
}

func (p *progress) end() {
	if p.to != nil && p.terminal && !p.shown.IsZero() {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
