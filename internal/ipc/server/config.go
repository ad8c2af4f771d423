package server

import (
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/os/cgroup"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// Config configures a Server. The zero value is ready to use.
type Config struct {
	Driver string // name and version, reported to clients
	Log    *slog.Logger
	// Beside is the log of what Ended is told of, too; nil: Log.
	Beside *slog.Logger
	// Audience is whose programs may attach; zero: those of this process's user and of root.
	Audience peer.Audience
	// MaxClients limits the programs attached at a time; 0: 4096.
	MaxClients int
	// Memory limits what programs make this process hold: their rings, segments, tables, objects and unread
	// events; zero: DefaultMemory.
	Memory budget.Limits
	// OpenFiles is how many descriptors the process may have; 0: RLIMIT_NOFILE.
	OpenFiles uint64
	// ProgramDescriptors limits the descriptors that are kept open for one program; 0: a quarter of those
	// that the process may have, at least 16.
	ProgramDescriptors uint64
	// MaxSegments limits the number of shared segments, and thus of mappings, of one client; 0: 1024.
	MaxSegments int
	// Path requires a memory path, command.MemoryProcessVM or command.MemoryCopier; 0: probed.
	Path command.MemoryPath
	// NoDirect keeps programs off the direct path.
	NoDirect bool
	// HelloTimeout is how long a new connection may take to say hello; 0: 5 s.
	HelloTimeout time.Duration
	// WriteTimeout is how long a client may leave its stream unread before it is disconnected; 0: 10 s.
	WriteTimeout time.Duration
	// CopierTimeout is how long a client's copier may take for one copy before the client is disconnected;
	// 0: 5 s.
	CopierTimeout time.Duration
	// Ended is called for every program that was attached, once all its objects are gone; nil: not called.
	// It runs on a goroutine of that program.
	Ended func(Departure)
	// Refused is called when a program is for the first time refused memory, and when it is for the first time refused a
	// descriptor; nil: not called. It runs on a goroutine of its own.
	Refused func(Refusal)
}

// Container is whose programs a socket of its own is for, and what they may hold together.
type Container struct {
	Audience peer.Audience
	Quota    *budget.Quota
	// Function returns the index of the virtual function that programs see alone; the error is why there is none now. Such programs
	// keep off the direct path, since others' memory is none of theirs. nil: they see all adapters.
	Function func() (uint32, error)
	// Of returns whose program a connection is, where that is not the same for all who come to the socket; nil: they are all this
	// container's.
	Of func(*net.UnixConn) Container
}

// Refusal is something that a program did not get, because of a limit.
type Refusal struct {
	Name  string // of the program
	PID   int
	Cause error // names what was wanted, and the limit
}

// Departure is the end of an attachment.
type Departure struct {
	Name     string // of the program
	PID, UID int
	// Cause is nil if the program said goodbye, io.EOF if its stream just ended: it did not detach, or was
	// killed.
	Cause error
}

// leastMemory is what programs may make the driver hold on the smallest machine.
const leastMemory = 64 << 20

// DefaultMemory returns the limits of a driver that was given none: half of the memory that this process
// may count on. The rest is for the driver itself, and for what the system holds on its behalf.
func DefaultMemory() budget.Limits {
	m, err := cgroup.Available(os.DirFS("/"))
	if err != nil {
		m.Bytes = 2 << 30 // no Linux, or a Linux without /proc
	}
	return budget.Share(max(m.Bytes/2, leastMemory))
}

func (c *Config) defaults() {
	set(&c.Driver, "softvpi")
	set(&c.MaxClients, 4096)
	set(&c.Memory, DefaultMemory())
	set(&c.MaxSegments, 1024)
	set(&c.HelloTimeout, 5*time.Second)
	set(&c.WriteTimeout, 10*time.Second)
	set(&c.CopierTimeout, 5*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Beside == nil {
		c.Beside = c.Log
	}
}

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
