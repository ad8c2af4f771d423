package client

import (
	"os"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/command"
)

// PathVariable is the environment variable by which a program insists on a memory path: "process_vm" or
// "copier".
const PathVariable = "SOFTVPI_MEMORY_PATH"

// directVariable is the environment variable by which a program opts out of the direct path: "off".
const directVariable = "SOFTVPI_DIRECT"

// Options configure how a program attaches. The zero value is ready to use.
type Options struct {
	// Name is the program's name in status output; empty: the base name of its executable.
	Name string
	// Path requires a memory path, command.MemoryProcessVM or command.MemoryCopier; 0: that of
	// SOFTVPI_MEMORY_PATH, else the driver probes.
	Path command.MemoryPath
	// NoDirect keeps the program off the direct path, like SOFTVPI_DIRECT=off.
	NoDirect bool
	// Copier carries out what the driver asks of the copier whose memory mem is, until stop is set, in place of reach.Serve; finished
	// notifies the driver. It is for programs whose memory is elsewhere; nil: it is this process's.
	Copier func(mem []byte, stop *atomic.Bool, finished func())
}

// takesPart reports whether the program offers to take part in the direct path.
func (o Options) takesPart() bool { return !o.NoDirect && os.Getenv(directVariable) != "off" }

// forcedPath returns the required memory path, 0 if there is none.
func (o Options) forcedPath() (command.MemoryPath, error) {
	if o.Path == command.MemoryProcessVM || o.Path == command.MemoryCopier {
		return o.Path, nil
	}
	if o.Path != 0 {
		return 0, command.Errorf(
			command.Invalid,
			"memory path %d: allowed: %d (process_vm) or %d (copier)",
			o.Path,
			command.MemoryProcessVM,
			command.MemoryCopier,
		)
	}
	switch v := os.Getenv(PathVariable); v {
	case "", "auto":
		return 0, nil
	case command.MemoryProcessVM.String():
		return command.MemoryProcessVM, nil
	case command.MemoryCopier.String():
		return command.MemoryCopier, nil
	default:
		return 0, command.Errorf(command.Invalid, "%s=%q: allowed: auto, process_vm, copier", PathVariable, v)
	}
}
