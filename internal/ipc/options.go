package ipc

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/reach"
)

// PathVariable names the environment variable by which a program insists on a
// memory path: "process_vm" or "copier".
const PathVariable = "SOFTVPI_MEMORY_PATH"

// DirectVariable names the environment variable by which a program stays out of the
// direct path: "off".
const DirectVariable = "SOFTVPI_DIRECT"

// ErrPlatform says that attaching is not there on this system.
var ErrPlatform = fmt.Errorf("attaching is Linux only for now: %w", errors.ErrUnsupported)

// ServerConfig says how a Server treats its clients. The zero value is ready to
// use.
type ServerConfig struct {
	Driver string // name and version, told to clients
	Log    *slog.Logger
	// MaxClients bounds the programs attached at a time; 0: 4096.
	MaxClients int
	// SegmentBytes bounds the shared segments of one client together; 0: 4 GiB.
	SegmentBytes uint64
	// TotalSegmentBytes bounds the shared segments of all clients together; 0: half
	// of the machine's memory.
	TotalSegmentBytes uint64
	// MaxSegments bounds the number of shared segments, and so of mappings, of
	// one client; 0: 1024.
	MaxSegments int
	// Path insists on a memory path, reach.PathProcessVM or reach.PathCopier; 0: probed.
	Path uint32
	// NoDirect keeps programs from the direct path.
	NoDirect bool
	// HelloTimeout is how long a new connection may take to say hello; 0: 5 s.
	HelloTimeout time.Duration
	// WriteTimeout is how long a client may leave its stream unread before it is
	// disconnected; 0: 10 s.
	WriteTimeout time.Duration
	// CopierTimeout is how long a client's copier may take for one copy before
	// the client is disconnected; 0: 5 s.
	CopierTimeout time.Duration
	// Ended is told of every program that was attached, when nothing of it is left;
	// nil: nobody is. It runs on a goroutine of that program.
	Ended func(Departure)
}

// Departure is the end of an attachment.
type Departure struct {
	Name     string // of the program
	PID, UID int
	// Cause is nil where the program said goodbye; io.EOF where its stream ended
	// without a word: it closed nothing, or was killed.
	Cause error
}

func (c *ServerConfig) defaults() {
	set(&c.Driver, "softvpi")
	set(&c.MaxClients, 4096)
	set(&c.SegmentBytes, 4<<30)
	set(&c.MaxSegments, 1024)
	set(&c.HelloTimeout, 5*time.Second)
	set(&c.WriteTimeout, 10*time.Second)
	set(&c.CopierTimeout, 5*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Options say how a program attaches. The zero value is ready to use.
type Options struct {
	// Name of the program for status; empty: the base name of its executable.
	Name string
	// Path insists on a memory path, reach.PathProcessVM or reach.PathCopier; 0: what
	// SOFTVPI_MEMORY_PATH says, else the driver probes.
	Path uint32
	// NoDirect keeps the program from the direct path, as SOFTVPI_DIRECT=off does.
	NoDirect bool
}

// takesPart reports whether the program offers to take part in the direct path.
func (o Options) takesPart() bool { return !o.NoDirect && os.Getenv(DirectVariable) != "off" }

// forcedPath returns the memory path to insist on.
func (o Options) forcedPath() (uint32, error) {
	if o.Path == reach.PathProcessVM || o.Path == reach.PathCopier {
		return o.Path, nil
	}
	if o.Path != 0 {
		return 0, command.Errorf(command.Invalid, "memory path %d: allowed: %d (process_vm) or %d (copier)", o.Path, reach.PathProcessVM, reach.PathCopier)
	}
	switch v := os.Getenv(PathVariable); v {
	case "", "auto":
		return 0, nil
	case "process_vm":
		return reach.PathProcessVM, nil
	case "copier":
		return reach.PathCopier, nil
	default:
		return 0, command.Errorf(command.Invalid, "%s=%q: allowed: auto, process_vm, copier", PathVariable, v)
	}
}
