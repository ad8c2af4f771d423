package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/bench"
	"github.com/softvpi/softvpi/internal/bench/worker"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type benchCmd struct {
	Rounds      int      `default:"3" help:"Interleaved runs, of which the median counts (1 to 101, default 3)."`
	Seconds     float64  `default:"0.3" help:"Length of each run in seconds (0.05 to 60, default 0.3)."`
	Part        []string `help:"What to measure: loopback, veth (root only), attached, buffer, waiting, scale (default: all)."`
	JSON        string   `name:"json" placeholder:"FILE" help:"Write the figures to this file too, as JSON (docs/performance.md describes it)."`
	QPs         int      `name:"qps" default:"100000" help:"Queue pairs that part scale creates and destroys (1 to 400000, default 100000)."`
	Connections int      `default:"20000" help:"Connections that part scale holds at once (1 to 100000, default 20000)."`
}

func (c benchCmd) Run(s *session) error {
	if err := c.check(); err != nil {
		return err
	}
	o := bench.Options{Rounds: c.Rounds, Seconds: c.Seconds, Parts: c.Part, QPs: c.QPs, Connections: c.Connections,
		Command: strings.Join(append([]string{s.env.Name}, s.env.Args...), " ")}
	if s.env.Terminal {
		o.Progress = s.env.Stderr
	}
	r, err := bench.Run(s.ctx, o)
	if r == nil {
		return err
	}
	err = errors.Join(err, r.WriteMarkdown(s.env.Stdout))
	if c.JSON == "" {
		return err
	}
	f, e := os.Create(c.JSON)
	if e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, r.WriteJSON(f), f.Close())
}

func (c benchCmd) check() error {
	for _, x := range []struct {
		name      string
		v         int
		low, high int
	}{{"rounds", c.Rounds, 1, 101}, {"qps", c.QPs, 1, 400_000}, {"connections", c.Connections, 1, 100_000}} {
		if x.v < x.low || x.v > x.high {
			return tool.Usagef("--%s is %d; allowed: %d to %d", x.name, x.v, x.low, x.high)
		}
	}
	if !(c.Seconds >= 0.05 && c.Seconds <= 60) {
		return tool.Usagef("--seconds is %g; allowed: 0.05 to 60", c.Seconds)
	}
	for _, p := range c.Part {
		if !slices.Contains(bench.Parts, p) {
			return tool.Usagef("--part is %q; allowed: %s", p, strings.Join(bench.Parts, ", "))
		}
	}
	return nil
}

// benchTCPCmd is the plain TCP sender that bench starts as processes.
type benchTCPCmd struct {
	Server  string  `xor:"side" required:"" help:"Address to serve at."`
	Client  string  `xor:"side" required:"" help:"Address of the server."`
	Size    int     `default:"65536" help:"Bytes of a message."`
	Seconds float64 `default:"1" help:"How long to run."`
}

func (c benchTCPCmd) Run(s *session) error {
	if c.Server != "" {
		return bench.ServeTCP(s.ctx, c.Server, func() { fmt.Fprintln(s.env.Stdout, "serving at", c.Server) })
	}
	if c.Size < 1 || c.Size > 16<<20 {
		return tool.Usagef("--size is %d; allowed: 1 to %d", c.Size, 16<<20)
	}
	if !(c.Seconds >= 0.01 && c.Seconds <= 3600) {
		return tool.Usagef("--seconds is %g; allowed: 0.01 to 3600", c.Seconds)
	}
	r, err := bench.DialTCP(s.ctx, c.Client, c.Size, time.Duration(c.Seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	return writeJSON(s.env.Stdout, r)
}

// benchWorkerCmd is the program that bench starts and tells what to do.
type benchWorkerCmd struct{}

func (benchWorkerCmd) Run(s *session) error {
	return worker.Serve(s.ctx, s.env.Stdin, s.env.Stdout)
}
