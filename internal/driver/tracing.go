package driver

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/tracewords"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/trace"
)

// The sessions and the directory of their files are named as the manuals' (WinOF 5.50, 6.8); \SystemRoot\system32 is the state directory.
const (
	automaticSession = "Mellanox-Kernel"
	automaticFile    = "Mellanox-System"
	userSession      = "Mellanox-Trace"
	traceDirectory   = "LogFiles/Mlnx"
)

// tracer has the driver's trace session: one that somebody has started, else the automatic one.
type tracer struct {
	session atomic.Pointer[trace.Session]
	mu      sync.Mutex // held while the session is changed or written
	file    *traceFile // of the session; nil: it has none
}

// startTrace begins the automatic session, as the configuration has it.
func (d *Driver) startTrace() {
	cfg := d.cfg.Trace.Session() // has been checked
	cfg.Name = automaticSession
	s, _ := trace.Start(cfg, time.Now())
	d.useTrace(s)
}

// keepTrace writes what the running session has when the driver ends: the manual's is in a file all the time (WinOF 5.50, 6.8). Only
// a driver that has its own process does; others lie beside the program that shows what happens.
func (d *Driver) keepTrace() {
	d.tracer.mu.Lock()
	defer d.tracer.mu.Unlock()
	defer d.tracer.file.close()
	if !d.own || !d.up {
		return
	}
	s := d.tracer.session.Load()
	if _, _, err := d.writeTrace(s, func(f func()) { f() }); err != nil { // the loop has ended
		d.log.Warn("the trace is not kept", "session", s.Name, "error", err)
	}
}

func (d *Driver) useTrace(s *trace.Session) {
	d.tracer.session.Store(s)
	if d.host != nil {
		d.host.SetTrace(s.Loop)
	}
}

// Trace implements api's tracing.
func (d *Driver) Trace(q api.TraceRequest) (out api.TraceStatus, err error) {
	d.tracer.mu.Lock()
	defer d.tracer.mu.Unlock()
	s := d.tracer.session.Load()
	if q.Action != api.TraceStart && (q.Level != "" || len(q.Levels) > 0 || q.Megabytes != 0 || q.File) {
		return out, api.Wrong("action", strconv.Quote(string(q.Action)), "start, with a level, levels, a size or a file")
	}
	switch q.Action {
	case api.TraceStart:
		if s.Name != automaticSession {
			return out, api.Wrong("action", `"start"`, "stop, because a trace is running already")
		}
		cfg, err := traceConfig(q)
		if err != nil {
			return out, err
		}
		if s, err = trace.Start(cfg, time.Now()); err != nil {
			return out, api.Wrong("megabytes", strconv.Itoa(q.Megabytes), "1 to 1024")
		}
		if err := d.changeTraceFile(s); err != nil {
			return out, err
		}
		d.useTrace(s)
		return d.traceStatus(s), nil
	case api.TraceStop:
		if s.Name == automaticSession {
			return out, api.Wrong("action", `"stop"`, "start, or collect: only the automatic session is running")
		}
		out = d.traceStatus(s)
		d.startTrace()
		out.Files, out.LeftOut, err = d.writeTrace(s, func(f func()) { f() }) // the loop has another
		d.keepInFile(d.tracer.session.Load())
		return out, err
	case api.TraceCollect:
		out = d.traceStatus(s)
		out.Files, out.LeftOut, err = d.writeTrace(s, d.host.Still)
		return out, err
	}
	return out, api.Wrong("action", strconv.Quote(string(q.Action)), "start, stop, collect")
}

// TraceStatus implements api's tracing.
func (d *Driver) TraceStatus() (api.TraceStatus, error) {
	d.tracer.mu.Lock()
	defer d.tracer.mu.Unlock()
	return d.traceStatus(d.tracer.session.Load()), nil
}

func (d *Driver) traceStatus(s *trace.Session) api.TraceStatus {
	var u trace.Usage
	d.host.Still(func() { u = s.Usage() })
	out := api.TraceStatus{
		Session: s.Name, Automatic: s.Name == automaticSession, Started: s.Started, Levels: map[string]string{}, Megabytes: s.Bytes >> 20,
		Bytes: u.Bytes, Records: u.Records, Overwritten: u.Overwritten,
	}
	if f := d.tracer.file; f != nil && f.of == s {
		f.move(d.host.Still)
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
func (d *Driver) writeTrace(s *trace.Session, still func(func())) (files []string, leftOut int, err error) {
	dir := filepath.Join(d.cfg.State, filepath.FromSlash(traceDirectory))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, err
	}
	list, err := d.tracer.file.records(s, still)
	if err != nil {
		return nil, 0, err
	}
	name := fileOf(s)
	for i, f := range traceFormats {
		path := filepath.Join(dir, name+f.suffix)
		n := 0
		write := func(w io.Writer) (err error) {
			n, err = f.write(w, list, d.traceWords(), s.Bytes)
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

// traceWords gives records their words.
func (d *Driver) traceWords() tracewords.Adapters {
	var names tracewords.Adapters
	for i := range d.cfg.Adapters {
		names = append(names, d.cfg.Adapters[i].Name)
	}
	return names
}

// eventNumbers are the places of events in the catalogue, by source and symbol.
var eventNumbers = sync.OnceValue(func() map[[2]string]uint32 {
	all := map[[2]string]uint32{}
	for i := range catalogue.Events {
		all[[2]string{string(catalogue.Events[i].Source), catalogue.Events[i].Symbol}] = uint32(i)
	}
	return all
})

// traceEvent records an event of the log.
func (d *Driver) traceEvent(r events.Record) {
	s := d.tracer.session.Load()
	if s == nil {
		return
	}
	level := map[string]trace.Level{"Error": trace.Error, "Warning": trace.Warning}[r.Severity]
	if level == trace.Off {
		level = trace.Information
	}
	adapter := int16(-1)
	for i := range d.running {
		if d.running[i].Name == r.Adapter {
			adapter = int16(i)
		}
	}
	s.Add(trace.Record{At: r.Time.UnixNano(), Component: trace.Driver, Level: level, Adapter: adapter,
		Code: eventNumbers()[[2]string{r.Source, r.Symbol}], A: r.Sequence})
}

// traceCommand records a command of a program: one that failed as a warning.
func (d *Driver) traceCommand(adapter int, op proto.Opcode, r commandlog.Record) {
	level := trace.Information
	if r.Failure != 0 {
		level = trace.Warning
	}
	d.tracer.session.Load().Add(trace.Record{At: r.Began.UnixNano(), Took: max(1, int64(r.Took)), Component: trace.Commands, Level: level,
		Adapter: int16(adapter), Code: uint32(op), A: uint64(r.PID), B: uint64(r.Failure)})
}
