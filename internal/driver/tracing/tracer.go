// Package tracing has the trace session of a driver: one that somebody has started, else the automatic one, and its files
// (WinOF 5.50, 6.8).
package tracing

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/tracing/words"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/trace"
)

// The sessions and the directory of their files are named as the manuals' (WinOF 5.50, 6.8); \SystemRoot\system32 is the state directory.
const (
	// Automatic is the name of the session that runs when nobody has started another.
	Automatic = "Mellanox-Kernel"
	// Directory is where the files of sessions are, below the state directory.
	Directory = "LogFiles/Mlnx"

	automaticFile = "Mellanox-System"
	userSession   = "Mellanox-Trace"
)

// Config are the parameters of a Tracer.
type Config struct {
	Automatic trace.Config // the automatic session but for its name, which has been checked
	State     string       // the state directory
	Version   string       // of the program
	Adapters  []string     // their names, by index
	Log       *slog.Logger
}

// Tracer has the driver's trace session.
type Tracer struct {
	cfg     Config
	host    *device.Host // nil: not yet
	session atomic.Pointer[trace.Session]
	mu      sync.Mutex // held while the session is changed or written
	file    *file      // of the session; nil: it has none
}

// New begins the automatic session.
func New(cfg Config) *Tracer {
	t := &Tracer{cfg: cfg}
	t.start()
	return t
}

// start begins the automatic session.
func (t *Tracer) start() {
	cfg := t.cfg.Automatic
	cfg.Name = Automatic
	s, _ := trace.Start(cfg, time.Now())
	t.use(s)
}

func (t *Tracer) use(s *trace.Session) {
	t.session.Store(s)
	if t.host != nil {
		t.host.SetTrace(s.Loop)
	}
}

// Attach lets the loop of the driver's adapters record, too, and begins with the session's file.
func (t *Tracer) Attach(host *device.Host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.host = host
	s := t.session.Load()
	t.use(s)
	t.keepInFile(s)
}

// Session returns the session that runs.
func (t *Tracer) Session() *trace.Session { return t.session.Load() }

// StopMoving ends what moves records on to the session's file: it needs the loop, which ends after it and before Close.
func (t *Tracer) StopMoving() { t.file.stop() }

// Close ends the session, whose loop has ended. keep: what it has is written before, as the manual's is in a file all the time (WinOF
// 5.50, 6.8).
func (t *Tracer) Close(keep bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.file.close()
	if !keep {
		return
	}
	s := t.session.Load()
	if _, _, err := t.write(s, func(f func()) { f() }); err != nil {
		t.cfg.Log.Warn("the trace is not kept", "session", s.Name, "error", err)
	}
}

// Trace implements api's tracing.
func (t *Tracer) Trace(q api.TraceRequest) (out api.TraceStatus, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.session.Load()
	if q.Action != api.TraceStart && (q.Level != "" || len(q.Levels) > 0 || q.Megabytes != 0 || q.File) {
		return out, api.Wrong("action", strconv.Quote(string(q.Action)), "start, with a level, levels, a size or a file")
	}
	switch q.Action {
	case api.TraceStart:
		if s.Name != Automatic {
			return out, api.Wrong("action", `"start"`, "stop, because a trace is running already")
		}
		cfg, err := traceConfig(q)
		if err != nil {
			return out, err
		}
		if s, err = trace.Start(cfg, time.Now()); err != nil {
			return out, api.Wrong("megabytes", strconv.Itoa(q.Megabytes), "1 to 1024")
		}
		if err := t.changeFile(s); err != nil {
			return out, err
		}
		t.use(s)
		return t.status(s), nil
	case api.TraceStop:
		if s.Name == Automatic {
			return out, api.Wrong("action", `"stop"`, "start, or collect: only the automatic session is running")
		}
		out = t.status(s)
		t.start()
		out.Files, out.LeftOut, err = t.write(s, func(f func()) { f() }) // the loop has another
		t.keepInFile(t.session.Load())
		return out, err
	case api.TraceCollect:
		out = t.status(s)
		out.Files, out.LeftOut, err = t.write(s, t.host.Still)
		return out, err
	}
	return out, api.Wrong("action", strconv.Quote(string(q.Action)), "start, stop, collect")
}

