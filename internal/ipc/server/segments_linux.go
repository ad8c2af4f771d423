package server

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
)

// segments are the shared memory segments of one client, for memory allocated through the API, which both
// sides map.
type segments struct {
	mu       sync.Mutex
	list     map[uint32]*segment
	last     uint32
	maxCount int
	program  uint32 // number of the client
	account  *budget.Account
	ending   int       // segments that are being unmapped
	ended    sync.Cond // with mu: one of them has been
	// keep makes a file of the descriptor of a segment that neighbours may map; nil, or nil as its result:
	// they cannot.
	keep func(fd int) *file
}

type segment struct {
	mem   []byte
	users int           // regions in it, and populate
	freed bool          // by the client; unmapped when the last user ends
	file  *file         // kept for the client's neighbours, nil: none
	whole chan struct{} // closed when populate has ended; nil if it never began
	lent  map[*neighbour]struct{}
}

// maxSegment is the size up to which a segment can be asked for: that of the address space of a process.
const maxSegment = 1 << 46

// alloc allocates a segment and returns its number and a descriptor for the client, which the caller
// releases. keep makes a file of the descriptor for other programs; nil: there is none.
func (s *segments) alloc(size uint64, keep func(fd int) *file) (id uint32, out *file, err error) {
	const page = 4096
	if size == 0 || size > maxSegment {
		return 0, nil, command.Errorf(command.Invalid, "Size is %d: allowed: 1 to %d", size, uint64(maxSegment))
	}
	n := (size + page - 1) &^ (page - 1)
	s.mu.Lock()
	if len(s.list) >= s.maxCount {
		s.mu.Unlock()
		return 0, nil, command.Errorf(command.Exhausted, "shared segments of this program: allowed: %d", s.maxCount)
	}
	if err := s.charge(n); err != nil {
		s.mu.Unlock()
		return 0, nil, err
	}
	s.last++
	for s.last == 0 || s.list[s.last] != nil {
		s.last++
	}
	id = s.last
	g := &segment{users: 1} // held until it is complete
	s.list[id] = g
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
		s.account.Give(budget.Memory, n)
		return 0, nil, command.Errorf(command.Exhausted, "shared segment of %d bytes: %v", n, err)
	}
	g.mem = mem
	if keep != nil {
		g.file = keep(fd)
	}
	if out = g.file; out != nil {
		out.hold()
	} else {
		out = newFile(fd, nil)
	}
	if n > populateFirst {
		g.users++
		g.whole = make(chan struct{})
		go s.populate(id, g)
	}
	return id, out, nil
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
	for b := range g.lent {
		b.tell(proto.DropBody{Program: s.program, Segment: id})
		b.mapped.Add(-1)
	}
	g.file.release()
	s.ending++
	go func() { // can take long, and the caller may own the loop
		_ = unix.Munmap(g.mem)
		s.account.Give(budget.Memory, uint64(len(g.mem)))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ending--
		s.ended.Broadcast()
	}()
}

// charge takes the memory of a segment from the account, after waiting for what the program has just freed
// if there is too little. The caller holds mu.
func (s *segments) charge(n uint64) error {
	for {
		err := s.account.Take(budget.Memory, n, "a segment")
		if err == nil || s.ending == 0 {
			return err
		}
		s.ended.Wait()
	}
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
		return device.Reached{}, command.Errorf(
			command.Invalid,
			"SegmentOffset %d with Length %d: allowed: within the %d bytes of segment %d",
			r.SegmentOffset,
			r.Length,
			n,
			r.Segment,
		)
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

// lend returns a descriptor of a segment, and its size, for a neighbour of the client; the caller releases
// it.
func (s *segments) lend(id uint32, to *neighbour) (f *file, size uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.list[id]
	if g == nil || g.mem == nil || g.freed {
		return nil, 0, command.Errorf(command.NotFound, "Segment %d", id)
	}
	if _, twice := g.lent[to]; g.file == nil || twice {
		return nil, 0, command.Errorf(command.Exhausted, "Segment %d is not for other programs, or was passed already", id)
	}
	if g.lent == nil {
		g.lent = map[*neighbour]struct{}{}
	}
	g.lent[to] = struct{}{}
	return g.file.hold(), uint64(len(g.mem)), nil
}

// unlend removes a neighbour that is gone.
func (s *segments) unlend(from *neighbour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.list {
		delete(g.lent, from)
	}
}
