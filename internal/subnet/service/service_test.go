package service

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// socket is a port of a fabric in the same process.
type socket struct {
	mu      sync.Mutex // guards f
	f       *fabric.Fabric
	at      fabric.Place
	start   time.Time
	service *Service
	mine    func(*fabric.Packet) // takes the answers to a client at the same port; may be nil
}

// open returns a service at the first port of a node, and that port.
func open(t *testing.T, f *fabric.Fabric, node int, cfg Config) (*Service, *socket) {
	t.Helper()
	p := &socket{f: f, at: f.Attach(node), start: time.Now()}
	f.SetIsSM(p.at, true)
	s, err := New(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.service = s
	return s, p
}

// Now implements Port.
func (s *socket) Now() clock.Time { return clock.Time(time.Since(s.start)) }

// Send implements Port.
func (s *socket) Send(m *subnet.Packet) (lost bool, err error) {
	p := fabric.Packet{DLID: m.LID, SQP: m.LocalQPN, DQP: m.QPN, MAD: m.MAD}
	if p.MAD[1] == mad.ClassSubnetDir {
		p.SLID = ib.LIDPermissive
	}
	s.mu.Lock()
	out := s.f.Send(s.Now(), s.at, &p)
	s.mu.Unlock()
	switch {
	case out.Result == fabric.Answered:
		s.service.Deliver(&subnet.Packet{LID: p.SLID, QPN: p.SQP, LocalQPN: p.DQP, MAD: p.MAD})
	case out.Result == fabric.Delivered && s.mine != nil:
		s.mine(&p)
	case out.Result == fabric.Dropped:
		return true, nil
	}
	return false, nil
}

func (*socket) Flush() error { return nil }

func star(t *testing.T, hosts int) *fabric.Fabric {
	t.Helper()
	top, err := topology.Star(hosts, topology.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	return fabric.New(top, func() uint64 { return 0 })
}

// TestServiceKeepsLIDs: a service brings the subnet up and runs until its context ends; the next one gives the same
// LIDs.
func TestServiceKeepsLIDs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guid2lid")
	var first map[uint64]subnet.LIDRange
	for run := range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		up := 0
		s, _ := open(t, star(t, 3), 2, Config{Files: Files{LIDs: file}, Tell: func(e subnet.Event) error {
			if e.Kind == subnet.EventUp {
				if up++; up == 2 {
					cancel()
				}
			}
			return nil
		}})
		s.Rescan() // after the first sweep
		if err := s.Run(ctx); !errors.Is(err, context.Canceled) || s.sm.State() != mad.SMMaster {
			t.Fatalf("run %d ended with %v in state %v", run, err, s.sm.State())
		}
		cancel()
		lids, err := loadLIDs(file)
		if err != nil || len(lids) != 4 {
			t.Fatalf("run %d: LIDs %v, %v", run, lids, err)
		}
		if run == 0 { // the file is changed to other LIDs than the next start would give
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

// TestServiceKeepsRegistrations: what ports register outlives a service, whether it is ended in order or, except for
// the last second, killed.
func TestServiceKeepsRegistrations(t *testing.T) {
	files, err := In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gid := ib.GID{0xff, 0x12, 15: 7}
	var mlid ib.LID
	for run := range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		up := make(chan struct{}, 8)
		s, p := open(t, star(t, 3), 2, Config{Files: files, Tell: func(e subnet.Event) error {
			if e.Kind == subnet.EventUp {
				up <- struct{}{}
			}
			return nil
		}})
		answers := make(chan mad.SA, 8)
		p.mine = func(p *fabric.Packet) {
			if m, err := mad.ParseSA(p.MAD[:]); err == nil {
				answers <- m
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		<-up
		if run == 0 {
			p.join(t, gid)
			rec, _ := mad.ParseMCMemberRecord(answered(t, answers))
			mlid = rec.MLID
			await.Eventually(t, "the dump contains the group, before the end", func() bool {
				b, _ := os.ReadFile(files.Dump)
				return strings.Contains(string(b), "mgid=0xff12000000000000:0x0000000000000007")
			})
		} else {
			ask := mad.NewSA(mad.MethodGet, mad.AttrMCMemberRecord, 0, 2)
			ask.ComponentMask = mad.MemberMGID
			copy(ask.Data[:], gid[:])
			p.deliver(&ask)
			rec, _ := mad.ParseMCMemberRecord(answered(t, answers))
			if rec.MGID != gid || rec.MLID != mlid {
				t.Errorf("the group is %+v, had multicast LID %#x", rec, mlid)
			}
		}
		cancel()
		<-ended
	}
}

// join makes adapter 0 join a group.
func (s *socket) join(t *testing.T, gid ib.GID) {
	t.Helper()
	rec := mad.MCMemberRecord{MGID: gid, PortGID: s.gidOf(t, fabric.Place{Node: 0, Port: 1}), PKey: ib.PKeyDefault, JoinState: mad.JoinFull}
	ask := mad.NewSA(mad.MethodSet, mad.AttrMCMemberRecord, 0, 1)
	ask.ComponentMask = mad.MemberMGID | mad.MemberPortGID | mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel |
		mad.MemberTrafficClass | mad.MemberJoinState
	copy(ask.Data[:], rec.Append(nil))
	s.deliver(&ask)
}

// gidOf returns the first GID of a port.
func (s *socket) gidOf(t *testing.T, at fabric.Place) (g ib.GID) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 9)
	p := fabric.Packet{DLID: s.f.PortInfo(at).LID}
	m.Append(p.MAD[:0])
	if s.f.Send(s.Now(), fabric.Place{Node: 1, Port: 1}, &p).Result != fabric.Answered {
		t.Fatal("the port does not answer")
	}
	a, _ := mad.ParseSMP(p.MAD[:])
	n, err := mad.ParseNodeInfo(a.Data[:])
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(g[:], subnet.DefaultPrefix)
	binary.BigEndian.PutUint64(g[8:], n.PortGUID)
	return g
}

// deliver delivers a request of adapter 0.
func (s *socket) deliver(m *mad.SA) {
	s.mu.Lock()
	p := subnet.Packet{LID: s.f.PortInfo(fabric.Place{Node: 0, Port: 1}).LID, QPN: 1, LocalQPN: 1}
	s.mu.Unlock()
	m.Append(p.MAD[:0])
	s.service.Queue(&p)
	s.service.Serve()
}

func answered(t *testing.T, answers chan mad.SA) []byte {
	t.Helper()
	select {
	case m := <-answers:
		if m.Status != mad.StatusOK {
			t.Fatalf("the answer has status %#x, want 0", m.Status)
		}
		return m.Data[:]
	case <-time.After(time.Minute):
		t.Fatal("no answer within a minute")
		return nil
	}
}

// TestServiceEnds: an error of Tell, or of the port, ends the service with that error. A file of LIDs that cannot be
// read is reported as a problem.
func TestServiceEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guid2lid")
	if err := os.WriteFile(file, []byte("no LIDs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	var events []subnet.Event
	s, _ := open(t, star(t, 2), 0, Config{Files: Files{LIDs: file}, Tell: func(e subnet.Event) error {
		if events = append(events, e); e.Kind == subnet.EventUp {
			return enough
		}
		return nil
	}})
	if err := s.Run(context.Background()); err != enough {
		t.Errorf("the service ended with %v, want the error of Tell", err)
	}
	if len(events) == 0 || events[0].Kind != subnet.EventProblem {
		t.Errorf("events %v, want one of the file first", events)
	}

	s, _ = open(t, star(t, 2), 0, Config{Tell: func(e subnet.Event) error {
		if e.Kind == subnet.EventUp {
			s.Break(os.ErrClosed)
		}
		return nil
	}})
	if err := s.Run(context.Background()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed port: error %v, want %v", err, os.ErrClosed)
	}
	var wrong *subnet.ConfigError
	if _, err := New(&socket{}, Config{Subnet: subnet.Config{LMC: 9}}); !errors.As(err, &wrong) {
		t.Errorf("LMC 9: error %v, want one of the configuration", err)
	}
	if _, err := In(file); err == nil {
		t.Error("a file was taken for a directory")
	}
}
