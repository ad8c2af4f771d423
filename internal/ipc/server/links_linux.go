package server

import (
	"errors"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ring"
)

// areaLimit limits the records that two programs share, to about 80,000 connections.
const areaLimit = 64 << 20

// link is what two programs share.
type link struct {
	mu     sync.Mutex
	blocks *ring.Arena
	areas  []area
	ends   [2]*neighbour
}

type area struct {
	file *file
	mem  []byte
}

func (l *link) grow(_ uint32, size int) ([]byte, error) {
	n := l.ends[0].n
	if err := n.account.Take(budget.Memory, uint64(size), "an area of records"); err != nil {
		return nil, err
	}
	fd, mem, err := shared.New("softvpi-pairs", size)
	if err != nil {
		n.account.Give(budget.Memory, uint64(size))
		return nil, err
	}
	f, err := n.keep(fd, n.server.open.kept, "an area of records")
	if err != nil {
		n.account.Give(budget.Memory, uint64(size))
		unix.Close(fd)
		_ = unix.Munmap(mem)
		return nil, err
	}
	l.areas = append(l.areas, area{f, mem})
	return mem, nil
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.areas {
		a.file.release()
		_ = unix.Munmap(a.mem)
		l.ends[0].n.account.Give(budget.Memory, uint64(len(a.mem)))
	}
	l.areas = nil
	l.blocks = ring.NewArena(0, func(uint32, int) ([]byte, error) { return nil, errGone })
}

var errGone = errors.New("one of the programs is gone")

// linkKey returns the key of two programs' link.
func linkKey(b, p *neighbour) [2]uint32 {
	k := [2]uint32{b.n.id, p.n.id}
	slices.Sort(k[:])
	return k
}

// link returns what two programs share, creating it if necessary.
func (s *Server) link(b, p *neighbour) *link {
	s.linkMu.Lock()
	defer s.linkMu.Unlock()
	k := linkKey(b, p)
	l := s.links[k]
	if l == nil {
		l = &link{ends: [2]*neighbour{b, p}}
		l.blocks = ring.NewArena(areaLimit, l.grow)
		s.links[k] = l
	}
	return l
}

// linked returns what two programs share, nil if nothing.
func (s *Server) linked(b, p *neighbour) *link {
	s.linkMu.Lock()
	defer s.linkMu.Unlock()
	return s.links[linkKey(b, p)]
}

// unlink ends the links of a program and returns the programs at the other ends.
func (s *Server) unlink(b *neighbour) (peers []*neighbour) {
	s.linkMu.Lock()
	defer s.linkMu.Unlock()
	for k, l := range s.links {
		switch b {
		case l.ends[0]:
			peers = append(peers, l.ends[1])
		case l.ends[1]:
			peers = append(peers, l.ends[0])
		default:
			continue
		}
		delete(s.links, k)
		l.close()
	}
	return peers
}

// neighbourOf returns the program with this number, nil if there is none.
func (s *Server) neighbourOf(id uint32) *neighbour {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.sessions {
		if n.id == id {
			return n.direct
		}
	}
	return nil
}
