package trace

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DefaultBytes is the size of a session's buffers: that of the manual's trace file (WinOF 5.50, "increased from 16MB to 100MB").
const DefaultBytes = 100 << 20

// The limits of a session's buffers.
const (
	LeastBytes = 1 << 20
	MostBytes  = 1 << 30
)

// Config is what a session records.
type Config struct {
	Name   string
	Levels [Components]Level
	Bytes  int // of all buffers together, or of the file; 0: DefaultBytes
	// File says that the records are moved on to a file of that size, and that the buffers hold them until then.
	File bool
}

// fileBuffers is the size of the buffers of a session that has a file.
const fileBuffers = 8 << 20

// Uniform returns the same level for each component.
func Uniform(l Level) (all [Components]Level) {
	for i := range all {
		all[i] = l
	}
	return all
}

// Session is a trace that is being recorded.
type Session struct {
	Config
	Started time.Time
	// Loop is the ring of the loop's owner. Only whoever holds the loop lock may write to it, or call what reads it.
	Loop *Ring

	mu      sync.Mutex
	control *Ring // of everybody else
}

// Start begins a session. The loop has half of the buffers.
func Start(cfg Config, now time.Time) (*Session, error) {
	if cfg.Bytes == 0 {
		cfg.Bytes = DefaultBytes
	}
	if cfg.Bytes < LeastBytes || cfg.Bytes > MostBytes {
		return nil, fmt.Errorf("size is %d bytes; allowed: %d to %d", cfg.Bytes, LeastBytes, MostBytes)
	}
	bytes := cfg.Bytes
	if cfg.File {
		bytes = min(bytes, fileBuffers)
	}
	return &Session{Config: cfg, Started: now, Loop: newRing(cfg.Levels, bytes/2), control: newRing(cfg.Levels, bytes/2)}, nil
}

// Add writes a record of anybody but the loop's owner. A nil session records nothing.
func (s *Session) Add(x Record) {
	if s == nil || x.Level > s.Levels[x.Component] {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control.Add(x)
}

// Usage is what a session has recorded.
type Usage struct {
	Records     int    // that are kept
	Overwritten uint64 // because there was no room
	Bytes       int    // of memory
}

// Usage returns what the session has recorded. The caller holds the loop lock.
func (s *Session) Usage() (u Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range []*Ring{s.Loop, s.control} {
		u.Records += r.kept()
		u.Overwritten += r.total - uint64(r.kept())
		u.Bytes += len(r.chunks) * chunkRecords * recordBytes
	}
	return u
}

// Records returns all that is kept, in the order of time. What reads the loop's ring is called by still, which holds the loop lock
// meanwhile if the loop writes to it.
func (s *Session) Records(still func(func())) (list []Record) {
	still(func() { list = s.Loop.records() })
	s.mu.Lock()
	list = append(list, s.control.records()...)
	s.mu.Unlock()
	slices.SortStableFunc(list, byTime)
	return list
}

func byTime(a, b Record) int { return cmp.Compare(a.At, b.At) }

// Cursor is how far a reader of a session has come. The zero value is its beginning.
type Cursor struct{ loop, control uint64 }

// Since returns the records that the reader has not had yet, in the order of time, and how many of those were overwritten before.
// still is that of Records.
func (s *Session) Since(c *Cursor, still func(func())) (list []Record, lost uint64) {
	still(func() {
		list, lost = s.Loop.since(c.loop)
		c.loop = s.Loop.total
	})
	s.mu.Lock()
	more, gone := s.control.since(c.control)
	c.control = s.control.total
	s.mu.Unlock()
	list = append(list, more...)
	slices.SortStableFunc(list, byTime)
	return list, lost + gone
}
