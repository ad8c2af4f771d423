package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/softvpi/softvpi/internal/cdi"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/clib"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type cdiCmd struct {
	Generate cdiGenerateCmd `cmd:"" help:"Write the specification by which podman, docker and others give containers the adapters: --device softvpi.io/rdma=all, or the number of a container of softvpi up --containers."`
	List     cdiListCmd     `cmd:"" help:"List the devices in the specifications that are there."`
	Remove   cdiRemoveCmd   `cmd:"" help:"Remove the specification."`
}

type cdiDirectory struct {
	Directory string `placeholder:"DIR" help:"Directory of the specification (default: /etc/cdi for root, else cdi in the user's configuration directory, which engines are told of)."`
}

func (d cdiDirectory) directory() (string, error) {
	if d.Directory == "" {
		return cdi.Directory()
	}
	return filepath.Abs(d.Directory)
}

type cdiSource struct {
	socketFlag
	Libraries   string `placeholder:"DIR" help:"Directory of the C libraries (default: where softvpi verbs finds them)."`
	NoLibraries bool   `name:"no-libraries" help:"Leave the C libraries to the images."`
	NoPreload   bool   `name:"no-preload" help:"Do not preload the library that shows the devices to UCX, for images with another C library than glibc."`
}

// source describes the driver that runs, with its containers; without one, its socket alone.
func (c cdiSource) source(s *session) (*cdi.Source, error) {
	if c.NoLibraries && c.Libraries != "" {
		return nil, tool.Usagef("--libraries and --no-libraries exclude each other")
	}
	socket, err := filepath.Abs(cmp.Or(c.Socket, paths.Socket()))
	if err != nil {
		return nil, err
	}
	out := &cdi.Source{Socket: socket}
	st, err := driver.NewAdmin(socket).Status(s.ctx)
	if err != nil {
		return nil, fmt.Errorf("the specification is that of a running driver: %w", err)
	}
	for _, x := range containersOf(st) {
		out.Containers = append(out.Containers, x.Number)
	}
	for i := range st.Adapters {
		for _, f := range st.Adapters[i].Functions {
			if f.ContainerSocket != "" {
				out.Functions = append(out.Functions, f.Name)
			}
		}
	}
	switch {
	case c.NoLibraries:
		return out, nil
	case c.Libraries != "":
		out.Libraries, err = filepath.Abs(c.Libraries)
	default:
		out.Libraries, err = clib.Find()
	}
	if err != nil {
		return nil, fmt.Errorf("%w; --no-libraries leaves them to the images", err)
	}
	if err := clib.Have(out.Libraries, clib.Preload); err != nil && !c.NoPreload {
		return nil, err
	}
	out.Preload = !c.NoPreload
	return out, nil
}

type cdiGenerateCmd struct {
	cdiSource
	cdiDirectory
	Print bool `help:"Print the specification, and write nothing."`
}

func (c cdiGenerateCmd) Run(s *session) error {
	source, err := c.source(s)
	if err != nil {
		return err
	}
	spec, err := source.Spec()
	if err != nil {
		return err
	}
	if c.Print {
		e := json.NewEncoder(s.env.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(spec)
	}
	dir, err := c.directory()
	if err != nil {
		return err
	}
	file, err := cdi.Write(dir, spec)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.env.Stdout, "%d devices in %s, such as --device %s\n", len(spec.Devices), file, cdi.Name(spec.Devices[len(spec.Devices)-1].Name))
	return nil
}

type cdiListCmd struct {
	cdiDirectory
	JSON bool `help:"Print JSON."`
}

func (c cdiListCmd) Run(s *session) error {
	dirs := cdi.Directories()
	if c.Directory != "" {
		dirs = []string{c.Directory}
	}
	list, problems := cdi.List(dirs...)
	if c.JSON {
		if list == nil {
			list = []cdi.Found{}
		}
		e := json.NewEncoder(s.env.Stdout)
		e.SetIndent("", "  ")
		return errors.Join(e.Encode(list), errors.Join(problems...))
	}
	t := tabwriter.NewWriter(s.env.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Device, f.Socket, f.File)
	}
	if len(list) == 0 && len(problems) == 0 {
		fmt.Fprintln(t, "no specification: softvpi cdi generate writes one")
	}
	return errors.Join(t.Flush(), errors.Join(problems...))
}

type cdiRemoveCmd struct{ cdiDirectory }

func (c cdiRemoveCmd) Run(s *session) error {
	dir, err := c.directory()
	if err != nil {
		return err
	}
	removed, err := cdi.Remove(dir)
	if err == nil && !removed {
		return fmt.Errorf("there is no specification in %s", dir)
	}
	return err
}
