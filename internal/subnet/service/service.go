// Package service runs a subnet manager on a port: it reads the clock, moves its MADs, and keeps its LIDs from start to
// start. What it does is in internal/subnet. The tool opensm is built on it; a rack has a manager of its own (internal/rack).
package service

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/mad"
)

// Config is a subnet manager and where it runs.
type Config struct {
	Subnet subnet.Config
	// Port is what the manager is bound to. It has to be a port that says of itself that it has a subnet manager, to which
	// requests of the classes 0x01, 0x81 and 0x03 and traps come. Run does not close it.
	Port umad.Transport
	// LIDs is the file where LIDs are kept from start to start, in the form of OpenSM's guid2lid. Empty: they are not kept.
	LIDs string
	// Tell is told what happens, in order, by the goroutine of Run. An error ends Run, which returns it. It may be nil.
	Tell func(subnet.Event) error
}

// Service is a subnet manager that runs, or will.
type Service struct {
	cfg   Config
	sm    *subnet.SM
	start time.Time
	state atomic.Uint32

	mu      sync.Mutex
	in      []umad.Datagram
	inErr   error
	wake    chan struct{}
	rescan  chan struct{}
	working []umad.Datagram
	out     [64]subnet.Packet
	told    []subnet.Event // by the service itself
	unable  bool           // the LIDs cannot be kept, which has been told
}

// New makes a service. The error is a *subnet.ConfigError. A file of LIDs that cannot be read is told when Run begins, and
// not heeded.
func New(cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, wake: make(chan struct{}, 1), rescan: make(chan struct{}, 1)}
	if cfg.LIDs != "" {
		lids, err := loadLIDs(cfg.LIDs)
		if err != nil {
			s.problem(fmt.Sprintf("%v: the LIDs of the past are not known", err))
		} else {
			s.cfg.Subnet.LIDs = lids
		}
	}
	sm, err := subnet.New(s.cfg.Subnet)
	if err != nil {
		return nil, err
	}
	s.sm = sm
	s.state.Store(uint32(sm.State()))
	return s, nil
}

// State is the state of the manager. It may be asked by any goroutine.
func (s *Service) State() mad.SMState { return mad.SMState(s.state.Load()) }

// Rescan asks for a thorough sweep. It may be called by any goroutine.
func (s *Service) Rescan() {
	select {
	case s.rescan <- struct{}{}:
	default: // one is asked for already
	}
}

func (s *Service) now() clock.Time { return clock.Time(time.Since(s.start)) }

func (s *Service) problem(text string) {
	s.told = append(s.told, subnet.Event{Kind: subnet.EventProblem, Text: text})
}

// Run manages the subnet until the context ends, the port fails, or Tell has had enough. It is called once. One goroutine
// reads the port, so that the fabric never waits for the one that writes; it ends when the port is closed.
func (s *Service) Run(ctx context.Context) error {
	s.start = time.Now()
	go s.read()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	s.sm.Start(s.now())
	for {
		if err := s.take(); err != nil {
			return err
		}
		now := s.now()
		if !now.Before(s.sm.Deadline()) {
			s.sm.Advance(now)
		}
		sent, err := s.transmit()
		if err != nil {
			return err
		}
		if err := s.tell(); err != nil {
			return err
		}
		if sent && ctx.Err() == nil {
			continue
		}
		wait := time.Hour
		if d := s.sm.Deadline(); d != clock.Never {
			wait = min(wait, max(0, d.Sub(s.now())))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		case <-s.rescan:
			s.sm.Rescan(s.now())
		case <-timer.C:
		}
	}
}

// maxWaiting bounds the MADs that have come and were not looked at: more are dropped, as a card would.
const maxWaiting = 1 << 16

func (s *Service) read() {
	var d umad.Datagram
	for {
		err := s.cfg.Port.Receive(&d)
		s.mu.Lock()
		if err != nil {
			s.inErr = err
		} else if len(s.in) < maxWaiting {
			s.in = append(s.in, d)
		}
		first := len(s.in) == 1 || err != nil
		s.mu.Unlock()
		if first {
			select {
			case s.wake <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// take hands over what has come.
func (s *Service) take() error {
	s.mu.Lock()
	s.in, s.working = s.working[:0], s.in
	err := s.inErr
	s.mu.Unlock()
	now := s.now()
	for i := range s.working {
		d := &s.working[i]
		p := subnet.Packet{LID: d.Remote.LID, QPN: d.Remote.QP, LocalQPN: d.LocalQP, MAD: d.MAD}
		if d.Failed {
			s.sm.Failed(now, &p)
		} else {
			s.sm.Receive(now, &p)
		}
	}
	if len(s.working) == 0 {
		return err
	}
	return nil
}

// transmit sends what is to be sent now.
func (s *Service) transmit() (some bool, err error) {
	n := s.sm.Transmit(s.now(), s.out[:])
	for i := range n {
		p := &s.out[i]
		d := umad.Datagram{Remote: umad.Address{LID: p.LID, QP: p.QPN}, LocalQP: p.LocalQPN, MAD: p.MAD}
		if err := s.cfg.Port.Send(&d); err != nil {
			return true, err
		}
	}
	return n > 0, nil
}

// tell tells what has happened, and keeps LIDs that are new.
func (s *Service) tell() error {
	s.state.Store(uint32(s.sm.State()))
	events := s.sm.Events()
	for i := range events {
		if events[i].Kind == subnet.EventLIDs {
			s.keep()
		}
	}
	if len(s.told) > 0 {
		events, s.told = append(s.told, events...), nil
	}
	if s.cfg.Tell == nil {
		return nil
	}
	for _, e := range events {
		if err := s.cfg.Tell(e); err != nil {
			return err
		}
	}
	return nil
}

// keep writes the LIDs down. Where that cannot be, it is told once.
func (s *Service) keep() {
	if s.cfg.LIDs == "" {
		return
	}
	if err := saveLIDs(s.cfg.LIDs, s.sm.LIDs()); err != nil && !s.unable {
		s.unable = true
		s.problem(fmt.Sprintf("the LIDs are not kept for the next start: %v", err))
	}
}
