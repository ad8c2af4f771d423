// Package service speaks with the service manager of Windows, where it has started this process: it says when the service runs, stops and
// is at its end, and hears when it is to stop (learn.microsoft.com, "Service State Transitions").
package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Name is that of the service, and of the source of its events.
const Name = "SoftVPI"

// State is where a service is in its life.
type State int

// The states, in their order.
const (
	Starting State = iota
	Running
	Stopping
	ended
)

// Command is what the manager wants of a service.
type Command int

// The commands.
const (
	Interrogate Command = iota // say again how it is
	Stop                       // also when the system shuts down
)

// Serve passes on what a service says to its manager, and does what the manager wants, until the service is at its end. It returns how
// the service has failed.
type Serve func(commands <-chan Command, tell func(State)) error

// Manager is a service manager: it has serve called, and returns when it has heard of the service's end. The error is one of the manager.
type Manager func(serve Serve) error

// Service is this process as a service. Nil is none, to which everything may be told.
type Service struct {
	stop   context.CancelFunc
	states chan State
	over   chan struct{} // closed when the conversation with the manager is over
	err    error         // what was wrong with it; after over

	once    sync.Once
	failure error // how the service ended; before the last state
}

// Start begins to speak with a manager. The context ends when the service is to stop; without a manager that is at once.
func Start(ctx context.Context, manager Manager) (*Service, context.Context) {
	ctx, stop := context.WithCancel(ctx)
	s := &Service{stop: stop, states: make(chan State), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		if err := manager(s.serve); err != nil {
			s.err = fmt.Errorf("service manager: %w", err)
			s.stop()
		}
	}()
	return s, ctx
}

// serve is a Serve.
func (s *Service) serve(commands <-chan Command, tell func(State)) error {
	now := Starting
	tell(now)
	for {
		select {
		case c := <-commands:
			if c == Stop {
				now = max(now, Stopping)
				s.stop()
			}
			tell(now)
		case next := <-s.states:
			if next == ended {
				return s.failure
			}
			if next > now { // it may become ready while it is to stop already
				now = next
				tell(now)
			}
		}
	}
}

// say says a state, unless nobody hears it any more.
func (s *Service) say(state State) {
	if s == nil {
		return
	}
	select {
	case s.states <- state:
	case <-s.over:
	}
}

// Ready says that the service runs.
func (s *Service) Ready() { s.say(Running) }

// Stopping says that the service stops.
func (s *Service) Stopping() { s.say(Stopping) }

// End says that the service is at its end, by a failure or by none, and returns the failure, with what has failed in speaking with the
// manager.
func (s *Service) End(failure error) error {
	if s == nil {
		return failure
	}
	s.once.Do(func() {
		s.failure = failure
		s.say(ended)
		s.stop()
	})
	<-s.over
	if s.err == nil {
		return failure
	}
	return errors.Join(failure, s.err)
}
