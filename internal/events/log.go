// Package events is the driver's event log: events of the catalogue, raised as typed values, kept on disk
// within a size limit, and read by number, so that slow readers cost nothing. A log survives crashes, full
// disks and unwritable directories: then it keeps the latest events in memory and says so.
package events

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Config configures a Log.
type Config struct {
	// Directory of the log's files, which it creates. Empty: the log is in memory only.
	Directory string
	// MaxBytes limits the total size of the files; 0: 16 MiB. The oldest events make room.
	MaxBytes int64
	// Burst is how often an event of an adapter is written within Window before repeats are only counted;
	// 0: 20.
	Burst int
	// Window is the time over which repeats are counted; 0: one minute.
	Window time.Duration
	// Sinks are called for every event that is written, for example to pass it to a system log. They must
	// not block.
	Sinks []func(Record)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Log receives the log's own problems; nil: nobody does.
	Log *slog.Logger

	create func(path string) (file, error) // for tests
}

const (
	defaultBytes = 16 << 20
	// recentKept is how many events are kept in memory, for readers that follow and for when nothing can
	// be written.
	recentKept = 1024
)

// Log is an event log. Its methods may be called concurrently.
type Log struct {
	cfg Config

	mu     sync.Mutex
	store  *store // nil: in memory only
	next   uint64
	recent []Record
	unkept int   // how many of the latest events are not on disk
	lost   error // why; nil while everything is on disk
	limit  limiter
	news   chan struct{} // closed and replaced with every event
	closed bool

	sync chan struct{}
	wg   sync.WaitGroup
}

// Open opens the log in a directory. It always returns a usable log; a problem with the directory becomes
// an event in it, and Kept's error.
func Open(cfg Config) *Log {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultBytes
	}
	if cfg.Burst <= 0 {
		cfg.Burst = 20
	}
	if cfg.Window <= 0 {
		cfg.Window = time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.create == nil {
		cfg.create = createFile
	}
	l := &Log{cfg: cfg, next: 1, news: make(chan struct{}), sync: make(chan struct{}, 1), limit: limiter{burst: cfg.Burst,
		window: cfg.Window}}
	found := l.openStore()
	l.wg.Add(1)
	go l.background()
	for _, d := range found {
		l.Raise(0, LogRepaired{d.file, d.bytes})
	}
	return l
}

func (l *Log) openStore() []damage {
	if l.cfg.Directory == "" {
		l.lost = errors.New("the log has no directory")
		return nil
	}
	s, last, found, err := openStore(l.cfg.Directory, l.cfg.MaxBytes, l.cfg.create)
	l.recent = last
	if n := len(last); n > 0 {
		l.next = last[n-1].Sequence + 1
	}
	l.store = s
	if err != nil {
		l.mu.Lock()
		l.fail(err)
		l.mu.Unlock()
	}
	return found
}

// Raise adds an event to the log. g is the generation of the adapter that it is about, 0 for the default
// and for events of no adapter; an event that adapters of that generation do not report is ignored. Raise
// never fails: what cannot be written stays in memory for a while.
func (l *Log) Raise(g catalogue.Generation, e Event) {
	r, err := newRecord(g, e)
	if errors.Is(err, errOtherGeneration) {
		return
	}
	if err != nil { // the tests of this package find these
		l.cfg.Log.Error("event", "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	now := l.cfg.Now()
	l.tellRepeats(l.limit.expired(now))
	if !l.limit.admit(repeatKey{r.Source, r.ID, r.Adapter}, now) {
		return
	}
	l.add(r, now)
}

// tellRepeats adds the events that say what was suppressed.
func (l *Log) tellRepeats(all []repeats) {
	for _, x := range all {
		r, err := newRecord(0, Repeated{x.key.source, Hex(x.key.id), x.held, uint64(l.cfg.Window / time.Second)})
		if err == nil {
			r.Adapter = x.key.adapter
			l.add(r, l.cfg.Now())
		}
	}
}

// add numbers an event, stores it, and wakes readers.
func (l *Log) add(r Record, now time.Time) {
	r.Sequence, r.Time = l.next, now.Round(0).UTC()
	l.next++
	l.recent = append(l.recent, r)
	if len(l.recent) >= 2*recentKept {
		l.recent = append([]Record(nil), l.recent[len(l.recent)-recentKept:]...)
	}
	l.unkept = min(l.unkept+1, len(l.recent))
	l.flush()
	for _, sink := range l.cfg.Sinks {
		sink(r)
	}
	close(l.news)
	l.news = make(chan struct{})
}

// flush writes what is not on disk yet.
func (l *Log) flush() {
	if l.store == nil {
		return
	}
	for l.unkept > 0 {
		r := &l.recent[len(l.recent)-l.unkept]
		b, err := r.encode()
		if err == nil {
			err = l.store.append(r.Sequence, appendFrame(nil, b))
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.unkept--
	}
	l.lost = nil
	select {
	case l.sync <- struct{}{}:
	default:
	}
}

// fail notes that nothing can be stored, and reports it once.
func (l *Log) fail(err error) {
	first := l.lost == nil
	l.lost = err
	if !first {
		return
	}
	l.cfg.Log.Warn("events are not kept", "directory", l.cfg.Directory, "error", err)
	r, e := newRecord(0, NothingKept{"The event log", l.cfg.Directory, err})
	if e == nil {
		l.add(r, l.cfg.Now())
	}
}

// Kept returns nil while every event is on disk, and otherwise the reason.
func (l *Log) Kept() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// background syncs what is written, and reports repeats whose window is over.
func (l *Log) background() {
	defer l.wg.Done()
	t := time.NewTicker(max(l.cfg.Window/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case _, ok := <-l.sync:
			if !ok {
				return
			}
			l.mu.Lock()
			tail := l.store.tail
			l.mu.Unlock()
			if tail != nil {
				_ = tail.Sync() // closed meanwhile: it was synced before
			}
		case <-t.C:
			l.mu.Lock()
			if !l.closed {
				l.tellRepeats(l.limit.expired(l.cfg.Now()))
			}
			l.mu.Unlock()
		}
	}
}

// Close reports what is still suppressed, syncs the log and closes its files. Later calls of Raise do
// nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.tellRepeats(l.limit.all())
	l.closed = true
	close(l.sync)
	close(l.news)
	var err error
	if l.store != nil {
		err = l.store.close()
	}
	l.mu.Unlock()
	l.wg.Wait()
	return err
}

// Wait returns nil when the log has an event after that number, or an error when it is closed or ctx ends.
func (l *Log) Wait(ctx context.Context, after uint64) error {
	for {
		l.mu.Lock()
		there, closed, news := l.next > after+1, l.closed, l.news
		l.mu.Unlock()
		if there {
			return nil
		}
		if closed {
			return errClosed
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// errClosed says that the log was closed.
var errClosed = errors.New("the event log is closed")
