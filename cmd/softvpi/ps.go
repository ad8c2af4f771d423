package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/cmdlets"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/tools/ps"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type psCmd struct {
	socketFlag `embed:""`
	File       string   `arg:"" optional:"" help:"The script; - is the standard input."`
	Args       []string `arg:"" optional:"" help:"Arguments of the script: its parameters by name (-Name value) or by position. Behind -- nothing is an option of softvpi."`
	Command    string   `short:"c" help:"A script as text in place of a file." placeholder:"TEXT"`
	JSON       bool     `name:"json" help:"Print results as JSON."`
	Records    bool     `help:"Print results and messages as lines of JSON, which the module reads."`
	Module     string   `help:"Write a module for a real PowerShell into this directory, which exists: SoftVPI.psd1 and what belongs to it." placeholder:"DIR"`
	WhatIf     bool     `name:"whatif" help:"Say what the script would change, and change nothing."`
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
	if c.JSON && c.Records {
		return tool.Usagef("--json excludes --records")
	}
	if c.Socket != "" { // for the tools that the script runs
		if err := os.Setenv("SOFTVPI_SOCKET", c.Socket); err != nil {
			return err
		}
	}
	s.env.Name = "softvpi ps"
	err := ps.Run(s.ctx, s.env, ps.Options{File: c.File, Args: c.Args, Command: c.Command, JSON: c.JSON, Records: c.Records,
		WhatIf: c.WhatIf, Driver: c.admin(), Tool: toolNamed})
	var exit *powershell.ExitError
	switch {
	case errors.Is(err, ps.ErrFailed):
		return silentError{tool.Failure}
	case errors.As(err, &exit):
		return silentError{exit.Status & 0xff}
	}
	return err
}

// psValues are the options of softvpi ps that take the next word as their value.
var psValues = []string{"--socket", "--command", "-c", "--module"}

// scriptArguments moves the arguments of a script behind --, where the parser takes no option for its own: all that stands behind the
// script's file, but for options with two hyphens.
func scriptArguments(args []string) []string {
	if len(args) == 0 || args[0] != "ps" {
		return args
	}
	own, script, file := []string{"ps"}, []string{}, false
	for i := 1; i < len(args); i++ {
		switch w := args[i]; {
		case w == "--":
			script = append(script, args[i+1:]...)
			i = len(args)
		case slices.Contains(psValues, w) && (!file || strings.HasPrefix(w, "--")) && i+1 < len(args):
			own = append(own, w, args[i+1])
			i++
		case !file && !strings.HasPrefix(w, "-"), !file && w == "-":
			own, file = append(own, w), true
		case strings.HasPrefix(w, "--"), !file:
			own = append(own, w)
		default:
			script = append(script, w)
		}
	}
	if len(script) == 0 {
		return own
	}
	return append(append(own, "--"), script...)
}
