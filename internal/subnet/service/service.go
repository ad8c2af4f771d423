// Package service runs a subnet manager: it moves its MADs, keeps its time, and what is to outlive it in files. What the
// manager does is in internal/subnet. The manager of a rack (internal/rack) and the tool opensm are both run by it, each at a
// Port of its own kind.
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

// Port is what a manager is bound to: one that says of itself that it has a subnet manager. What comes to it for the manager is
// given to the service by Deliver.
type Port interface {
	// Now is the time.
	Now() clock.Time
	// Send hands a MAD to the fabric. lost: it is known that nobody will answer it. An error ends the service.
	Send(p *subnet.Packet) (lost bool, err error)
}

// Config is a subnet manager and what is kept of it. The zero value of a field means its default.
type Config struct {
	Subnet subnet.Config
	Files  Files
	// Tell is told what happens, in order, by one goroutine at a time. An error ends Run, which returns it. It may be nil.
	Tell func(subnet.Event) error
}

// Service is a subnet manager that runs, or will.
type Service struct {
	cfg    Config
	port   Port
	sm     *subnet.SM
	rescan atomic.Bool
	wake   chan struct{}

	turn  sync.Mutex // of whoever works for the manager: Run, or who calls Serve
	until clock.Time // when Run looks again
	err   error      // ends Run
	told  []subnet.Event
	kept  kept
	taken []arrival
	out   [64]subnet.Packet

	mu     sync.Mutex
	in     []arrival
	broken error
}

// arrival is a MAD that came, or one of ours that came back.
type arrival struct {
	subnet.Packet
	failed bool
}

// New makes a service at a port. The error is a *subnet.ConfigError. Files that cannot be read are told when Run begins, and not
// heeded.
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

// Rescan asks for a thorough sweep. It may be called by any goroutine.
func (s *Service) Rescan() {
	s.rescan.Store(true)
	s.rouse()
}

func (s *Service) problem(format string, args ...any) {
	s.told = append(s.told, subnet.Event{Kind: subnet.EventProblem, Text: fmt.Sprintf(format, args...)})
}

// maxWaiting bounds the MADs that have come and were not looked at: more are dropped, as a card would.
const maxWaiting = 1 << 16

// Queue takes a MAD that came to the port, without an effect before Serve or Deliver is called. It does not block.
func (s *Service) Queue(p *subnet.Packet) { s.queue(p, false) }

// Deliver takes a MAD that came to the port. It does not block.
func (s *Service) Deliver(p *subnet.Packet) {
	s.queue(p, false)
	s.rouse()
}

// Failed takes back a request of the manager's that will have no answer. It does not block.
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

// Break tells that nothing will come to the port any more, and why: Run returns that.
func (s *Service) Break(err error) {
	s.mu.Lock()
	s.broken = err
	s.mu.Unlock()
	s.rouse()
}

// Serve answers what is queued here and now where that is short and nobody is at it, since handing it from goroutine to
// goroutine takes longer than the answer. Else Run's goroutine is told.
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

// brief tells whether a MAD is a question about one record.
func brief(a *arrival) bool {
	return !a.failed && a.MAD[1] == mad.ClassSubnetAdm && a.MAD[3] == mad.MethodGet
}

func (s *Service) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // it has been told already
	}
}

// Run manages the subnet until the context ends, the port fails, or Tell has had enough. It is called once.
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

// deadline is when there is something to do though nothing comes.
func (s *Service) deadline() clock.Time { return clock.Min(s.sm.Deadline(), s.kept.due) }

// work does what there is to do, until there is nothing.
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

// receive hands the manager what has come; false: that is nothing.
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

// transmit sends what the manager has to send now; false: that is nothing.
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
	return n > 0
}

// tell tells what has happened, and keeps what is new.
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
