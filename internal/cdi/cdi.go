// Package cdi describes the driver to container engines by the Container Device Interface
// (https://github.com/cncf-tags/container-device-interface, SPEC.md): what a container needs so that verbs programs in it see
// the adapters, which is the driver's socket, the C libraries, and the variables that make programs use them.
//
// The format, its checks and its versions are those of tags.cncf.io/container-device-interface, which engines use too.
package cdi

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/clib"
)

const (
	// Kind is that of the devices: softvpi.io/rdma=0 names one.
	Kind = "softvpi.io/rdma"
	// All is the device with the driver's own socket, and its management.
	All = "all"
	// functionPrefix is before the name of a virtual function in the name of its device.
	functionPrefix = "vf-"
	// file is the name of the specification in its directory.
	file = "softvpi.io-rdma"
	// Where things are in a container.
	socketDir  = "/run/softvpi"
	libraryDir = "/usr/lib/softvpi"
)

// Source is the driver, and the libraries, of this machine.
type Source struct {
	// Socket is the driver's attach socket.
	Socket string
	// Containers are the numbers of those for which the driver has sockets.
	Containers []int
	// Functions are the virtual functions that containers can have, by name.
	Functions []string
	// Libraries is the directory of the C libraries; empty: containers bring their own.
	Libraries string
	// Preload is whether to preload the library that shows the devices to UCX and others that read /sys.
	Preload bool
}

// mounted makes a directory of the host seen in containers. They only read it: a socket there takes connections all the same.
func mounted(host, container string) *specs.Mount {
	return &specs.Mount{HostPath: host, ContainerPath: container, Options: []string{"ro", "nosuid", "nodev", "rbind"}}
}

// Common returns what containers get whichever of the devices they have.
func (s *Source) Common() specs.ContainerEdits {
	var e specs.ContainerEdits
	if s.Libraries == "" {
		return e
	}
	e.Mounts = append(e.Mounts, mounted(s.Libraries, libraryDir))
	e.Env = append(e.Env, "LD_LIBRARY_PATH="+libraryDir)
	if s.Preload {
		e.Env = append(e.Env, "LD_PRELOAD="+path.Join(libraryDir, clib.Preload))
	}
	return e
}

// Edits returns what containers get with one of the devices.
func (s *Source) Edits(device string) (specs.ContainerEdits, error) {
	socket := s.Socket
	if name, ok := strings.CutPrefix(device, functionPrefix); ok {
		if !slices.Contains(s.Functions, name) {
			return specs.ContainerEdits{}, fmt.Errorf("the driver has no virtual function %q for containers", name)
		}
		socket = paths.FunctionContainer(s.Socket, name)
	} else if device != All {
		n, err := strconv.Atoi(device)
		if err != nil || !slices.Contains(s.Containers, n) {
			return specs.ContainerEdits{}, fmt.Errorf("the driver has no socket for container %s", device)
		}
		socket = paths.Container(s.Socket, n)
	}
	return specs.ContainerEdits{
		Mounts: []*specs.Mount{mounted(filepath.Dir(socket), socketDir)},
		Env:    []string{paths.SocketVariable + "=" + path.Join(socketDir, filepath.Base(socket))},
	}, nil
}

// Spec returns the specification of the source's devices, of the lowest version that has what it needs.
func (s *Source) Spec() (*specs.Spec, error) {
	if !filepath.IsAbs(s.Socket) || s.Libraries != "" && !filepath.IsAbs(s.Libraries) {
		return nil, fmt.Errorf("%s and %s: want absolute paths", s.Socket, s.Libraries)
	}
	spec := &specs.Spec{Kind: Kind, ContainerEdits: s.Common()}
	names := []string{All}
	for _, n := range s.Containers {
		names = append(names, strconv.Itoa(n))
	}
	for _, n := range s.Functions {
		names = append(names, Function(n))
	}
	for _, n := range names {
		e, err := s.Edits(n)
		if err != nil {
			return nil, err
		}
		spec.Devices = append(spec.Devices, specs.Device{Name: n, ContainerEdits: e})
	}
	var err error
	spec.Version, err = specs.MinimumRequiredVersion(spec)
	return spec, err
}

// Function returns the name of the device that is a virtual function.
func Function(name string) string { return functionPrefix + name }

// Name returns the full name of a device.
func Name(device string) string { return Kind + "=" + device }

// Directories are those in which engines look for specifications, and this user's.
func Directories() []string {
	list := slices.Clone(cdi.DefaultSpecDirs)
	if dir := userDirectory(); dir != "" {
		list = append(list, dir)
	}
	return list
}

// Directory is where a specification is written unless another is named: that of the machine for root, this user's else.
func Directory() (string, error) {
	if os.Geteuid() == 0 {
		return cdi.DefaultStaticDir, nil
	}
	if dir := userDirectory(); dir != "" {
		return dir, nil
	}
	return "", errors.New("this user has no directory for configuration; name one with --directory")
}

func userDirectory() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "cdi")
}

// Write writes a specification into a directory, all of it or nothing, in place of an earlier one.
func Write(dir string, spec *specs.Spec) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	c, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, file+".json")
	if err := c.WriteSpec(spec, file+".json"); err != nil {
		return "", err
	}
	return name, os.Chmod(name, 0o644) // engines of all users read it
}

// Remove removes the specification from a directory, and reports whether there was one.
func Remove(dir string) (removed bool, err error) {
	err = os.Remove(filepath.Join(dir, file+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Found is a device in a specification.
type Found struct {
	Device string `json:"device"` // its full name
	File   string `json:"file"`
	Socket string `json:"socket"` // outside of the container
}

// List returns this driver's devices that specifications in the directories have, and what is wrong with those that cannot be read.
func List(dirs ...string) (list []Found, problems []error) {
	for _, dir := range dirs {
		name := filepath.Join(dir, file+".json")
		s, err := cdi.ReadSpec(name, 0)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		for _, d := range s.Devices {
			f := Found{Device: parser.QualifiedName(s.GetVendor(), s.GetClass(), d.Name), File: name}
			if m := d.ContainerEdits.Mounts; len(m) > 0 && len(d.ContainerEdits.Env) > 0 {
				_, in, _ := strings.Cut(d.ContainerEdits.Env[0], "=")
				f.Socket = filepath.Join(m[0].HostPath, path.Base(in))
			}
			list = append(list, f)
		}
	}
	return list, problems
}
