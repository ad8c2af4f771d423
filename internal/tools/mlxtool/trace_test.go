package mlxtool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestTrace: a session that was started has the commands of programs with their times, events and turns of the loop, in a file for
// Perfetto and as text; afterwards the automatic one runs again, which has no turns.
func TestTrace(t *testing.T) {
	g := start(t)
	if row := g.tables("dbg", "trace", "query")[0].Rows[0]; row["levels"] != "cm=information command=information driver=information link=information "+
		"loop=information transport=information" ||
		row["records"] == 0.0 || row["file"] != nil {
		t.Errorf("the automatic session: %v", row)
	}
	g.ok("dbg", "trace", "start", "verbose")
	server, client := g.connect()
	if _, err := client.Write([]byte("traced")); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	g.ok("dbg", "restart", "left")
	rows := g.tables("dbg", "trace", "stop")[0].Rows
	if len(rows) != 2 || rows[0]["file"] != filepath.Join(g.state, "LogFiles", "Mlnx", "Mellanox-Trace.json") {
		t.Fatalf("%v", rows)
	}
	found := g.traced(fmt.Sprint(rows[0]["file"]))
	for _, want := range []string{"command CREATE_QP X", "driver LinkDown i", "loop turn X", "transport state i", "cm connection i", "link link down i"} {
		if found[want] == 0 {
			t.Errorf("the trace has no %q: %v", want, found)
		}
	}
	text, err := os.ReadFile(fmt.Sprint(rows[1]["file"]))
	if err != nil || !strings.Contains(string(text), ` information command "left" CREATE_QP took `) {
		t.Errorf("%v\n%.300s", err, text)
	}
	rows = g.tables("dbg", "trace", "collect")[0].Rows
	if found := g.traced(fmt.Sprint(rows[0]["file"])); found["loop turn X"] != 0 || !strings.HasSuffix(fmt.Sprint(rows[0]["file"]), "Mellanox-System.json") {
		t.Errorf("the automatic trace %v has %v", rows[0]["file"], found)
	}
}

// traced returns how many events of each category, name and phase a trace has; their times must not go back.
func (g *rig) traced(file string) map[string]int {
	g.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		g.t.Fatal(err)
	}
	var doc struct {
		Events []struct {
			Name, Cat, Ph string
			Ts, Dur       float64
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		g.t.Fatal(err)
	}
	found, last := map[string]int{}, 0.0
	for _, e := range doc.Events {
		found[e.Cat+" "+e.Name+" "+e.Ph]++
		if e.Ph == "M" {
			continue
		}
		if e.Ts < last || e.Ph == "X" && e.Dur <= 0 {
			g.t.Errorf("%+v after %v", e, last)
		}
		last = e.Ts
	}
	return found
}

// TestTraceRefuses: what cannot be done to a trace is refused with what can.
func TestTraceRefuses(t *testing.T) {
	g := start(t)
	for _, c := range []struct{ line, want string }{
		{"", "what is to be done is missing"}, {"begin", "is not start, stop, collect, query or read"}, {"query now", `unexpected argument "now"`},
		{"start loud", "allowed: off, error, warning, information, verbose"}, {"start error wire=error", "driver, command, loop"},
		{"start error verbose", `unexpected argument "verbose"`}, {"start error loop=9", "levels.loop"}, {"stop", "only the automatic session"},
	} {
		status, _, stderr := g.call(append([]string{"dbg", "trace"}, strings.Fields(c.line)...)...)
		if status != tool.Usage && status != tool.Failure || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %s; want %s", c.line, status, stderr, c.want)
		}
	}
	g.ok("dbg", "trace", "start")
	if status, _, stderr := g.call("dbg", "trace", "start"); status == tool.Success || !strings.Contains(stderr, "running already") {
		t.Errorf("a second session: status %d, %s", status, stderr)
	}
}
