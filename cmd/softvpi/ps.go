package main

import (
	"errors"
	"os"

	"github.com/softvpi/softvpi/internal/cmdlets"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/tools/ps"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type psCmd struct {
	socketFlag `embed:""`
	File       string `arg:"" optional:"" help:"The script; - is the standard input."`
	Command    string `short:"c" help:"A script as text in place of a file." placeholder:"TEXT"`
	JSON       bool   `name:"json" help:"Print results as JSON."`
	Module     string `help:"Write a module for a real PowerShell into this directory, which exists: SoftVPI.psd1 and SoftVPI.psm1." placeholder:"DIR"`
	WhatIf     bool   `name:"whatif" help:"Say what the script would change, and change nothing."`
}

func (c psCmd) Run(s *session) error {
	if c.Module != "" {
		if c.File != "" || c.Command != "" {
			return tool.Usagef("--module excludes FILE and --command")
		}
		return cmdlets.New(nil, nil).WriteModule(c.Module)
	}
	if (c.File == "") == (c.Command == "") {
		return tool.Usagef("want one of a FILE, --command=TEXT (-c) and --module=DIR")
	}
	if c.Socket != "" { // for the tools that the script runs
		if err := os.Setenv("SOFTVPI_SOCKET", c.Socket); err != nil {
			return err
		}
	}
	s.env.Name = "softvpi ps"
	err := ps.Run(s.ctx, s.env, ps.Options{File: c.File, Command: c.Command, JSON: c.JSON, WhatIf: c.WhatIf,
		Driver: c.admin(), Tool: toolNamed})
	var exit *powershell.ExitError
	switch {
	case errors.Is(err, ps.ErrFailed):
		return silentError{tool.Failure}
	case errors.As(err, &exit):
		return silentError{exit.Status & 0xff}
	}
	return err
}
