package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/bench"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type benchCmd struct {
	Rounds  int      `default:"5" help:"Interleaved runs, of which the median counts (1 to 101, default 5)."`
	Seconds float64  `default:"0.5" help:"Length of each run in seconds (0.05 to 60, default 0.5)."`
	Path    []string `help:"What to measure: loopback, veth (root only), attached, memcpy (default: all)."`
}

func (c benchCmd) Run(s *session) error {
	if c.Rounds < 1 || c.Rounds > 101 {
		return tool.Usagef("--rounds is %d; allowed: 1 to 101", c.Rounds)
	}
	if !(c.Seconds >= 0.05 && c.Seconds <= 60) {
		return tool.Usagef("--seconds is %g; allowed: 0.05 to 60", c.Seconds)
	}
	for _, p := range c.Path {
		if !slices.Contains(bench.Paths, p) {
			return tool.Usagef("--path is %q; allowed: %s", p, strings.Join(bench.Paths, ", "))
		}
	}
	return bench.Run(s.ctx, s.env.Stdout, bench.Options{Rounds: c.Rounds, Seconds: c.Seconds, Paths: c.Path})
}

// benchTCPCmd is the plain TCP sender that bench starts as processes.
type benchTCPCmd struct {
	Server  string  `xor:"side" required:"" help:"Address to serve at."`
	Client  string  `xor:"side" required:"" help:"Address of the server."`
	Size    int     `default:"65536" help:"Bytes of a message."`
	Seconds float64 `default:"1" help:"How long to run."`
	Latency bool    `help:"Send one message at a time and wait for it to come back."`
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
	r, err := bench.DialTCP(s.ctx, c.Client, c.Size, c.Latency, time.Duration(c.Seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	return writeJSON(s.env.Stdout, r)
}
