package main

import (
	"errors"
	"path/filepath"

	"github.com/softvpi/softvpi/internal/tools/clib"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad/socket"
)

// fabricEnvCmd prints the environment for programs that use libibumad.
type fabricEnvCmd struct {
	Name    string `default:"${ibsimName}" help:"Name of the fabric (default: $$IBSIM_SOCKNAME, else ${ibsimDefault})."`
	Node    string `help:"Node to be, by ID or description (default: the fabric's first)."`
	formats `embed:""`
}

func (c fabricEnvCmd) Run(s *session) error {
	if len(c.Node) >= socket.NodeLen {
		return tool.Usagef("--node has %d characters; allowed: up to %d", len(c.Node), socket.NodeLen-1)
	}
	if err := clib.Supported(); err != nil {
		return err
	}
	path, err := filepath.Abs(socket.Path(c.Name))
	if err != nil {
		return err
	}
	settings, err := c.library()
	if errors.Is(err, clib.ErrNotBuilt) {
		s.env.Errorf("only for the tools of softvpi, not for those of the distribution: %s", err)
	} else if err != nil {
		return err
	}
	return c.print(s, append(settings, clib.Setting{Name: socket.Variable, Value: path}, clib.Setting{Name: socket.NodeVariable,
		Value: c.Node}))
}

// library returns the settings that make unmodified programs use our libibumad.
func (c fabricEnvCmd) library() ([]clib.Setting, error) {
	dir, err := clib.Find()
	if err != nil {
		return nil, err
	}
	if err := clib.Have(dir, clib.Datagrams); err != nil {
		return nil, err
	}
	return clib.Settings(dir, "")
}
