package server_test

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// takingSession is a session whose events are taken by whoever holds the lock of the loop.
type takingSession struct {
	*fake.Session
	list []command.Event
}

func (s *takingSession) TakeEvents(out []command.Event) int {
	n := copy(out, s.list)
	s.list = s.list[n:]
	return n
}

// takingHost is a host whose sessions are takingSessions.
type takingHost struct {
	fake.Host
	made chan *takingSession
}

func (h *takingHost) NewClient(cfg device.ClientConfig) (server.Session, error) {
	s, err := h.Host.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	taking := &takingSession{Session: s.(*fake.Session)}
	h.made <- taking
	return taking, nil
}

// TestToldEvents: events that the driver is told of go into the track as far as there is credit and room; the others
// are left for later, and none is lost or reordered.
func TestToldEvents(t *testing.T) {
	h := &takingHost{made: make(chan *takingSession, 1)}
	_, path := fake.Serve(t, h, server.Config{})
	c := dial(t, path, client.Options{})
	s := <-h.made
	if _, err := c.AllocPD(t.Context(), 0); err != nil { // after this the tracks exist
		t.Fatal(err)
	}
	const all = 1000
	for i := range command.Handle(all) {
		s.list = append(s.list, command.Event{Type: command.EventEstablished, Object: i})
	}
	for range all {
		s.Config.News()
	}
	if len(s.list) > all-proto.MaxPush || len(s.list) < all-proto.EventCredits { // some may be reserved, or find no room
		t.Fatalf("%d events are left of %d, with credit for %d", len(s.list), all, proto.EventCredits)
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
		if _, err := c.AllocPD(t.Context(), 0); err != nil { // after this the driver has the credit
			t.Fatal(err)
		}
		s.Config.News()
	}
}