// TraceStatus implements api's tracing.
func (t *Tracer) TraceStatus() (api.TraceStatus, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status(t.session.Load()), nil
}

func (t *Tracer) status(s *trace.Session) api.TraceStatus {
	var u trace.Usage
	t.host.Still(func() { u = s.Usage() })
	out := api.TraceStatus{
		Session: s.Name, Automatic: s.Name == Automatic, Started: s.Started, Levels: map[string]string{}, Megabytes: s.Bytes >> 20,
		Bytes: u.Bytes, Records: u.Records, Overwritten: u.Overwritten,
	}
	if f := t.file; f != nil && f.of == s {
		f.move(t.host.Still)
		f.describe(&out)
	}
	for c := range trace.Components {
		out.Levels[c.String()] = s.Levels[c].String()
	}
	return out
}

func traceConfig(q api.TraceRequest) (cfg trace.Config, err error) {
	if q.Megabytes < 0 || q.Megabytes > trace.MostBytes>>20 {
		return cfg, api.Wrong("megabytes", strconv.Itoa(q.Megabytes), "1 to 1024")
	}
	cfg = trace.Config{Name: userSession, Bytes: q.Megabytes << 20, File: q.File}
	var wrong *trace.LevelError
	if cfg.Levels, err = trace.ParseLevels(q.Level, q.Levels); errors.As(err, &wrong) {
		return cfg, api.Wrong(wrong.Field(), strconv.Quote(wrong.Value), wrong.Allowed)
	}
	return cfg, err
}

// traceFormats are the files of a trace, by their suffixes.
var traceFormats = [...]struct {
	suffix string
	write  trace.Writer
}{{".json", trace.WriteJSON}, {".txt", trace.WriteText}}

// writeTrace writes what a session has to its files, none of which has more bytes than the session's buffers may have. It also returns
// how many of the oldest records the first file has no room for.
func (t *Tracer) write(s *trace.Session, still func(func())) (files []string, leftOut int, err error) {
	dir := t.directory()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, err
	}
	list, err := t.file.records(s, still)
	if err != nil {
		return nil, 0, err
	}
	name := fileOf(s)
	for i, f := range traceFormats {
		path := filepath.Join(dir, name+f.suffix)
		n := 0
		write := func(w io.Writer) (err error) {
			n, err = f.write(w, list, t.words(), s.Bytes)
			return err
		}
		if err := wholefile.Stream(path, write); err != nil {
			return nil, 0, err
		}
		if files = append(files, path); i == 0 {
			leftOut = n
		}
	}
	return files, leftOut, nil
}

// directory returns where the files of sessions are.
func (t *Tracer) directory() string { return filepath.Join(t.cfg.State, filepath.FromSlash(Directory)) }

// words gives records their words.
func (t *Tracer) words() words.Adapters { return words.Adapters(t.cfg.Adapters) }

// eventNumbers are the places of events in the catalogue, by source and symbol.
var eventNumbers = sync.OnceValue(func() map[[2]string]uint32 {
	all := map[[2]string]uint32{}
	for i := range catalogue.Events() {
		all[[2]string{string(catalogue.Events()[i].Source), catalogue.Events()[i].Symbol}] = uint32(i)
	}
	return all
})

// Event records an event of the log.
func (t *Tracer) Event(r events.Record) {
	level := map[string]trace.Level{"Error": trace.Error, "Warning": trace.Warning}[r.Severity]
	if level == trace.Off {
		level = trace.Information
	}
	t.session.Load().Add(trace.Record{At: r.Time.UnixNano(), Component: trace.Driver, Level: level,
		Adapter: int16(slices.Index(t.cfg.Adapters, r.Adapter)), Code: eventNumbers()[[2]string{r.Source, r.Symbol}], A: r.Sequence})
}

// Command records a command of a program: one that failed as a warning.
func (t *Tracer) Command(adapter int, op proto.Opcode, r commandlog.Record) {
	level := trace.Information
	if r.Failure != 0 {
		level = trace.Warning
	}
	t.session.Load().Add(trace.Record{At: r.Began.UnixNano(), Took: max(1, int64(r.Took)), Component: trace.Commands, Level: level,
		Adapter: int16(adapter), Code: uint32(op), A: uint64(r.PID), B: uint64(r.Failure)})
}
