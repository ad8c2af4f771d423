package ipc

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
	"github.com/softvpi/softvpi/internal/ring"
)

const fakeDoorbells = 64

// fakeHost is a Host whose objects the tests can look at.
type fakeHost struct {
	mu       sync.Mutex
	sessions []*fakeSession
	refuse   error
}

func (h *fakeHost) Doorbells() int { return fakeDoorbells }

func (h *fakeHost) NewClient(cfg device.ClientConfig) (Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return nil, h.refuse
	}
	s := &fakeSession{host: h, cfg: cfg, events: make(chan command.Event, 10000), cqs: map[command.Handle]*ring.CQ{},
		blocks: map[command.Handle]ring.Block{}, regions: map[command.Handle]device.Reached{}}
	s.arena = ring.NewArena(1<<30, func(id uint32, size int) ([]byte, error) {
		b, err := cfg.NewArena(id, size)
		s.made = append(s.made, id)
		return b, err
	})
	b, err := s.arena.Alloc(ring.DoorbellGeometry(fakeDoorbells).Size())
	if err != nil {
		return nil, err
	}
	s.doorbells, err = ring.OpenDoorbells(b.Bytes, ring.DoorbellGeometry(fakeDoorbells))
	if err != nil {
		return nil, err
	}
	h.sessions = append(h.sessions, s)
	return s, nil
}

// only returns the session of the host, which must have exactly one.
func (h *fakeHost) only(t testing.TB) *fakeSession {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) != 1 {
		t.Fatalf("%d sessions, want 1", len(h.sessions))
	}
	return h.sessions[0]
}

func (h *fakeHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

type fakeSession struct {
	recorder
	host      *fakeHost
	cfg       device.ClientConfig
	mu        sync.Mutex
	last      command.Handle
	arena     *ring.Arena
	made      []uint32
	doorbells *ring.Doorbells
	cqs       map[command.Handle]*ring.CQ
	blocks    map[command.Handle]ring.Block
	regions   map[command.Handle]device.Reached
	events    chan command.Event
}

func (s *fakeSession) AllocPD(_ context.Context, adapter uint32) (command.Handle, error) {
	if adapter != 0 {
		return 0, command.Errorf(command.NotFound, "adapter %d: there is 1", adapter)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last, nil
}

func (s *fakeSession) CreateCQ(_ context.Context, c command.CreateCQ) (command.Queue, error) {
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
	s.cqs[s.last], s.blocks[s.last] = q, b
	return command.Queue{Handle: s.last, Depth: uint32(g.Entries), Stride: uint32(g.Stride),
		Ring: command.Ring{Arena: b.Arena, Offset: b.Offset, Size: uint64(len(b.Bytes))}}, nil
}

// push adds a completion to a CQ as the loop does.
func (s *fakeSession) push(t testing.TB, cq command.Handle, e ring.CQE) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	ev, err := s.cqs[cq].Push(&e)
	if err != nil {
		t.Fatal(err)
	}
	if !ev {
		return
	}
	if _, wake := s.cqs[cq].Fire(); wake {
		s.cfg.Notify(s.blocks[cq].Arena, s.blocks[cq].Offset)
	}
}

func (s *fakeSession) RegisterMemory(_ context.Context, r command.RegisterMemory) (command.Memory, error) {
	reached, err := s.cfg.Reach(r)
	if err != nil {
		return command.Memory{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.regions[s.last] = reached
	return command.Memory{Handle: s.last, Path: reached.Path}, nil
}

func (s *fakeSession) region(h command.Handle) device.Reached {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.regions[h]
}

func (s *fakeSession) Destroy(_ context.Context, kind command.Kind, h command.Handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r, ok := s.regions[h]; {
	case kind == command.KindCQ && s.cqs[h] != nil:
		delete(s.cqs, h)
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
func (s *fakeSession) CMListen(ctx context.Context, _ command.Handle, _ uint32) error {
	<-ctx.Done()
	return command.Errorf(command.Canceled, "listen was canceled")
}

func (s *fakeSession) Events(ctx context.Context, out []command.Event) (int, error) {
	select {
	case out[0] = <-s.events:
	case <-ctx.Done():
		return 0, command.Errorf(command.Canceled, "canceled")
	}
	n := 1
	for n < len(out) {
		select {
		case out[n] = <-s.events:
			n++
		default:
			return n, nil
		}
	}
	return n, nil
}

func (s *fakeSession) Close() error {
	s.mu.Lock()
	for _, r := range s.regions {
		if r.Release != nil {
			r.Release()
		}
	}
	for _, id := range s.made {
		s.cfg.FreeArena(id, s.arena.Bytes(id))
	}
	s.mu.Unlock()
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	for i, o := range s.host.sessions {
		if o == s {
			s.host.sessions = append(s.host.sessions[:i], s.host.sessions[i+1:]...)
			break
		}
	}
	return nil
}

// serve starts a server for host and returns it with the path of its socket.
func serve(t testing.TB, host Host, cfg ServerConfig) (*Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(host, cfg)
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

// isCode reports whether an error is of a class.
func isCode(err error, c command.Code) bool { return errors.Is(err, &command.Error{Code: c}) }

// ordinary returns memory of the program that lies in no segment, and its address. It is not on the Go heap, because
// the race detector does not see the order that shared memory makes.
func ordinary(t *testing.T, n int) ([]byte, uint64) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b, uint64(uintptr(unsafe.Pointer(&b[0])))
}
