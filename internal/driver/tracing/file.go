package tracing

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/trace/spool"
)

// moves is how long records of a session with a file are in memory only: what a driver that is killed loses.
const moves = 250 * time.Millisecond

// file moves the records of a session on to its file. The nil file is that of sessions without one.
type file struct {
	of   *trace.Session
	path string
	end  chan struct{} // closed when no more is to be moved
	once sync.Once
	done chan struct{} // closed when nobody moves any more

	mu     sync.Mutex
	file   *os.File
	to     *spool.Writer
	cursor trace.Cursor
	failed error // the file is not written any more
}

// fileOf returns the name of a session's files, without what distinguishes them.
func fileOf(s *trace.Session) string {
	if s.Name == Automatic {
		return automaticFile
	}
	return s.Name
}

// openFile begins the file of a session. The one before is kept beside it: that of a driver that was killed is what it left.
func (t *Tracer) openFile(s *trace.Session) (*file, error) {
	dir := t.directory()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &file{of: s, path: filepath.Join(dir, fileOf(s)+".trace"), end: make(chan struct{}), done: make(chan struct{})}
	if err := os.Rename(f.path, filepath.Join(dir, fileOf(s)+"-previous.trace")); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var err error
	if f.file, err = os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	h := spool.Header{Session: s.Name, Program: t.cfg.Version, Began: s.Started.UnixNano(), Adapters: t.words()}
	if f.to, err = spool.Create(f.file, h, int64(s.Bytes)); err != nil {
		_ = f.file.Close()
		return nil, err
	}
	go f.keep(t.host.Still)
	return f, nil
}

// changeFile ends the file of the session before, and begins that of a session which is to have one.
func (t *Tracer) changeFile(s *trace.Session) (err error) {
	var f *file
	if s.File {
		if f, err = t.openFile(s); err != nil {
			return err
		}
	}
	t.file.finish(t.host.Still)
	t.file = f
	return nil
}

// keepInFile is changeFile for the automatic session, which goes on in memory if it cannot have its file.
func (t *Tracer) keepInFile(s *trace.Session) {
	if err := t.changeFile(s); err != nil {
		t.cfg.Log.Warn("the trace is not kept in a file", "session", s.Name, "error", err)
		t.file.finish(t.host.Still)
		t.file = nil
	}
}

// keep moves records until the session ends.
func (f *file) keep(still func(func())) {
	defer close(f.done)
	tick := time.NewTicker(moves)
	defer tick.Stop()
	for {
		select {
		case <-f.end:
			return
		case <-tick.C:
			f.move(still)
		}
	}
}

// move moves what has been recorded since the last time. A file that cannot be written is given up: its session goes on in memory.
func (f *file) move(still func(func())) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return
	}
	list, lost := f.of.Since(&f.cursor, still)
	f.failed = f.to.Append(list, lost)
}

// describe adds the file to the status of its session.
func (f *file) describe(s *api.TraceStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Kept = f.path
	if f.failed != nil {
		s.KeptProblem = f.failed.Error()
		return
	}
	s.Records, s.Overwritten = f.to.Usage()
}

// records returns what a session has: what is in its file, if it has one that can be read, or else in memory.
func (f *file) records(s *trace.Session, still func(func())) ([]trace.Record, error) {
	if f == nil || f.of != s {
		return s.Records(still), nil
	}
	f.move(still)
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	c, err := spool.Read(f.file, i.Size())
	if err != nil || f.failed == nil {
		return c.Records, err
	}
	list := append(c.Records, s.Records(still)...)
	slices.SortStableFunc(list, func(a, b trace.Record) int { return cmp.Compare(a.At, b.At) })
	return slices.Compact(list), nil // some may be in both
}

// stop ends the mover.
func (f *file) stop() {
	if f == nil {
		return
	}
	f.once.Do(func() { close(f.end) })
	<-f.done
}

// finish ends the file of a session that goes on no longer, with all that it has.
func (f *file) finish(still func(func())) {
	if f == nil {
		return
	}
	f.stop()
	f.move(still)
	_ = f.file.Close()
}

// close is finish at the end of the driver, when the loop has ended.
func (f *file) close() { f.finish(func(fn func()) { fn() }) }
