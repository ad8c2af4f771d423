package trace

import (
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
	Bytes  int // of all buffers together; 0: DefaultBytes
}

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
	return &Session{Config: cfg, Started: now, Loop: newRing(cfg.Levels, cfg.Bytes/2), control: newRing(cfg.Levels, cfg.Bytes/2)}, nil
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
	slices.SortStableFunc(list, func(a, b Record) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return list
}
