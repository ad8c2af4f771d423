package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/simulate"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Wrong arguments of simulate end it with status 2 before anything runs, and name what is wrong and what is allowed. What it writes
// does not depend on the number of processors.
func TestSimulate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	if err := os.WriteFile(file, []byte("{\n\"lean\": true, \"duration\": \"200us\",\n\"workload\": {\"size\": \"10KB\"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	simulate := func(args ...string) (status int, out, said string) {
		var stdout, stderr bytes.Buffer
		status = run(t.Context(), tool.Env{Name: "softvpi", Args: append([]string{"simulate"}, args...), Stdin: strings.NewReader(""),
			Stdout: &stdout, Stderr: &stderr})
		return status, stdout.String(), stderr.String()
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"nowhere", "nowhere: not read: "},
		{file + " --set senders=0", "topology.senders is 0; allowed: 1 to 63"},
		{file + " --set senders", `--set is "senders"; allowed: FIELD=VALUE`},
		{file + " --set kmax=9 --sweep kmin=1,x", `switch.kmin is "x"; allowed: 0 B to`},
		{file + " --processors=-1", "--processors is -1; allowed: 1 to 1024"},
		{file + " --json " + dir + "/none/x", "allowed: a file in a directory that there is"},
		{file + " --csv " + file, "allowed: a directory"},
		{file + " --set buffer=70KB --set pfc=3", "several fields; allowed: nic.pfc, switch.pfc"},
		{file + " --set buffer=70KB --set switch.pfc=3", "switch.buffer is 70000; allowed: "},
	} {
		if status, out, said := simulate(strings.Fields(c.args)...); status != tool.Usage || out != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s: status %d, %s%s", c.args, status, out, said)
		}
	}
	for mode, says := range map[string]bool{"active": true, "off": false} {
		status, _, said := simulate(file, "--quiet", "--set", "switch.lacp="+mode)
		if status != tool.Success || strings.Contains(said, "lacp has no effect") != says {
			t.Errorf("lacp %s: status %d, %s", mode, status, said)
		}
	}
	var first []byte
	for _, processors := range []string{"1", "2"} {
		name := filepath.Join(dir, processors)
		status, out, said := simulate(file, "--sweep", "seed=1,2,3", "--sweep", "kmax=10,20", "--processors", processors, "--json", name,
			"--csv", name+".csv", "--html", name+".html")
		if status != tool.Success || strings.Count(out, "seed=") != 6 {
			t.Fatalf("status %d, %s%s", status, out, said)
		}
		all := []byte(out)
		for _, f := range []string{name, name + ".csv/flows.csv", name + ".csv/ports.csv", name + ".csv/queues.csv", name + ".csv/series.csv",
			name + ".csv/throughput.csv", name + ".html"} {
			b, err := os.ReadFile(f)
			if err != nil || len(b) == 0 {
				t.Fatalf("%s: %d bytes, %v", f, len(b), err)
			}
			all = append(all, b...)
		}
		if first == nil {
			first = all
		}
		if !bytes.Equal(all, first) {
			t.Error("with two processors the files are others")
		}
	}
}

// Progress is a line that changes on a terminal, and elsewhere a line now and then; it says how long a run will still take.
func TestSimulate_Progress(t *testing.T) {
	x := simulate.Progress{Now: 250 * time.Microsecond, Of: time.Millisecond, Packets: 3e6}
	const want = " 25.0 %  250µs of 1ms  0.75 M packets/s  12s left"
	if got := progressText(x, 4*time.Second); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		p := newProgress(&session{env: tool.Env{Stderr: &out, Terminal: terminal}}, false)
		p.report(x)
		if first := out.String(); terminal != (first != "") || terminal != strings.HasPrefix(first, "\r") {
			t.Errorf("terminal %v: %q at once", terminal, first)
		}
		p.shown = p.shown.Add(-elsewhere)
		p.report(x)
		if later := out.String(); terminal == strings.HasSuffix(later, "\n") || !strings.Contains(later, "25.0 %") {
			t.Errorf("terminal %v: %q later", terminal, later)
		}
	}
	var out bytes.Buffer
	p := newProgress(&session{env: tool.Env{Stderr: &out, Terminal: true}}, true)
	if p.report(x); out.Len() > 0 {
		t.Errorf("quiet: %q", out.String())
	}
}
