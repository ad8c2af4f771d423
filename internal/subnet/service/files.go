package service

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/administration"
)

// Files says where a manager keeps what must outlive it. An empty name means that it is not kept.
type Files struct {
	LIDs string // LIDs of ports, in the form of OpenSM's guid2lid
	Dump string // registrations, in the form of OpenSM's opensm-sa.dump: written at the latest a second after a change
	Load string // the same, read when the manager becomes master for the first time
}

// In returns the files in a directory, with OpenSM's names; none if dir is empty. It fails if dir is no
// directory.
func In(dir string) (Files, error) {
	if dir == "" {
		return Files{}, nil
	}
	if i, err := os.Stat(dir); err != nil {
		return Files{}, err
	} else if !i.IsDir() {
		return Files{}, fmt.Errorf("%s is not a directory", dir)
	}
	dump := filepath.Join(dir, DumpName)
	return Files{LIDs: filepath.Join(dir, LIDsName), Dump: dump, Load: dump}, nil
}

// OpenSM's names of the files.
const (
	LIDsName = "guid2lid"
	DumpName = "opensm-sa.dump"
)

// kept is the contents of the files.
type kept struct {
	lids     map[uint64]subnet.LIDRange
	revision uint64     // of the registrations
	due      clock.Time // when they are to be written next
	unable   [2]bool    // the LIDs, the registrations cannot be written, which has been reported
}

// dumpDelay is how long changes are collected before they are written.
const dumpDelay = time.Second

// remember reads the LIDs, and arranges for the registrations to be read when needed.
func (s *Service) remember() {
	s.kept.due = clock.Never
	if name := s.cfg.Files.LIDs; name != "" {
		lids, err := loadLIDs(name)
		if err != nil {
			s.problem("%v: the LIDs of the past are not known", err)
		} else {
			s.cfg.Subnet.LIDs = lids
		}
	}
	if name := s.cfg.Files.Load; name != "" && s.cfg.Subnet.Recall == nil {
		s.cfg.Subnet.Recall = func() (administration.Registrations, error) { return loadRegistrations(name) }
	}
}

func loadRegistrations(name string) (administration.Registrations, error) {
	f, err := inputfile.Open(name, inputfile.Text)
	if os.IsNotExist(err) {
		return administration.Registrations{}, nil
	}
	if err != nil {
		return administration.Registrations{}, err
	}
	defer f.Close()
	return administration.ReadRegistrations(f, time.Now())
}

// keepLIDs writes the LIDs if they have changed. A failure is reported once.
func (s *Service) keepLIDs() {
	lids := s.sm.LIDs()
	if s.cfg.Files.LIDs == "" || s.kept.lids != nil && maps.Equal(lids, s.kept.lids) {
		return
	}
	if err := saveLIDs(s.cfg.Files.LIDs, lids); err != nil {
		s.cannot(0, "the LIDs are not kept for the next start: %v", err)
		return
	}
	s.kept.lids = maps.Clone(lids)
}

func (s *Service) cannot(what int, format string, err error) {
	if !s.kept.unable[what] {
		s.problem(format, err)
	}
	s.kept.unable[what] = true
}

// noteRegistrations schedules writing if there are changes.
func (s *Service) noteRegistrations() {
	if s.cfg.Files.Dump != "" && s.kept.due == clock.Never && s.sm.Revision() != s.kept.revision {
		s.kept.due = s.port.Now().Add(dumpDelay)
	}
}

// keepRegistrations writes what ports have registered, if it has changed and this manager is in charge. A
// failure is reported once.
func (s *Service) keepRegistrations() {
	s.kept.due = clock.Never
	if s.cfg.Files.Dump == "" || s.sm.Revision() == s.kept.revision || !s.sm.Administers() {
		return
	}
	s.kept.revision = s.sm.Revision()
	r := s.sm.Registrations(s.port.Now())
	if err := wholefile.Write(s.cfg.Files.Dump, r.AppendText(nil, time.Now())); err != nil {
		s.cannot(1, "what ports have registered is not kept for the next start: %v", err)
	}
}
