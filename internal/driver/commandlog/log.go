// Package commandlog counts the commands that programs give to adapters, and keeps the latest ones, like
// the trace of a card's firmware.
package commandlog

import (
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/driver/lastwords"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Log counts the commands that programs give to the adapters, and keeps the latest of each adapter.
// Commands that concern no adapter are not recorded. Its methods may be called at any time.
type Log struct {
	// Failed, if set, is called with each command that the driver itself could not carry out; not with those that it refused, for
	// which their programs are to blame. It must return at once.
	Failed func(adapter int, r Record)
	// Ended, if set, is called with each command of an adapter. It must return at once.
	Ended func(adapter int, op proto.Opcode, r Record)
	// Tenant, if set, is called with each command of a program that has a virtual function. It must return at once.
	Tenant func(function string, took time.Duration, err error)
	// Last, if set, keeps the latest commands for the driver after this one, if this one dies.
	Last     *lastwords.Recorder
	adapters []*adapterCommands
}

// adapterCommands are the commands of one adapter.
type adapterCommands struct {
	mu      sync.Mutex
	stats   [proto.OpEnd]Stats // by operation
	recent  []Record           // a ring, once it is full
	oldest  int
	maximum int
	pending pending
}

// Stats are the statistics of one kind of command.
type Stats struct {
	Command        string
	Count, Failed  uint64
	Total, Longest time.Duration
}

// Record is a command that was executed.
type Record struct {
	Began   time.Time
	Took    time.Duration
	Command string
	Program string
	PID     int
	Failure command.Code // 0: none
}

// keptCommands is how many records are kept per adapter.
const keptCommands = 256

// New creates the log for a number of adapters.
func New(adapters int) *Log {
	l := &Log{adapters: make([]*adapterCommands, adapters)}
	for i := range l.adapters {
		l.adapters[i] = &adapterCommands{maximum: keptCommands}
	}
	return l
}

// Stats returns the statistics of the commands given to an adapter.
func (l *Log) Stats(adapter uint32) []Stats {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Stats
	for i, s := range a.stats {
		if s.Count > 0 {
			s.Command = proto.Opcode(i).String()
			out = append(out, s)
		}
	}
	return out
}

// Recent returns the latest commands given to an adapter, the oldest first.
func (l *Log) Recent(adapter uint32) []Record {
	a := l.adapters[adapter]
	a.mu.Lock()
	defer a.mu.Unlock()
	return append(append([]Record{}, a.recent[a.oldest:]...), a.recent[:a.oldest]...)
}

func (a *adapterCommands) add(op proto.Opcode, r Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.stats[op]
	s.Count++
	s.Total += r.Took
	s.Longest = max(s.Longest, r.Took)
	if r.Failure != 0 {
		s.Failed++
	}
	if len(a.recent) < a.maximum {
		a.recent = append(a.recent, r)
		return
	}
	a.recent[a.oldest] = r
	a.oldest = (a.oldest + 1) % a.maximum
}
