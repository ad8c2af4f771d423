package mlxtool

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// reads runs the reader of another language over traces, and returns what it says of each, and whether all are good.
func reads(t *testing.T, files ...string) (said map[string]string, good bool) {
	t.Helper()
	out, err := exec.Command("python3", append([]string{filepath.Join("testdata", "traceevents.py")}, files...)...).CombinedOutput()
	said = map[string]string{}
	for line := range strings.Lines(string(out)) {
		file, what, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("Python says %s", out)
		}
		said[file] += what
	}
	return said, err == nil
}

// TestTrace_OtherReader: Python's JSON reader reads every event of a trace of each component, finds in each what the Trace Event Format
// asks for, and counts as many of them as our own.
func TestTrace_OtherReader(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "python3")
	g := start(t)
	g.ok("dbg", "trace", "start", "verbose")
	server, client := g.connect()
	for range 20 {
		if _, err := client.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(server, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	g.ok("dbg", "restart", "left")
	file := fmt.Sprint(g.tables("dbg", "trace", "stop")[0].Rows[0]["file"])
	want := map[string]int{}
	for key, n := range g.traced(file) {
		words := strings.Fields(key)
		if phase := words[len(words)-1]; phase == "M" {
			want[phase] += n
		} else {
			want[words[0]+" "+phase] += n
		}
	}
	var lines []string
	for key, n := range want {
		lines = append(lines, fmt.Sprintln(key, n))
	}
	slices.Sort(lines)
	if said, good := reads(t, file); !good || said[file] != strings.Join(lines, "") || len(lines) < 6 {
		t.Errorf("Python reads %s, want %s", said, strings.Join(lines, ""))
	}
}

// TestTrace_OtherReaderFindsWhatIsWrong: the reader, by which traces are judged, fails on each fault that it is there to find.
func TestTrace_OtherReaderFindsWhatIsWrong(t *testing.T) {
	systemtest.Mark(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	const good = `{"displayTimeUnit":"ns","traceEvents":[
{"name":"process_name","ph":"M","ts":0,"pid":1,"tid":0,"args":{"name":"driver"}},
{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":2,"args":{"name":"loop"}},
{"name":"turn","cat":"loop","ph":"X","ts":1,"dur":0.5,"pid":1,"tid":2},
{"name":"up","cat":"loop","ph":"i","ts":2,"s":"t","pid":1,"tid":2}]}`
	cases := []struct{ from, to, want string }{
		{"", "", "M 2\nloop X 1\nloop i 1\n"},
		{`"up"`, `""`, "event 3: name"}, {`"ph":"X"`, `"ph":"B"`, "event 2: ph"}, {`"ts":2`, `"ts":0.5`, "event 3: ts is 0.5 after 1"},
		{`"ts":2`, `"ts":NaN`, "NaN"}, {`"ts":2`, `"ts":"2"`, "event 3: ts"}, {`"dur":0.5,`, ``, "event 2: dur"},
		{`"s":"t",`, ``, "event 3: s"}, {`"pid":1,"tid":2}]`, `"pid":1,"tid":3}]`, "no thread_name"}, {`"tid":0`, `"tid":"0"`, "event 0: tid"},
		{`"pid":1,"tid":2}]`, `"pid":4,"tid":2}]`, "no process_name"}, {`"cat":"loop","ph":"i"`, `"ph":"i"`, "event 3: cat"},
		{`"ns"`, `"s"`, "displayTimeUnit"}, {`}]}`, `},]}`, "Expecting"}, {`"dur":0.5`, `"dur":0.5,"dur":1`, "twice"},
	}
	var files []string
	for i, c := range cases {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.json", i)))
		if err := os.WriteFile(files[i], []byte(strings.Replace(good, c.from, c.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, all := reads(t, files...)
	if all {
		t.Error("the status says that all are good")
	}
	for i, c := range cases {
		if !strings.Contains(said[files[i]], c.want) {
			t.Errorf("%s in place of %s: %s; want %s", c.to, c.from, said[files[i]], c.want)
		}
	}
	if said, good := reads(t, files[0]); !good || said[files[0]] != cases[0].want {
		t.Errorf("the good one: %s", said)
	}
}
