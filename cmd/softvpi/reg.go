package main

import "github.com/softvpi/softvpi/internal/tools/reg"

// regCmd passes everything to the tool, which parses reg.exe's options.
type regCmd struct {
	Args []string `arg:"" optional:"" help:"The same as reg.exe's; softvpi reg /? shows them."`
}

func (c regCmd) Run(s *session) error {
	env := s.env
	env.Name, env.Args = "reg", c.Args
	if status := reg.Main(s.ctx, env); status != 0 {
		return silentError{status}
	}
	return nil
}
