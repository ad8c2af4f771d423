package udp

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/os/openfiles"
)

// A UDP socket sends from the port to which it is bound. The source port that a connection computes for
// itself (so that switches spread connections over their paths) therefore needs a socket of its own: it is
// bound when a route first needs it, shared by the routes with that port, and closed after the last of them.

const (
	sourcePortMask  = 0xc000 // source ports are dynamic ones (IBA annex A17.9.2)
	sourcePortTries = 8
	sourceBuffer    = 16 << 10 // for errors; nothing else is queued
)

// allSources counts the sockets of the pools of all links: together they leave most descriptors of the process to others.
var allSources atomic.Int64

// pool assigns source ports. Its sockets belong to the link, at the indices given by slot.
type pool struct {
	own    uint16 // the receiving socket's port
	limit  int    // most sockets
	bind   func(slot int, port uint16) error
	unbind func(slot int)

	mu      sync.Mutex // Close may be called by another goroutine
	ports   map[uint16]*source
	sources []*source // by slot; nil: free
	others  uint64    // routes that send from another port than theirs
	closed  bool
}

// source is a socket that sends from one port.
type source struct {
	pool   *pool
	port   uint16
	slot   int
	routes int
}

func newPool(cfg Config, bind func(slot int, port uint16) error, unbind func(slot int)) *pool {
	return &pool{own: cfg.Port, limit: cfg.SourcePorts, bind: bind, unbind: unbind, ports: map[uint16]*source{}}
}

// choose makes the path of a route with the socket that sends for it, and sets its actual source port. It falls back to a
// neighbouring port if the computed one is in use by others, then to a socket of other routes, and in the end to the
// receiving socket.
func (p *pool) choose(r *frame.Route) *path {
	r.Release()
	p.mu.Lock()
	defer p.mu.Unlock()
	want, w := r.SrcPort, &path{pool: p}
	r.Path, r.SrcPort = w, p.own
	if want == 0 || want == p.own || p.limit == 0 || p.closed {
		return w
	}
	s := p.find(want)
	if s == nil || s.port != want {
		p.others++
	}
	if s == nil {
		return w
	}
	s.routes++
	w.source, w.socket, r.SrcPort = s, uint16(s.slot+1), s.port
	return w
}

// find returns the source for a port, nil if there can be none.
func (p *pool) find(want uint16) *source {
	port := want
	for range sourcePortTries {
		if s := p.ports[port]; s != nil {
			return s
		}
		s, err := p.add(port)
		if err == nil {
			return s
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		port = (port + 1) | sourcePortMask
	}
	for i := range p.sources {
		if s := p.sources[(int(want)+i)%len(p.sources)]; s != nil {
			return s
		}
	}
	return nil
}

// errFull says that there are as many sockets as there may be.
var errFull = errors.New("udp link: no more source ports")

// add binds a port.
func (p *pool) add(port uint16) (*source, error) {
	if len(p.ports) >= p.limit {
		return nil, errFull
	}
	if allSources.Add(1) > openfiles.SourcePorts(openfiles.Limit()) {
		allSources.Add(-1)
		return nil, errFull
	}
	slot := 0
	for slot < len(p.sources) && p.sources[slot] != nil {
		slot++
	}
	if err := p.bind(slot, port); err != nil {
		allSources.Add(-1)
		return nil, err
	}
	s := &source{pool: p, port: port, slot: slot}
	if slot == len(p.sources) {
		p.sources = append(p.sources, nil)
	}
	p.sources[slot], p.ports[port] = s, s
	return s, nil
}

// release says that one of the source's routes is gone.
func (s *source) release() {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.routes--; s.routes == 0 && !p.closed {
		p.drop(s)
	}
}

// drop closes the socket of a source.
func (p *pool) drop(s *source) {
	p.unbind(s.slot)
	p.sources[s.slot] = nil
	delete(p.ports, s.port)
	allSources.Add(-1)
}

// close closes all sockets.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.sources {
		if s != nil {
			p.drop(s)
		}
	}
}

// state returns the ports bound now, by slot, and how many routes so far send from another port than theirs.
func (p *pool) state() (bound []uint16, others uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sources {
		if s != nil {
			bound = append(bound, s.port)
		}
	}
	return bound, p.others
}
