// Package service runs a subnet manager: it transfers its MADs, keeps its time, and stores in files what
// must outlive it. The manager's logic is in internal/subnet. Both the manager of a rack (internal/fabric/live)
// and the tool opensm run in it, each at its own kind of Port.
package service

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/mad"
)

// Port is the port that a manager is bound to, which announces that it has a subnet manager. What it
// receives for the manager is passed to the service by Deliver.
type Port interface {
	// Now returns the time.
	Now() clock.Time
	// Send passes a MAD to the fabric. lost: it is known that nobody will answer it. An error ends the
	// service.
	Send(p *subnet.Packet) (lost bool, err error)
	// Flush is called after one or more calls of Send: what Send has held back must be passed on now.
	Flush() error
}

// Config configures a subnet manager and what is kept of it. The zero value of a field selects its
// default.
type Config struct {
	Subnet subnet.Config
	Files  Files
	// Tell, if not nil, is called for each event, in order, by one goroutine at a time. An error ends Run,
	// which returns it.
	Tell func(subnet.Event) error
}

// Service is a subnet manager that runs, or will run.
type Service struct {
	cfg    Config
	port   Port
	sm     *subnet.SM
	rescan atomic.Bool
	wake   chan struct{}

	turn  sync.Mutex // held by whoever works for the manager: Run, or the caller of Serve
	until clock.Time // when Run wakes up
	err   error      // ends Run
	told  []subnet.Event
	kept  kept
	taken []arrival
	out   [64]subnet.Packet

	mu     sync.Mutex
	in     []arrival
	broken error
}

// arrival is a MAD that was received, or one of ours that failed.
type arrival struct {
	subnet.Packet
	failed bool
}

// New creates a service at a port. The error is a *subnet.ConfigError. Files that cannot be read are
// reported when Run begins, and otherwise ignored.
func New(port Port, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, port: port, wake: make(chan struct{}, 1)}
	s.remember()
	sm, err := subnet.New(s.cfg.Subnet)
	if err != nil {
		return nil, err
	}
	s.sm = sm
	return s, nil
}

// Rescan requests a thorough sweep. Any goroutine may call it.
func (s *Service) Rescan() {
	s.rescan.Store(true)
	s.rouse()
}

func (s *Service) problem(format string, args ...any) {
	s.told = append(s.told, subnet.Event{Kind: subnet.EventProblem, Text: fmt.Sprintf(format, args...)})
}

// maxWaiting limits the MADs that were received but not handled yet: more are dropped, as a card would.
const maxWaiting = 1 << 16

// Queue accepts a MAD received by the port, which takes effect when Serve or Deliver is called. It does
// not block.
func (s *Service) Queue(p *subnet.Packet) { s.queue(p, false) }

// Deliver accepts a MAD received by the port. It does not block.
func (s *Service) Deliver(p *subnet.Packet) {
	s.queue(p, false)
	s.rouse()
}

// Failed returns a request of the manager's that will get no answer. It does not block.
func (s *Service) Failed(p *subnet.Packet) {
	s.queue(p, true)
	s.rouse()
}

func (s *Service) queue(p *subnet.Packet, failed bool) {
	s.mu.Lock()
	if len(s.in) < maxWaiting {
		s.in = append(s.in, arrival{*p, failed})
	}
	s.mu.Unlock()
}

// Break says that the port will receive nothing more, and why: Run returns that error.
func (s *Service) Break(err error) {
	s.mu.Lock()
	s.broken = err
	s.mu.Unlock()
	s.rouse()
}

// Serve answers what is queued in the caller's goroutine if that is quick and nobody else is at it, since
// a switch between goroutines takes longer than the answer. Otherwise it wakes Run.
func (s *Service) Serve() {
	s.mu.Lock()
	some, short := len(s.in) > 0, true
	for i := range s.in {
		short = short && brief(&s.in[i])
	}
	s.mu.Unlock()
	if !some {
		return
	}
	if !short || !s.turn.TryLock() {
		s.rouse()
		return
	}
	defer s.turn.Unlock()
	s.receive()
	s.transmit()
	s.tell()
	if s.err != nil || s.deadline().Before(s.until) {
		s.rouse()
	}
}

// brief reports whether a MAD asks for a single record.
func brief(a *arrival) bool {
	return !a.failed && a.MAD[1] == mad.ClassSubnetAdm && a.MAD[3] == mad.MethodGet
}

func (s *Service) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // it has already been woken
	}
}

// Run manages the subnet until the context ends, the port fails, or Tell returns an error. It must be
// called only once.
func (s *Service) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	s.turn.Lock()
	defer s.turn.Unlock()
	defer s.keepRegistrations()
	s.sm.Start(s.port.Now())
	for {
		s.work(ctx)
		switch {
		case s.err != nil:
			return s.err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		now := s.port.Now()
		s.until = clock.Min(s.deadline(), now.Add(time.Hour))
		timer.Reset(max(0, s.until.Sub(now)))
		s.turn.Unlock()
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
		s.turn.Lock()
	}
}

// deadline returns when there is something to do even if nothing arrives.
func (s *Service) deadline() clock.Time { return clock.Min(s.sm.Deadline(), s.kept.due) }

// work does what there is to do until nothing is left.
func (s *Service) work(ctx context.Context) {
	for s.err == nil && ctx.Err() == nil {
		some := s.receive()
		now := s.port.Now()
		if s.rescan.Swap(false) {
			s.sm.Rescan(now)
		}
		if !now.Before(s.sm.Deadline()) {
			s.sm.Advance(now)
		}
		sent := s.transmit()
		s.tell()
		if !now.Before(s.kept.due) {
			s.keepRegistrations()
		}
		if !some && !sent {
			return
		}
	}
}

// receive passes what was received to the manager; false: there was nothing.
func (s *Service) receive() bool {
	s.mu.Lock()
	s.taken, s.in = s.in, s.taken[:0]
	broken := s.broken
	s.mu.Unlock()
	now := s.port.Now()
	for i := range s.taken {
		if a := &s.taken[i]; a.failed {
			s.sm.Failed(now, &a.Packet)
		} else {
			s.sm.Receive(now, &a.Packet)
		}
	}
	if len(s.taken) > 0 {
		return true
	}
	if s.err == nil {
		s.err = broken
	}
	return false
}

// transmit sends what the manager wants to send now; false: there was nothing.
func (s *Service) transmit() bool {
	n := s.sm.Transmit(s.port.Now(), s.out[:])
	for i := range s.out[:n] {
		lost, err := s.port.Send(&s.out[i])
		if err != nil && s.err == nil {
			s.err = err
		}
		if lost {
			s.sm.Failed(s.port.Now(), &s.out[i])
		}
	}
	if n == 0 {
		return false
	}
	if err := s.port.Flush(); err != nil && s.err == nil {
		s.err = err
	}
	return true
}

// tell reports what has happened, and stores what is new.
func (s *Service) tell() {
	events := s.sm.Events()
	for i := range events {
		if events[i].Kind == subnet.EventLIDs {
			s.keepLIDs()
		}
	}
	s.noteRegistrations()
	if len(s.told) > 0 {
		events, s.told = append(s.told, events...), nil
	}
	if s.cfg.Tell == nil {
		return
	}
	for _, e := range events {
		if s.err == nil {
			s.err = s.cfg.Tell(e)
		}
	}
}
