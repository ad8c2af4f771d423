package main

import (
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/tools/eventlog"
	"github.com/softvpi/softvpi/internal/tools/report"
	"github.com/softvpi/softvpi/internal/tools/typeperf"
)

// countersCmd passes everything to the tool, which parses typeperf's options.
type countersCmd struct {
	Args []string `arg:"" optional:"" help:"See softvpi counters -h."`
}

func (c countersCmd) Run(s *session) error {
	env := s.env
	env.Name, env.Args = "softvpi counters", c.Args
	return ended(typeperf.Main(s.ctx, env, func(socket string) typeperf.Driver { return driver.NewAdmin(socket) }))
}

// eventsCmd passes everything to the tool.
type eventsCmd struct {
	Args []string `arg:"" optional:"" help:"See softvpi events -h."`
}

func (c eventsCmd) Run(s *session) error {
	env := s.env
	env.Name, env.Args = "softvpi events", c.Args
	return ended(eventlog.Main(s.ctx, env, func(socket string) eventlog.Driver { return driver.NewAdmin(socket) }))
}

// reportCmd passes everything to the tool.
type reportCmd struct {
	Args []string `arg:"" optional:"" help:"See softvpi report -h."`
}

func (c reportCmd) Run(s *session) error {
	env := s.env
	env.Name, env.Args = "softvpi report", c.Args
	return ended(report.Main(version())(s.ctx, env))
}

// ended returns the error for a tool that has already reported everything.
func ended(status int) error {
	if status == 0 {
		return nil
	}
	return silentError{status}
}
