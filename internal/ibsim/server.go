// Package ibsim serves a fabric over the protocol of ibsim, so that programs with its preload library
// (libumad2sim of Debian's ibsim-utils) see a port of the fabric as their own.
//
// A client has two datagram sockets: one for control messages, each of which is answered, and one on which
// each datagram is a management datagram. Numbers in control messages are little-endian.
package ibsim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
)

const (
	// maxClients limits the number of attached programs.
	maxClients = 4096
	// sweepEvery is how often the server looks for clients that have gone without saying so.
	sweepEvery = 250 * time.Millisecond
)

// Server lets programs attach to the ports of a fabric that runs in a rack.
type Server struct {
	rack *live.Rack
	work sync.WaitGroup // of all that Serve started

	// The rack's lock guards the following fields.
	fabric  *fabric.Fabric
	names   []string
	clients map[uint32]*client
	at      map[fabric.Place][]*client
	asked   exchanges
	unread  int    // datagrams that clients have not read
	cut     uint64 // clients that were disconnected because they did not read
	lost    uint64 // datagrams that these had not read
	packet  fabric.Packet
	out     [dataLen]byte
}

// NewServer creates a server for a rack, which still belongs to the caller.
func NewServer(r *live.Rack) *Server {
	s := &Server{rack: r, clients: map[uint32]*client{}, at: map[fabric.Place][]*client{}, asked: newExchanges()}
	_, s.fabric = r.Lock()
	defer r.Unlock()
	s.names = s.fabric.Names()
	return s
}

func (s *Server) now() clock.Time { return s.rack.Now() }

// Do runs do with the fabric locked, and then does what has become due.
func (s *Server) Do(do func(now clock.Time, f *fabric.Fabric)) { s.rack.Do(do) }

// Serve serves until ctx ends, which is no error, or a listener fails. It closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...Listener) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer s.rack.Attend(s)()
	for _, l := range listeners {
		s.work.Go(func() { stop(s.control(l)) })
		s.work.Go(func() { l.commands(s) })
	}
	s.work.Go(func() { s.timers(ctx) })
	<-ctx.Done()
	for _, l := range listeners {
		l.Close()
	}
	s.rack.Lock()
	for _, c := range s.clients {
		s.detach(c)
	}
	s.rack.Unlock()
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

// timers ends what has waited too long.
func (s *Server) timers(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now, _ := s.rack.Lock()
		s.giveUp(now)
		s.leaveTheDead()
		s.rack.Unlock()
	}
}

// manager returns the client at a place that is a subnet manager; nil: there is none.
func (s *Server) manager(at fabric.Place) *client {
	for _, c := range s.at[at] {
		if c.isSM {
			return c
		}
	}
	return nil
}
