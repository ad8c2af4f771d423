package mlxtool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// decodes checks that decode shows the two sets of state dumps of each adapter in a directory, with the connected queue pairs, and the
// one of the WinOF port that came up.
func (g *rig) decodes(dir string) {
	g.t.Helper()
	out := g.ok("dbg", "decode", dir, "qp", "port", "counter")
	for part, times := range map[string]int{"File: ": 5, "Changes: ": 10, "| name ": 5 + 5, "state  ": 4, "| RTS ": 4, "Transport.": -1} {
		if n := strings.Count(out, part); n != times && times >= 0 || n == 0 {
			g.t.Errorf("%q is shown %d times, want %d in\n%s", part, n, times, out)
		}
	}
	rows := 0
	for _, t := range g.tables("dbg", "decode", dir, "PORT") {
		for _, row := range t.Rows {
			if row["field"] == "name" && (row["value"] == "left" || row["value"] == "right") {
				rows++
			}
		}
	}
	if rows != 5 {
		g.t.Errorf("%d tables of ports, want 5", rows)
	}
}

// TestDecodeRefuses: what is no dump is refused with what is wrong with it, and a wrong table with those that there are.
func TestDecodeRefuses(t *testing.T) {
	g := &rig{t: t}
	dir, empty := t.TempDir(), t.TempDir()
	damaged := filepath.Join(dir, "crspace_0.log")
	if err := os.WriteFile(damaged, []byte("0x00000000 0x53565052\n0x00000004 0x1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"dbg", "decode"}, tool.Usage, "the directory is missing"},
		{[]string{"dbg", "decode", empty}, tool.Usage, "has no files crspace_<n>.log"},
		{[]string{"dbg", "decode", filepath.Join(empty, "none")}, tool.Usage, "no such file"},
		{[]string{"dbg", "decode", dir}, tool.Failure, "crspace_0.log: line 2: "},
		{[]string{"dbg", "decode", damaged}, tool.Failure, "crspace_0.log: line 2: "},
		{[]string{"dbg", "decode", dir, "WQE"}, tool.Usage, `table is "WQE"; there are: PORT, GID, PKEY, QP, CQ, SRQ, EQ, MR, SCHED, COUNTER`},
	} {
		if status, _, stderr := g.call(c.args...); status != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, %s; want %d, %s", c.args, status, stderr, c.status, c.want)
		}
	}
}
