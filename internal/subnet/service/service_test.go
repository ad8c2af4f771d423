package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// socket is a port of a fabric in the same process.
type socket struct {
	f      *fabric.Fabric
	at     fabric.Place
	start  time.Time
	mu     sync.Mutex
	more   *sync.Cond
	queue  []umad.Datagram
	closed bool
}

func plug(f *fabric.Fabric, node int) *socket {
	s := &socket{f: f, at: f.Attach(node), start: time.Now()}
	s.more = sync.NewCond(&s.mu)
	f.SetIsSM(s.at, true)
	return s
}

func (s *socket) Send(d *umad.Datagram) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := fabric.Packet{DLID: d.Remote.LID, SQP: d.LocalQP, DQP: d.Remote.QP, MAD: d.MAD}
	if p.MAD[1] == mad.ClassSubnetDir {
		p.SLID = ib.LIDPermissive
	}
	if out := s.f.Send(clock.Time(time.Since(s.start)), s.at, &p); out.Result == fabric.Answered {
		s.queue = append(s.queue, umad.Datagram{Remote: umad.Address{LID: p.SLID, QP: p.SQP}, LocalQP: p.DQP, MAD: p.MAD})
		s.more.Signal()
	}
	return nil
}

func (s *socket) Receive(d *umad.Datagram) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed {
		s.more.Wait()
	}
	if s.closed {
		return os.ErrClosed
	}
	*d, s.queue = s.queue[0], s.queue[1:]
	return nil
}

func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Broadcast()
	return nil
}

func star(t *testing.T, hosts int) *fabric.Fabric {
	t.Helper()
	topology, err := fabric.Star(hosts, fabric.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	return fabric.New(topology, func() uint64 { return 0 })
}

// A service brings the subnet up, keeps its LIDs, and goes on until its context ends; the next one gives the same LIDs.
func TestServiceKeepsLIDs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guid2lid")
	var first map[uint64]subnet.LIDRange
	for run := range 2 {
		port := plug(star(t, 3), 2)
		ctx, cancel := context.WithCancel(context.Background())
		up := 0
		s, err := New(Config{Port: port, LIDs: file, Tell: func(e subnet.Event) error {
			if e.Kind == subnet.EventUp {
				if up++; up == 2 {
					cancel()
				}
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.Rescan() // after the first sweep
		if err := s.Run(ctx); !errors.Is(err, context.Canceled) || s.State() != mad.SMMaster {
			t.Fatalf("run %d ended with %v in state %v", run, err, s.State())
		}
		port.Close()
		cancel()
		lids, err := loadLIDs(file)
		if err != nil || len(lids) != 4 {
			t.Fatalf("run %d: LIDs %v, %v", run, lids, err)
		}
		if run == 0 { // the next start is told other LIDs than it would give
			first = map[uint64]subnet.LIDRange{}
			for guid, l := range lids {
				first[guid] = subnet.LIDRange{First: l.First + 20, Last: l.Last + 20}
			}
			if err := saveLIDs(file, first); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for guid, l := range lids {
			if first[guid] != l {
				t.Errorf("port %#x has %v, was remembered with %v", guid, l, first[guid])
			}
		}
	}
}

// An error of Tell, and a port that fails, end the service with that error; a file of LIDs that is none is told.
func TestServiceEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guid2lid")
	if err := os.WriteFile(file, []byte("no LIDs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	port := plug(star(t, 2), 0)
	defer port.Close()
	var events []subnet.Event
	s, err := New(Config{Port: port, LIDs: file, Tell: func(e subnet.Event) error {
		if events = append(events, e); e.Kind == subnet.EventUp {
			return enough
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); err != enough {
		t.Errorf("ended with %v", err)
	}
	if len(events) == 0 || events[0].Kind != subnet.EventProblem {
		t.Errorf("events %v, want one of the file first", events)
	}

	port = plug(star(t, 2), 0)
	s, err = New(Config{Port: port, Tell: func(e subnet.Event) error {
		if e.Kind == subnet.EventUp {
			return port.Close()
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed port: %v", err)
	}
	var wrong *subnet.ConfigError
	if _, err := New(Config{Subnet: subnet.Config{LMC: 9}}); !errors.As(err, &wrong) {
		t.Errorf("LMC 9: %v", err)
	}
}
