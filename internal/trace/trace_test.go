package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type plain struct{}

func (plain) Name(r Record) (string, map[string]any) {
	return fmt.Sprintf("event %d", r.Code), map[string]any{"a": r.A}
}
func (plain) Adapter(i int16) string { return fmt.Sprintf("adapter \"%d\"", i) }

func begin(t testing.TB, cfg Config) *Session {
	t.Helper()
	s, err := Start(cfg, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRingIsCircular: a ring takes no more memory than its size, and has the latest records in order.
func TestRingIsCircular(t *testing.T) {
	if n := unsafe.Sizeof(Record{}); n != recordBytes {
		t.Fatalf("a record has %d bytes, want %d", n, recordBytes)
	}
	r := newRing(Uniform(Verbose), 3*recordBytes*chunkRecords)
	for _, n := range []int{10, chunkRecords, 3 * chunkRecords, 7*chunkRecords + 5} {
		for int(r.total) < n {
			r.Add(Record{A: r.total})
		}
		list := r.records()
		if want := min(n, 3*chunkRecords); len(list) != want || len(r.chunks) > 3 {
			t.Fatalf("after %d records %d are kept in %d chunks, want %d", n, len(list), len(r.chunks), want)
		}
		for i, x := range list {
			if want := uint64(n - len(list) + i); x.A != want {
				t.Fatalf("after %d records, record %d is %d, want %d", n, i, x.A, want)
			}
		}
	}
}

// TestLevels: a record is taken if its component's level is as high, and a session that is off takes none.
func TestLevels(t *testing.T) {
	levels := Uniform(Warning)
	levels[Commands] = Verbose
	s := begin(t, Config{Levels: levels})
	for _, c := range []Component{Driver, Commands} {
		for l := Error; l <= Verbose; l++ {
			s.Add(Record{Component: c, Level: l, A: 1})
			if got, want := s.Loop.Wants(c, l), l <= levels[c]; got != want {
				t.Errorf("%v at %v: %v, want %v", c, l, got, want)
			}
		}
	}
	if u := s.Usage(); u.Records != 2+4 || u.Overwritten != 0 {
		t.Errorf("%+v, want 6 records", u)
	}
	var none *Session
	var ring *Ring
	if none.Add(Record{}); ring.Wants(Driver, Error) {
		t.Error("no ring wants a record")
	}
}

// TestSizes: a session of a size that is not allowed is refused with those that are.
func TestSizes(t *testing.T) {
	for _, n := range []int{-1, 1, LeastBytes - 1, MostBytes + 1} {
		if _, err := Start(Config{Bytes: n}, time.Time{}); err == nil || !strings.Contains(err.Error(), "allowed: 1048576 to") {
			t.Errorf("%d: %v", n, err)
		}
	}
	for name, want := range map[string]bool{"verbose": true, "4": true, "Error": true, "5": false, "": false} {
		if _, err := ParseLevel(name); (err == nil) != want {
			t.Errorf("level %q: %v", name, err)
		}
	}
	if _, err := ParseComponent("wire"); err == nil || !strings.Contains(err.Error(), "driver, command, loop, transport, cm, link") {
		t.Error(err)
	}
}

// TestJSON: the trace has the structure that the Trace Event Format asks for (object form, phases X, i and M, times in us, scopes of
// instants, names of processes and threads), in the order of time.
func TestJSON(t *testing.T) {
	s := begin(t, Config{Levels: Uniform(Verbose)})
	s.Loop.Add(Record{At: 3000, Took: 1500, Component: Loop, Adapter: 1, Level: Verbose, Code: 7, A: 9})
	s.Add(Record{At: 1000, Component: Driver, Adapter: -1, Level: Error, Code: 5})
	var out, lines bytes.Buffer
	if n, err := WriteJSON(&out, s.Records(func(f func()) { f() }), plain{}, LeastBytes); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	var doc struct {
		Events []map[string]any `json:"traceEvents"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	phases, processes := map[string]int{}, map[float64]string{}
	for _, e := range doc.Events {
		phase := e["ph"].(string)
		phases[phase]++
		switch phase {
		case "M":
			if e["name"] == "process_name" {
				processes[e["pid"].(float64)] = e["args"].(map[string]any)["name"].(string)
			}
		case "i":
			if e["s"] != "t" || e["ts"] != 0.0 || e["name"] != "event 5" || processes[e["pid"].(float64)] != "driver" {
				t.Errorf("%v", e)
			}
		case "X":
			if e["ts"] != 2.0 || e["dur"] != 1.5 || e["cat"] != "loop" || processes[e["pid"].(float64)] != `adapter "1"` {
				t.Errorf("%v", e)
			}
		}
	}
	if phases["X"] != 1 || phases["i"] != 1 || phases["M"] != 2*(1+int(Components)) {
		t.Errorf("phases %v", phases)
	}
	if n, err := WriteText(&lines, s.Records(func(f func()) { f() }), plain{}, LeastBytes); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	want := "1970-01-01T00:00:00.000001000Z error driver \"-\" event 5 {\"a\":0}\n" +
		"1970-01-01T00:00:00.000003000Z verbose loop \"adapter \\\"1\\\"\" event 7 took 1.5µs {\"a\":9}\n"
	if lines.String() != want {
		t.Errorf("%s, want %s", lines.String(), want)
	}
	out.Reset()
	if _, err := WriteJSON(&out, nil, plain{}, LeastBytes); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("an empty trace: %v, %s", err, out.String())
	}
}

// BenchmarkWants is what a record costs that is not wanted, and that is.
func BenchmarkWants(b *testing.B) {
	s := begin(b, Config{Levels: Uniform(Information)})
	for name, l := range map[string]Level{"off": Verbose, "on": Information} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s.Loop.Wants(Loop, l) {
					s.Loop.Add(Record{Level: l})
				}
			}
		})
	}
}
