package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/tracing"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/trace/spool"
)

// spooled reads the file of a trace as it is on the disk now.
func spooled(t *testing.T, name string) spool.Contents {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	i, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	c, err := spool.Read(f, i.Size())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// noted reports whether a record of that number is among those of a test.
func noted(c spool.Contents, n uint64) bool {
	for _, r := range c.Records {
		if r.Component == trace.Driver && r.A == n && r.Level == trace.Error {
			return true
		}
	}
	return false
}

// TestTraceFile: of the automatic session and of one that is started later the records are in a file without anybody's request, as a
// driver that is killed leaves them; the file of the driver before is kept beside it, and what is collected comes from the file.
func TestTraceFile(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Trace = &config.Trace{File: true, Megabytes: 1}
	d := start(t, cfg)
	dir := filepath.Join(cfg.State, tracing.Directory)
	automatic, other := filepath.Join(dir, "Mellanox-System.trace"), filepath.Join(dir, "Mellanox-Trace.trace")
	note := func(n uint64) {
		d.Tracer.Session().Add(trace.Record{At: time.Now().UnixNano(), Component: trace.Driver, Level: trace.Error, Adapter: 1, A: n})
	}
	note(1 << 40)
	await.Eventually(t, "the record is in the file", func() bool { return noted(spooled(t, automatic), 1<<40) })
	if c := spooled(t, automatic); c.Session != tracing.Automatic || len(c.Adapters) != 2 || c.Damaged != 0 {
		t.Errorf("%+v", c.Header)
	}
	if _, err := d.Trace(api.TraceRequest{Action: api.TraceStart, Megabytes: 1, File: true}); err != nil {
		t.Fatal(err)
	}
	const many = 300_000 // more than the memory of 1 MB, and than the file
	for n := range uint64(many) {
		note(n)
	}
	s, err := d.TraceStatus()
	if err != nil || s.Kept != other || s.KeptProblem != "" || s.Overwritten == 0 || s.Records == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if i, err := os.Stat(other); err != nil || i.Size() > 1<<20 {
		t.Errorf("%v, %v", i, err)
	}
	s, err = d.Trace(api.TraceRequest{Action: api.TraceStop})
	if err != nil || len(s.Files) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if text, err := os.ReadFile(s.Files[1]); err != nil || !strings.Contains(string(text), `{"sequence":299999}`) {
		t.Errorf("the newest record is not in %s: %v", s.Files[1], err)
	}
	if !noted(spooled(t, other), many-1) || !noted(spooled(t, filepath.Join(dir, "Mellanox-System-previous.trace")), 1<<40) {
		t.Error("the files of the sessions that have ended do not have their last records")
	}
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	if c := spooled(t, automatic); noted(c, 1<<40) {
		t.Error("the file of a new driver has records of the one before")
	}
}

// TestTraceFileRefused: a session without its file is not started, and the one before goes on; the automatic one goes on in memory.
func TestTraceFileRefused(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Trace = &config.Trace{File: true}
	if err := os.MkdirAll(filepath.Join(cfg.State, "LogFiles"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.State, tracing.Directory), nil, 0o600); err != nil { // where the directory is to be
		t.Fatal(err)
	}
	d := start(t, cfg)
	defer stop(t, d)
	if _, err := d.Trace(api.TraceRequest{Action: api.TraceStart, File: true}); err == nil {
		t.Error("a session starts without its file")
	}
	if s, err := d.TraceStatus(); err != nil || !s.Automatic || s.Kept != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := d.Trace(api.TraceRequest{Action: api.TraceCollect, File: true}); err == nil {
		t.Error("collect takes a file")
	}
}
