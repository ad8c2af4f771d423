package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/os/openfiles"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// errGoodbye ends the session of a program that detaches.
var errGoodbye = errors.New("the program said goodbye")

// maxRefusals is how many programs that are turned away are told so at a time; further connections are
// closed at once.
const maxRefusals = 16

// Server attaches programs to the adapters of a Host.
type Server struct {
	cfg  Config
	host Host

	ledger *budget.Ledger // what all programs hold
	open   openFiles
	movers reach.Movers

	linkMu sync.Mutex
	links  map[[2]uint32]*link

	mu        sync.Mutex
	sessions  map[*session]struct{}
	refusals  int // sessions of those that are turned away
	listeners []*net.UnixListener
	closed    bool
	last      uint32 // number of the last session
	wg        sync.WaitGroup
}

// New creates a server. Close ends it.
func New(host Host, cfg Config) (*Server, error) {
	cfg.defaults()
	if cfg.Path != 0 && cfg.Path != command.MemoryProcessVM && cfg.Path != command.MemoryCopier {
		return nil, fmt.Errorf(
			"ipc: memory path %d: allowed: %d (process_vm) or %d (copier)",
			cfg.Path,
			command.MemoryProcessVM,
			command.MemoryCopier,
		)
	}
	s := &Server{cfg: cfg, host: host, sessions: map[*session]struct{}{}, links: map[[2]uint32]*link{}}
	s.open = newOpenFiles(cmp.Or(cfg.OpenFiles, openfiles.Limit()))
	s.ledger = budget.New(cfg.Memory, s.open.descriptorLimits(cfg.ProgramDescriptors))
	return s, nil
}

// Serve accepts programs on l until ctx ends or the server is closed, and then returns nil. It closes l. It may serve several.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	return s.ServeContainer(ctx, l, Container{Audience: s.cfg.Audience, Quota: new(budget.Quota)})
}

// ServeContainer is Serve for the programs of a container.
func (s *Server) ServeContainer(ctx context.Context, l *net.UnixListener, of Container) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		l.Close()
		return nil // closed before it began
	}
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer s.forget(l)
	for waiting := false; ; {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			// Out of descriptors or memory: attached programs continue, others wait.
			if !waiting {
				s.cfg.Log.Warn("cannot accept a program", "cause", err)
			}
			waiting = true
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		waiting = false
		s.start(c, of)
	}
}

// forget closes a listener, which need not be closed with the server then.
func (s *Server) forget(l *net.UnixListener) {
	l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(o *net.UnixListener) bool { return o == l })
}

func (s *Server) start(c *net.UnixConn, of Container) {
	n := newSession(s, c)
	if of.Of != nil {
		of = of.Of(c)
	}
	n.tenant = of.Function
	p, err := peer.Of(c)
	n.account = s.ledger.OpenIn(p.UID, of.Quota)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.peer, n.refused = p, s.judge(p, of.Audience, err); n.refused == nil {
		n.refused = n.admitConnection()
	}
	if s.closed || n.refused != nil && s.refusals >= maxRefusals {
		c.Close()
		n.account.Give(budget.Descriptors, sessionFiles)
		n.account.Close()
		return
	}
	if n.refused != nil {
		s.refusals++
	}
	s.last++
	n.id, n.segments.program = s.last, s.last
	n.segments.account = n.account
	s.sessions[n] = struct{}{}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		n.run()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, n)
		if n.refused != nil {
			s.refusals--
		}
	}()
}

// judge returns why a process that has connected is turned away, nil if it is not. The caller holds mu.
func (s *Server) judge(p peer.Process, who peer.Audience, unknown error) error {
	if unknown != nil {
		return command.Errorf(command.Access, "%v", unknown)
	}
	if err := who.Admits(p); err != nil {
		return command.Errorf(command.Access, "%v", err)
	}
	if n := len(s.sessions) - s.refusals; n >= s.cfg.MaxClients {
		return command.Errorf(command.Exhausted, "too many programs are attached: allowed: %d", s.cfg.MaxClients)
	}
	return nil
}

// Ledger returns the account of what programs make this process hold.
func (s *Server) Ledger() *budget.Ledger { return s.ledger }

// Clients returns the number of programs attached.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Close disconnects all programs, waits until their objects are destroyed, and stops accepting. The Host
// must not be closed before.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, l := range s.listeners {
		l.Close()
	}
	for n := range s.sessions {
		n.end(errStopping)
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}
