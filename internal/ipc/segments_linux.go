package ipc

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/shared"
)

// segments are the shared memory segments of one client, for memory allocated through the API, which both
// sides map.
type segments struct {
	mu       sync.Mutex
	list     map[uint32]*segment
	last     uint32
	total    uint64
	maxBytes uint64
	maxCount int
	program  uint32  // number of the client
	all      *budget // shared by all clients
	files    *budget // kept descriptors, of all clients; nil: none are kept
}

// budget limits the shared segments of all clients together.
type budget struct {
	mu        sync.Mutex
	used, max uint64
}

func (b *budget) take(n uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.max-b.used {
		return false
	}
	b.used += n
	return true
}

func (b *budget) give(n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
}

type segment struct {
	mem   []byte
	users int           // regions in it, and populate
	freed bool          // by the client; unmapped when the last user ends
	fd    int           // kept for the client's neighbours, -1: none
	whole chan struct{} // closed when populate has ended; nil if it never began
	lent  map[*neighbour]struct{}
}

// alloc allocates a segment and returns its number and a descriptor for the client, which the caller
// closes.
func (s *segments) alloc(size uint64) (id uint32, fd int, err error) {
	const page = 4096
	if size == 0 || size > s.maxBytes {
		return 0, -1, command.Errorf(command.Invalid, "Size is %d: allowed: 1 to %d", size, s.maxBytes)
	}
	n := (size + page - 1) &^ (page - 1)
	s.mu.Lock()
	if len(s.list) >= s.maxCount || n > s.maxBytes-s.total {
		defer s.mu.Unlock()
		return 0, -1, command.Errorf(command.Exhausted, "shared segments: %d with %d bytes: allowed: %d with %d bytes",
			len(s.list), s.total, s.maxCount, s.maxBytes)
	}
	if !s.all.take(n) {
		defer s.mu.Unlock()
		return 0, -1, command.Errorf(command.Exhausted, "shared segments of all programs: allowed: %d bytes", s.all.max)
	}
	s.last++
	for s.last == 0 || s.list[s.last] != nil {
		s.last++
	}
	id = s.last
	g := &segment{users: 1, fd: -1} // held until it is complete
	s.list[id] = g
	s.total += n
	s.mu.Unlock()

	fd, mem, err := shared.New("softvpi-segment", int(n))
	if err == nil {
		shared.Populate(mem[:min(n, populateFirst)])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.users--
	if err != nil {
		delete(s.list, id)
		s.total -= n
		s.all.give(n)
		return 0, -1, command.Errorf(command.Exhausted, "shared segment of %d bytes: %v", n, err)
	}
	g.mem = mem
	if s.files != nil && s.files.take(1) {
		if g.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			g.fd = -1
			s.files.give(1)
		}
	}
	if n > populateFirst {
		g.users++
		g.whole = make(chan struct{})
		go s.populate(id, g)
	}
	return id, fd, nil
}

// populateFirst is how many bytes of a segment are populated before the program gets it: 1 GB would take the kernel 0.3 s
// and more. A goroutine populates the rest; what is used before it gets there is populated by page faults.
const populateFirst = 16 << 20

// populate populates the rest of a segment, until it is freed.
func (s *segments) populate(id uint32, g *segment) {
	const step = 2 << 20
	freed := false
	for rest := g.mem[populateFirst:]; len(rest) > 0 && !freed; {
		n := min(step, len(rest))
		shared.Populate(rest[:n])
		rest = rest[n:]
		s.mu.Lock()
		freed = g.freed
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.users--
	s.reap(id, g)
	close(g.whole)
}

// free frees a segment; regions in it keep it mapped.
func (s *segments) free(id uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.list[id]
	if g == nil || g.mem == nil || g.freed {
		return command.Errorf(command.NotFound, "segment %d", id)
	}
	g.freed = true
	if g.whole != nil { // returns after the current step; the program may want as much again right away
		s.mu.Unlock()
		<-g.whole
		s.mu.Lock()
	}
	if s.list[id] == g {
		s.reap(id, g)
	}
	return nil
}

// closeAll frees the client's remaining segments.
func (s *segments) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, g := range s.list {
		if g.mem == nil {
			continue
		}
		g.freed = true
		s.reap(id, g)
	}
}

// reap unmaps a segment that neither the client nor a region holds.
func (s *segments) reap(id uint32, g *segment) {
	if !g.freed || g.users > 0 {
		return
	}
	delete(s.list, id)
	s.total -= uint64(len(g.mem))
	for b := range g.lent {
		b.tell(dropBody{Program: s.program, Segment: id})
		b.mapped.Add(-1)
	}
	if g.fd >= 0 {
		unix.Close(g.fd)
		s.files.give(1)
	}
	go func() { // can take long, and the caller may own the loop
		_ = unix.Munmap(g.mem)
		s.all.give(uint64(len(g.mem)))
	}()
}

// reach returns the bytes of a region in a segment.
func (s *segments) reach(r command.RegisterMemory) (device.Reached, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.list[r.Segment]
	if g == nil || g.mem == nil || g.freed {
		return device.Reached{}, command.Errorf(command.NotFound, "Segment %d", r.Segment)
	}
	n := uint64(len(g.mem))
	if r.SegmentOffset > n || r.Length > n-r.SegmentOffset {
		return device.Reached{}, command.Errorf(command.Invalid, "SegmentOffset %d with Length %d: allowed: within the %d bytes of segment %d",
			r.SegmentOffset, r.Length, n, r.Segment)
	}
	g.users++
	release := sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		g.users--
		s.reap(r.Segment, g)
	})
	b := g.mem[r.SegmentOffset : r.SegmentOffset+r.Length : r.SegmentOffset+r.Length]
	return device.Reached{Bytes: b, Path: command.MemoryMapped, Release: release}, nil
}

// lend returns a descriptor of a segment, and its size, for a neighbour of the client; the caller closes
// it.
func (s *segments) lend(id uint32, to *neighbour) (fd int, size uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.list[id]
	if g == nil || g.mem == nil || g.freed {
		return -1, 0, command.Errorf(command.NotFound, "Segment %d", id)
	}
	if _, twice := g.lent[to]; g.fd < 0 || twice {
		return -1, 0, command.Errorf(command.Exhausted, "Segment %d is not for other programs, or was passed already", id)
	}
	if fd, err = unix.FcntlInt(uintptr(g.fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
		return -1, 0, command.Errorf(command.Exhausted, "segment %d: %v", id, err)
	}
	if g.lent == nil {
		g.lent = map[*neighbour]struct{}{}
	}
	g.lent[to] = struct{}{}
	return fd, uint64(len(g.mem)), nil
}

// unlend removes a neighbour that is gone.
func (s *segments) unlend(from *neighbour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.list {
		delete(g.lent, from)
	}
}
