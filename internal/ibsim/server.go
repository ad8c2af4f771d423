// Package ibsim serves a fabric over the protocol of ibsim, so that programs with its preload
// library (libumad2sim of Debian's ibsim-utils) see a port of the fabric as their own.
//
// A client has two datagram sockets: one for control messages, each of which is answered, and
// one on which each datagram is a management datagram. Numbers of control messages are little-endian.
package ibsim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
)

const (
	// maxClients bounds the programs that are attached at once.
	maxClients = 4096
	// sweepEvery is how often what has ended without a word is looked for.
	sweepEvery = 250 * time.Millisecond
)

// Server lets programs attach to the ports of a fabric. It owns the fabric while it serves.
type Server struct {
	start time.Time
	work  sync.WaitGroup // of all that Serve started

	mu      sync.Mutex
	fabric  *fabric.Fabric
	names   []string
	clients map[uint32]*client
	at      map[fabric.Place][]*client
	asked   exchanges
	packet  fabric.Packet
	out     [dataLen]byte
	wake    chan struct{} // traps may be due sooner than they were
}

// NewServer makes a server of a fabric.
func NewServer(f *fabric.Fabric) *Server {
	return &Server{start: time.Now(), fabric: f, names: f.Names(), clients: map[uint32]*client{}, at: map[fabric.Place][]*client{},
		asked: newExchanges(), wake: make(chan struct{}, 1)}
}

func (s *Server) now() clock.Time { return clock.Time(time.Since(s.start)) }

// Do lets do work on the fabric, and sends what it has to tell afterwards.
func (s *Server) Do(do func(now clock.Time, f *fabric.Fabric)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s.now(), s.fabric)
	s.sendTraps()
}

// Clients is how many programs are attached.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// Serve serves until ctx ends, which is no error, or a listener fails. It closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...Listener) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, l := range listeners {
		s.work.Go(func() { stop(s.control(l)) })
		s.work.Go(func() { l.commands(s) })
	}
	s.work.Go(func() { s.timers(ctx) })
	<-ctx.Done()
	for _, l := range listeners {
		l.Close()
	}
	s.mu.Lock()
	for _, c := range s.clients {
		s.detach(c)
	}
	s.mu.Unlock()
	s.work.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// control answers the control messages of a listener until it is closed.
func (s *Server) control(l Listener) error {
	b := make([]byte, controlLen+1)
	for {
		n, from, err := l.read(b)
		if err != nil {
			return fmt.Errorf("ibsim protocol: %w", err)
		}
		if n != controlLen {
			continue
		}
		if s.message(l, from, b[:controlLen]) {
			l.reply(from, b[:controlLen])
		}
	}
}

// timers sends traps when they are due, and ends what has waited too long.
func (s *Server) timers(ctx context.Context) {
	t := time.NewTimer(sweepEvery)
	defer t.Stop()
	swept := s.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-t.C:
		}
		s.mu.Lock()
		s.sendTraps()
		if now := s.now(); now.Sub(swept) >= sweepEvery {
			swept = now
			s.giveUp(now)
			s.leaveTheDead()
		}
		wait := min(s.fabric.TrapDeadline().Sub(s.now()), sweepEvery)
		s.mu.Unlock()
		t.Reset(max(wait, 0))
	}
}

// sendTraps sends the traps that are due to the subnet managers where they come to.
func (s *Server) sendTraps() {
	for {
		now := s.now()
		o, ok := s.fabric.Trap(now, &s.packet)
		if !ok {
			break
		}
		if o.Result == fabric.Delivered {
			if c := s.manager(o.At); c != nil {
				s.deliver(c)
			}
		}
	}
	if s.fabric.TrapDeadline() != clock.Never {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// manager is the client at a place that is a subnet manager; nil: there is none.
func (s *Server) manager(at fabric.Place) *client {
	for _, c := range s.at[at] {
		if c.isSM {
			return c
		}
	}
	return nil
}
