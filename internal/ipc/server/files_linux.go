package server

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/os/openfiles"
)

// file is a descriptor with several users: the last one to release it closes it. Sharing it needs no further
// descriptor, so that passing memory to a program cannot fail for want of one.
type file struct {
	fd     int
	users  atomic.Int32
	closed func() // called once it is closed; may be nil
}

func newFile(fd int, closed func()) *file {
	f := &file{fd: fd, closed: closed}
	f.users.Store(1)
	return f
}

func (f *file) hold() *file {
	f.users.Add(1)
	return f
}

// release undoes newFile or hold. A nil file has no descriptor.
func (f *file) release() {
	if f == nil || f.users.Add(-1) > 0 {
		return
	}
	unix.Close(f.fd)
	if f.closed != nil {
		f.closed()
	}
}

func numbersOf(list []*file) (fds []int) {
	for _, f := range list {
		fds = append(fds, f.fd)
	}
	return fds
}

func releaseAll(list []*file) {
	for _, f := range list {
		f.release()
	}
}

// openFiles says how many descriptors the process may have, see package openfiles.
type openFiles struct {
	limit uint64 // RLIMIT_NOFILE
	kept  int    // from this number on nothing is kept open for the direct path
	last  int    // from this number on no program and no channel is added
	// passing limits how many programs at a time are passed descriptors that the driver closes afterwards.
	passing chan struct{}
}

// newOpenFiles divides the descriptors that the process may have. What the direct path keeps leaves a
// quarter to programs, channels and everything else that the driver opens; programs and channels leave the
// rest something for files that are open for a moment.
func newOpenFiles(limit uint64) openFiles {
	return openFiles{
		limit: limit, kept: openfiles.Optional(limit), last: int(limit - max(limit/32, min(6, limit))),
		passing: make(chan struct{}, max(1, min(limit/64, 64))),
	}
}

// descriptorLimits returns the limits of what is kept open for programs, if a program may have each of
// them (0: a quarter of all, at least 16).
func (o *openFiles) descriptorLimits(each uint64) budget.Limits {
	if each == 0 {
		each = max(o.limit/4, 16)
	}
	return budget.Limits{Program: each, User: o.limit / 4 * 3, Total: o.limit}
}

// full returns an error if a new descriptor shows that the process has too many of them for it.
func (o *openFiles) full(fd, from int, what string) error {
	if fd < from {
		return nil
	}
	return command.Errorf(
		command.Exhausted,
		"%s takes a descriptor: the driver has at least %d open, of %d that it may have (ulimit -n)",
		what,
		fd+1,
		o.limit,
	)
}

// passTime limits how long passing descriptors waits for its turn.
const passTime = time.Second

// pass waits until it is this caller's turn to open descriptors that are passed and closed again. It calls
// done afterwards.
func (o *openFiles) pass(ctx context.Context) (done func()) {
	select {
	case o.passing <- struct{}{}:
		return func() { <-o.passing }
	default:
	}
	late := time.NewTimer(passTime)
	defer late.Stop()
	select {
	case o.passing <- struct{}{}:
		return func() { <-o.passing }
	case <-late.C: // a program that does not read must not keep others waiting
	case <-ctx.Done():
	}
	return func() {}
}

// keep charges the program for a descriptor that stays open, and returns it as a file; from is the number from
// which on there are too many. In case of an error the descriptor is left alone.
func (n *session) keep(fd, from int, what string) (*file, error) {
	if err := n.server.open.full(fd, from, what); err != nil {
		return nil, err
	}
	if err := n.account.Take(budget.Descriptors, 1, what); err != nil {
		return nil, err
	}
	return newFile(fd, func() { n.account.Give(budget.Descriptors, 1) }), nil
}

// keepForNeighbours is keep for memory that the program's neighbours may get. Without a descriptor they cannot:
// then nil is returned, the program's connections use the driver's path, and the log says so once.
func (n *session) keepForNeighbours(fd int, what string) *file {
	f, err := n.keep(fd, n.server.open.kept, what)
	if err == nil {
		return f
	}
	if !n.scarce.Swap(true) {
		n.server.cfg.Log.Warn("connections of a program stay on the driver's path", "client", n.name, "pid", n.peer.PID, "cause", err)
	}
	return nil
}

// sessionFiles are the descriptors that any program takes: its connection, the pipe by which it wakes the loop, and the
// map of its pages.
const sessionFiles = 3

// admitConnection charges the program for its connection, unless the process has too many descriptors open.
func (n *session) admitConnection() error {
	raw, err := n.conn.SyscallConn()
	if err != nil {
		return err
	}
	full := error(nil)
	if err := raw.Control(func(fd uintptr) { full = n.server.open.full(int(fd), n.server.open.last, "a program") }); err != nil {
		return err
	}
	if full != nil {
		return full
	}
	return n.account.Take(budget.Descriptors, sessionFiles, "a program")
}
