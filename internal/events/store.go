package events

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/os/ownfile"
	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// store keeps frames in segment files in a directory, where the oldest make room for new ones. The caller
// holds the log's lock.
type store struct {
	dir      string
	limit    int64 // bytes of all segments together
	create   func(path string) (file, error)
	segments []*segment
	tail     file // the last segment, open for appending; nil: none is
}

// file is a segment open for writing.
type file interface {
	Write([]byte) (int, error)
	Truncate(int64) error
	Sync() error
	Close() error
}

type segment struct {
	path  string
	first uint64 // the sequence number that it began with
	size  int64
}

const (
	segmentsKept = 8
	suffix       = ".events"
)

// damage is what a file contains besides complete frames.
type damage struct {
	file  string
	bytes int64
}

// openStore reads the existing files and repairs them.
func openStore(dir string, limit int64, create func(string) (file, error)) (s *store, last []Record, found []damage, err error) {
	s = &store{dir: dir, limit: limit, create: create}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, nil, nil, err
	}
	if err := s.list(); err != nil {
		return s, nil, nil, err
	}
	keep := func(r Record) {
		last = append(last, r)
		if len(last) > 2*recentKept {
			last = slices.Clone(last[len(last)-recentKept:])
		}
	}
	for _, g := range s.segments {
		lost, err := g.repair(keep)
		if lost > 0 {
			found = append(found, damage{g.path, lost})
		}
		if err != nil {
			return s, last, found, err
		}
	}
	if len(last) > recentKept {
		last = last[len(last)-recentKept:]
	}
	return s, last, found, s.reopen()
}

// repair calls keep with the records of a segment, and removes what is no complete frame from its file. It
// returns how many bytes those are.
func (g *segment) repair(keep func(Record)) (int64, error) {
	b, err := os.ReadFile(g.path)
	if err != nil {
		return 0, err
	}
	end, damaged := scanFrames(b, keep)
	lost := int64(damaged + len(b) - end)
	g.size = int64(len(b)) - lost
	switch {
	case lost == 0:
		return 0, nil
	case damaged == 0: // a writer ended in the middle of the last frame
		return lost, os.Truncate(g.path, int64(end))
	}
	var whole []byte
	scanFrames(b, func(r Record) {
		if payload, err := r.encode(); err == nil {
			whole = appendFrame(whole, payload)
		}
	})
	g.size = int64(len(whole))
	return lost, wholefile.Write(g.path, whole)
}

// list finds the segments in the directory.
func (s *store) list() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	s.segments = nil
	for _, e := range entries { // sorted by name, which begins with the number
		name, ok := strings.CutSuffix(e.Name(), suffix)
		first, err := strconv.ParseUint(name, 16, 64)
		if !ok || err != nil || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		s.segments = append(s.segments, &segment{filepath.Join(s.dir, e.Name()), first, info.Size()})
	}
	return nil
}

// reopen opens the last segment, and finds out whether the directory is writable.
func (s *store) reopen() (err error) {
	if len(s.segments) > 0 {
		g := s.segments[len(s.segments)-1]
		s.tail, err = s.create(g.path)
		return err
	}
	probe := filepath.Join(s.dir, "probe")
	f, err := ownfile.Open(probe, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(probe))
}

// createFile opens a segment for appending, and creates it if necessary.
func createFile(path string) (file, error) {
	f, err := ownfile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// append writes the frames of records, the first of which has that number. If it fails the segment stays
// as before, as far as the disk permits.
func (s *store) append(first uint64, frames []byte) error {
	if err := s.room(first, int64(len(frames))); err != nil {
		return err
	}
	g := s.segments[len(s.segments)-1]
	n, err := s.tail.Write(frames)
	if err == nil {
		g.size += int64(n)
		return nil
	}
	if n > 0 && s.tail.Truncate(g.size) != nil {
		g.size += int64(n) // a reader finds the next frame after it
	}
	return err
}

// room starts a new segment if the last is full, and removes the oldest ones above the limit.
func (s *store) room(first uint64, n int64) error {
	if s.tail != nil && s.segments[len(s.segments)-1].size+n <= s.limit/segmentsKept {
		return nil
	}
	path := filepath.Join(s.dir, fmt.Sprintf("%016x%s", first, suffix))
	f, err := s.create(path)
	if err != nil {
		return err
	}
	if s.tail != nil {
		_ = s.tail.Sync()
		_ = s.tail.Close()
	}
	s.tail = f
	if len(s.segments) == 0 || s.segments[len(s.segments)-1].path != path {
		s.segments = append(s.segments, &segment{path: path, first: first})
	}
	_ = wholefile.SyncDirectory(s.dir) // the segment exists even if its name may not survive a crash
	for len(s.segments) > segmentsKept || s.total()+n > s.limit && len(s.segments) > 1 {
		if err := os.Remove(s.segments[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
		s.segments = s.segments[1:]
	}
	return nil
}

func (s *store) total() (n int64) {
	for _, g := range s.segments {
		n += g.size
	}
	return n
}

func (s *store) close() error {
	if s.tail == nil {
		return nil
	}
	err := errors.Join(s.tail.Sync(), s.tail.Close())
	s.tail = nil
	return err
}

// files returns the paths of the segments that may contain events after a number.
func (s *store) files(after uint64) []string {
	var out []string
	for i, g := range s.segments {
		if i+1 < len(s.segments) && s.segments[i+1].first <= after+1 {
			continue
		}
		out = append(out, g.path)
	}
	return out
}
