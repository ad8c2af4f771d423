package fake

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ring"
)

// Doorbells is the number of entries of the doorbell queue.
const Doorbells = 64

// Host is a server.Host whose objects the tests can look at.
type Host struct {
	mu       sync.Mutex
	Sessions []*Session // those that have not ended
	Refuse   error      // of every further program; nil: none
}

// Doorbells implements server.Host.
func (h *Host) Doorbells() int { return Doorbells }

// Zero implements server.Host.
func (h *Host) Zero() uint64 { return 0 }

// NewClient implements server.Host.
func (h *Host) NewClient(cfg device.ClientConfig) (server.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Refuse != nil {
		return nil, h.Refuse
	}
	s := &Session{host: h, Config: cfg, Pending: make(chan command.Event, 10000), CQs: map[command.Handle]*ring.CQ{},
		blocks: map[command.Handle]ring.Block{}, regions: map[command.Handle]device.Reached{}}
	s.arena = ring.NewArena(1<<30, func(id uint32, size int) ([]byte, error) {
		b, err := cfg.NewArena(id, size)
		s.made = append(s.made, id)
		return b, err
	})
	b, err := s.arena.Alloc(ring.DoorbellGeometry(Doorbells).Size())
	if err != nil {
		return nil, err
	}
	s.Doorbells, err = ring.OpenDoorbells(b.Bytes, ring.DoorbellGeometry(Doorbells))
	if err != nil {
		return nil, err
	}
	h.Sessions = append(h.Sessions, s)
	return s, nil
}

// Only returns the session of the host, which must have exactly one.
func (h *Host) Only(t testing.TB) *Session {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.Sessions) != 1 {
		t.Fatalf("%d sessions, want 1", len(h.Sessions))
	}
	return h.Sessions[0]
}

// Count returns the number of sessions that have not ended.
func (h *Host) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.Sessions)
}

// Session is an attached program: it has CQs and regions, records other commands, and gives the program the events in
// Pending.
type Session struct {
	Recorder
	host      *Host
	Config    device.ClientConfig
	mu        sync.Mutex
	last      command.Handle
	arena     *ring.Arena
	made      []uint32
	Doorbells *ring.Doorbells
	CQs       map[command.Handle]*ring.CQ
	blocks    map[command.Handle]ring.Block
	regions   map[command.Handle]device.Reached
	Pending   chan command.Event
}

// AllocPD implements server.Session.
func (s *Session) AllocPD(_ context.Context, adapter uint32) (command.Handle, error) {
	if adapter != 0 {
		return 0, command.Errorf(command.NotFound, "adapter %d: there is 1", adapter)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last, nil
}

// CreateCQ implements server.Session.
func (s *Session) CreateCQ(_ context.Context, c command.CreateCQ) (command.Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := ring.CQGeometry(int(c.Depth))
	b, err := s.arena.Alloc(g.Size())
	if err != nil {
		return command.Queue{}, command.Errorf(command.Exhausted, "%v", err)
	}
	q, err := ring.OpenCQ(b.Bytes, g)
	if err != nil {
		return command.Queue{}, err
	}
	s.last++
	s.CQs[s.last], s.blocks[s.last] = q, b
	return command.Queue{Handle: s.last, Depth: uint32(g.Entries), Stride: uint32(g.Stride),
		Ring: command.Ring{Arena: b.Arena, Offset: b.Offset, Size: uint64(len(b.Bytes))}}, nil
}

// Push adds a completion to a CQ as the loop does.
func (s *Session) Push(t testing.TB, cq command.Handle, e ring.CQE) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	ev, err := s.CQs[cq].Push(&e)
	if err != nil {
		t.Fatal(err)
	}
	if !ev {
		return
	}
	if _, wake := s.CQs[cq].Fire(); wake {
		s.Config.Notify(s.blocks[cq].Arena, s.blocks[cq].Offset)
	}
}

// RegisterMemory implements server.Session.
func (s *Session) RegisterMemory(_ context.Context, r command.RegisterMemory) (command.Memory, error) {
	reached, err := s.Config.Reach(r)
	if err != nil {
		return command.Memory{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.regions[s.last] = reached
	return command.Memory{Handle: s.last, Path: reached.Path}, nil
}

// Region returns what the driver reaches of a registered region.
func (s *Session) Region(h command.Handle) device.Reached {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.regions[h]
}

// Destroy implements server.Session.
func (s *Session) Destroy(_ context.Context, kind command.Kind, h command.Handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r, ok := s.regions[h]; {
	case kind == command.KindCQ && s.CQs[h] != nil:
		delete(s.CQs, h)
	case kind == command.KindMemory && ok:
		delete(s.regions, h)
		if r.Release != nil {
			r.Release()
		}
	default:
		return command.Errorf(command.NotFound, "handle %d", h)
	}
	return nil
}

// CMListen blocks until it is canceled.
func (s *Session) CMListen(ctx context.Context, _ command.Handle, _ uint32) error {
	<-ctx.Done()
	return command.Errorf(command.Canceled, "listen was canceled")
}

// Events implements server.Session.
func (s *Session) Events(ctx context.Context, out []command.Event) (int, error) {
	select {
	case out[0] = <-s.Pending:
	case <-ctx.Done():
		return 0, command.Errorf(command.Canceled, "canceled")
	}
	n := 1
	for n < len(out) {
		select {
		case out[n] = <-s.Pending:
			n++
		default:
			return n, nil
		}
	}
	return n, nil
}

// Close implements server.Session.
func (s *Session) Close() error {
	s.mu.Lock()
	for _, r := range s.regions {
		if r.Release != nil {
			r.Release()
		}
	}
	for _, id := range s.made {
		s.Config.FreeArena(id, s.arena.Bytes(id))
	}
	s.mu.Unlock()
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	for i, o := range s.host.Sessions {
		if o == s {
			s.host.Sessions = append(s.host.Sessions[:i], s.host.Sessions[i+1:]...)
			break
		}
	}
	return nil
}

// Serve starts a server for host and returns it with the path of its socket.
func Serve(t testing.TB, host server.Host, cfg server.Config) (*server.Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(host, cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// IsCode reports whether an error is of a class.
func IsCode(err error, c command.Code) bool { return errors.Is(err, &command.Error{Code: c}) }

// Memory returns n bytes of the program that lie in no segment, and their address. It is not on the Go heap, because
// the race detector does not see the order that shared memory makes.
func Memory(t *testing.T, n int) ([]byte, uint64) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b, uint64(uintptr(unsafe.Pointer(&b[0])))
}
