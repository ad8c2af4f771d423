package driver

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/tracing"
	"github.com/softvpi/softvpi/internal/trace"
)

// TestTraceFilesKeepTheirSize: of more records than a session of 1 MB has room for the newest are in its buffers, and of those in each
// file, none of which has more than 1 MB. How many are missing from both is said.
func TestTraceFilesKeepTheirSize(t *testing.T) {
	d := start(t, twoAdapters(t))
	defer stop(t, d)
	if _, err := d.Trace(api.TraceRequest{Action: api.TraceStart, Megabytes: 1}); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	s := d.Tracer.Session()
	for i := range most / 20 { // twice as many as the whole session has room for
		s.Add(trace.Record{At: time.Now().UnixNano(), Component: trace.Driver, Level: trace.Error, Adapter: int16(i % 2), A: uint64(i)})
	}
	out, err := d.Trace(api.TraceRequest{Action: api.TraceStop})
	if err != nil {
		t.Fatal(err)
	}
	if out.Bytes > most || out.Overwritten == 0 || out.LeftOut == 0 || out.LeftOut >= out.Records || len(out.Files) != 2 {
		t.Errorf("%+v", out)
	}
	for _, name := range out.Files {
		if i, err := os.Stat(name); err != nil || i.Size() > most || i.Size() < most*9/10 {
			t.Errorf("%s: %v, %+v", name, err, i)
		}
	}
	last := 0.0
	b, err := os.ReadFile(out.Files[0])
	var doc struct {
		Events []struct{ Args struct{ Sequence float64 } } `json:"traceEvents"`
	}
	if err != nil || json.Unmarshal(b, &doc) != nil {
		t.Fatal(err)
	}
	for _, e := range doc.Events {
		last = max(last, e.Args.Sequence)
	}
	if last != most/20-1 {
		t.Errorf("the newest record in the file is %v", last)
	}
}

// TestTraceFromTheStart: the session that runs from the start has the levels and the size of the configuration; one that is started
// later has its own, and when it is stopped the first is there again.
func TestTraceFromTheStart(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Trace = &config.Trace{Level: "off", Levels: map[string]string{"driver": "error"}, Megabytes: 3}
	d := start(t, cfg)
	defer stop(t, d)
	check := func(automatic bool, megabytes int, driver, loop string) {
		t.Helper()
		s, err := d.TraceStatus()
		if err != nil || s.Automatic != automatic || s.Megabytes != megabytes || s.Levels["driver"] != driver || s.Levels["loop"] != loop {
			t.Errorf("%+v, %v", s, err)
		}
	}
	check(true, 3, "error", "off")
	if s, _ := d.TraceStatus(); s.Records != 0 { // the start has no errors
		t.Errorf("%d records at level error", s.Records)
	}
	if _, err := d.Trace(api.TraceRequest{Action: api.TraceStart}); err != nil {
		t.Fatal(err)
	}
	check(false, 100, "information", "information")
	s, err := d.Trace(api.TraceRequest{Action: api.TraceStop})
	if err != nil || len(s.Files) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	check(true, 3, "error", "off")
}

// TestTraceAtTheEnd: a driver that has its own process writes the session that runs when it ends, as the manual's is in a file then
// (WinOF 5.50, 6.8); one in a program of somebody else writes nothing.
func TestTraceAtTheEnd(t *testing.T) {
	for _, own := range []bool{true, false} {
		cfg := twoAdapters(t)
		d := start(t, cfg)
		d.own = own
		stop(t, d)
		found, err := os.ReadDir(cfg.State + "/" + tracing.Directory)
		var names []string
		for _, e := range found {
			names = append(names, e.Name())
		}
		if want := []string{"Mellanox-System.json", "Mellanox-System.txt"}; own && !slices.Equal(names, want) || !own && err == nil {
			t.Errorf("own process %v: %v, %v", own, names, err)
		}
	}
}
