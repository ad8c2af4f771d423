package main

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/clib"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type verbsCmd struct {
	Env    verbsEnvCmd    `cmd:"" help:"Print commands that set the environment of unmodified verbs programs: eval \"$(softvpi verbs env)\"."`
	Run    verbsRunCmd    `cmd:"" help:"Run an unmodified verbs program, such as ibv_rc_pingpong, in that environment."`
	Doctor verbsDoctorCmd `cmd:"" help:"Say why an unmodified verbs program does not see the adapters, and what to do."`
}

// verbsFlags are the flags of commands that set up an environment.
type verbsFlags struct {
	socketFlag `embed:""`
	VF         string `name:"vf" help:"Name of the virtual function that the program is to have: it sees that alone (SOFTVPI_FUNCTION)."`
	NoPreload  bool   `name:"no-preload" help:"Do not preload the library that shows /dev/infiniband and /sys/class/infiniband to UCX."`
	Segments   bool   `help:"Preload the allocator that puts page-aligned memory where the driver reaches it fastest. Not for programs that fork and continue in both processes: parent and child share that memory."`
}

func (f verbsFlags) settings() ([]clib.Setting, error) {
	if err := clib.Supported(); err != nil {
		return nil, err
	}
	dir, err := clib.Find()
	if err != nil {
		return nil, err
	}
	var preloaded []string
	if f.Segments {
		if err := clib.Have(dir, clib.Memory); err != nil {
			return nil, err
		}
		preloaded = append(preloaded, clib.Memory)
	}
	if !f.NoPreload {
		preloaded = append(preloaded, clib.Preload)
	}
	s, err := clib.Settings(dir, f.Socket, preloaded...)
	if err == nil && f.VF != "" {
		s = append(s, clib.Setting{Name: paths.FunctionVariable, Value: f.VF})
	}
	return s, err
}

type verbsEnvCmd struct {
	verbsFlags `embed:""`
	formats    `embed:""`
}

// formats are the output formats of an environment.
type formats struct {
	CSH  bool `name:"csh" help:"Print them for csh instead of sh." xor:"form"`
	JSON bool `name:"json" help:"Print JSON." xor:"form"`
}

func (c verbsEnvCmd) Run(s *session) error {
	settings, err := c.settings()
	if err != nil {
		return err
	}
	return c.print(s, settings)
}

func (c formats) print(s *session, settings []clib.Setting) error {
	if c.JSON {
		m := map[string]string{}
		for _, v := range settings {
			m[v.Name] = v.Value
		}
		return writeJSON(s.env.Stdout, m)
	}
	for _, v := range settings {
		text := v.Export()
		if c.CSH {
			text = v.Setenv() + ";" // eval joins the lines
		}
		fmt.Fprintln(s.env.Stdout, text)
	}
	return nil
}

type verbsRunCmd struct {
	verbsFlags `embed:""`
	Command    []string `arg:"" passthrough:"partial" name:"cmd" optional:"" help:"The program and its arguments, optionally after --."`
}

func (c verbsRunCmd) Run(s *session) error {
	args := c.Command
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return tool.Usagef("no program is given; allowed: softvpi verbs run [--socket=PATH] [--vf=NAME] [--no-preload] [--segments] [--] CMD [ARGS]")
	}
	settings, err := c.settings()
	if err != nil {
		return err
	}
	status, err := clib.Run(args, settings)
	s.env.Fail(err)
	return silentError{status}
}

type verbsDoctorCmd struct {
	showFlags `embed:""`
	Program   string `arg:"" name:"cmd" optional:"" help:"A program to check as well: how it is linked, and whether everything that it imports exists."`
}

func (c verbsDoctorCmd) Run(s *session) error {
	if err := clib.Supported(); err != nil {
		return err
	}
	d := clib.Doctor{Socket: c.Socket, Version: version()}
	found := d.Examine(s.ctx, c.Program)
	wrong := false
	if c.JSON {
		type row struct {
			Check   string `json:"check"`
			Verdict string `json:"verdict"`
			Text    string `json:"text"`
		}
		rows := []row{}
		for _, f := range found {
			rows = append(rows, row{f.Check, f.Verdict.String(), f.Text})
			wrong = wrong || f.Verdict == clib.Wrong
		}
		if err := writeJSON(s.env.Stdout, rows); err != nil {
			return err
		}
	} else {
		wrong = clib.Write(s.env.Stdout, found)
	}
	if wrong {
		return silentError{tool.Failure}
	}
	return nil
}
