package ipc

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
)

// Credit that somebody has reserved is nobody else's until it is settled, and counts as granted meanwhile.
func TestCredits(t *testing.T) {
	c := newCredits()
	if n := c.grant(10); n != 10 {
		t.Errorf("%d granted", n)
	}
	if n := c.reserve(7); n != 7 {
		t.Errorf("%d reserved of 10", n)
	}
	if n := c.reserve(7); n != 3 {
		t.Errorf("%d reserved of 3", n)
	}
	if n := c.grant(5); n != 15 {
		t.Errorf("%d granted, none used", n)
	}
	c.settle(7, 2)
	c.settle(3, 3)
	if n := c.reserve(100); n != 10 {
		t.Errorf("%d reserved, 5 of 15 were used", n)
	}
	if n := c.reserve(1); n != 0 {
		t.Errorf("%d reserved of none", n)
	}
}

// takingSession is a session whose events whoever has the baton may take.
type takingSession struct {
	*fakeSession
	list []command.Event
}

func (s *takingSession) TakeEvents(out []command.Event) int {
	n := copy(out, s.list)
	s.list = s.list[n:]
	return n
}

// takingHost has sessions of that kind.
type takingHost struct {
	fakeHost
	made chan *takingSession
}

func (h *takingHost) NewClient(cfg device.ClientConfig) (Session, error) {
	s, err := h.fakeHost.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	taking := &takingSession{fakeSession: s.(*fakeSession)}
	h.made <- taking
	return taking, nil
}

// Events that are told of go by the track as far as there is credit and room, and no further: the others are left.
func TestToldEvents(t *testing.T) {
	h := &takingHost{made: make(chan *takingSession, 1)}
	_, path := serve(t, h, ServerConfig{})
	c := dial(t, path, Options{})
	s := <-h.made
	if _, err := c.AllocPD(t.Context(), 0); err != nil { // the tracks are there
		t.Fatal(err)
	}
	const all = 1000
	for i := range command.Handle(all) {
		s.list = append(s.list, command.Event{Type: command.EventEstablished, Object: i})
	}
	for range all {
		s.cfg.News()
	}
	if len(s.list) > all-maxPush || len(s.list) < all-eventCredits { // some may be reserved, or have no room
		t.Fatalf("%d events are left of %d, with credit for %d", len(s.list), all, eventCredits)
	}
	out := make([]command.Event, 16)
	for next := command.Handle(0); next < all; {
		n, err := c.Events(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range out[:n] {
			if e.Object != next {
				t.Fatalf("event %d, want %d", e.Object, next)
			}
			next++
		}
		if _, err := c.AllocPD(t.Context(), 0); err != nil { // the driver has the credit
			t.Fatal(err)
		}
		s.cfg.News()
	}
}
