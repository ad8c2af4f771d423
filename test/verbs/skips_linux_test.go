package verbs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// outcome is what became of one of rdma-core's tests, as testdata/rdmacore.py writes it.
type outcome struct{ Test, Result, Why string }

// outcomes are those of a run.
type outcomes []outcome

func (o outcomes) failed() (list outcomes) {
	for _, r := range o {
		if r.Result == "failed" {
			list = append(list, r)
		}
	}
	return list
}

func readReport(file string) (list outcomes, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var r outcome
		if err := d.Decode(&r); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		r.Test = strings.TrimPrefix(r.Test, "tests.")
		list = append(list, r)
	}
}

// skips says which tests are skipped, as testdata/rdmacore does.
type skips struct {
	classes map[string]string // what is missing, by the name of the class
	tests   map[string]skip
}

// skip is one test: its class, and on which kinds of adapters it is skipped (nil: all).
type skip struct {
	class     string
	kinds     []string
	sometimes bool
}

func (s skip) on(kind string) bool { return len(s.kinds) == 0 || slices.Contains(s.kinds, kind) }

func readSkips(t *testing.T) skips {
	t.Helper()
	f, err := os.Open("testdata/rdmacore")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := parseSkips(f)
	if err != nil {
		t.Fatalf("testdata/rdmacore, %v", err)
	}
	return s
}

func parseSkips(r io.Reader) (skips, error) {
	s := skips{map[string]string{}, map[string]skip{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		w := strings.Fields(lines.Text())
		if len(w) == 0 || strings.HasPrefix(w[0], "#") {
			continue
		}
		if err := s.add(w); err != nil {
			return s, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return s, lines.Err()
}

// add takes the words of a line.
func (s *skips) add(w []string) error {
	switch {
	case w[0] == "class" && len(w) > 2:
		s.classes[w[1]] = strings.Join(w[2:], " ")
		return nil
	case w[0] != "skip" || len(w) < 3:
		return fmt.Errorf("%q is neither class NAME WHAT nor skip NAME TEST", strings.Join(w, " "))
	case s.classes[w[1]] == "":
		return fmt.Errorf("no class %q", w[1])
	case s.tests[w[2]].class != "":
		return fmt.Errorf("%s is named twice", w[2])
	}
	x := skip{class: w[1]}
	for _, k := range w[3:] {
		switch k {
		case "loopback", "Ethernet", "InfiniBand":
			x.kinds = append(x.kinds, k)
		case "sometimes":
			x.sometimes = true
		default:
			return fmt.Errorf("%q, want loopback, Ethernet, InfiniBand or sometimes", k)
		}
	}
	s.tests[w[2]] = x
	return nil
}

// judge says what a run on a kind of adapter must not have brought.
func (s skips) judge(kind string, ran outcomes) (complaints []string) {
	seen := map[string]bool{}
	for _, r := range ran {
		seen[r.Test] = true
		x, named := s.tests[r.Test]
		named = named && x.on(kind)
		switch {
		case r.Result == "failed":
			complaints = append(complaints, fmt.Sprintf("%s failed: %s", r.Test, r.Why))
		case r.Result == "skipped" && !named:
			complaints = append(complaints, fmt.Sprintf("%s is skipped (%s), which testdata/rdmacore does not say", r.Test, r.Why))
		case r.Result == "passed" && named && !x.sometimes:
			complaints = append(complaints, fmt.Sprintf("%s passes: take it from testdata/rdmacore", r.Test))
		}
	}
	for _, test := range slices.Sorted(maps.Keys(s.tests)) {
		if s.tests[test].on(kind) && !seen[test] {
			complaints = append(complaints, fmt.Sprintf("testdata/rdmacore names %s, which there is not", test))
		}
	}
	return complaints
}

// summary is the figures of a run, with those skipped by their classes.
func (s skips) summary(kind string, ran outcomes) string {
	count, by := map[string]int{}, map[string]int{}
	for _, r := range ran {
		count[r.Result]++
		if r.Result == "skipped" {
			class := s.tests[r.Test].class
			if class == "" {
				class = "not in the table"
			}
			by[class]++
		}
	}
	classes := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		if by[a] != by[b] {
			return by[b] - by[a]
		}
		return strings.Compare(a, b)
	})
	var list []string
	for _, c := range classes {
		list = append(list, fmt.Sprintf("%d %s", by[c], c))
	}
	return fmt.Sprintf("rdma-core's tests (%s): %d passed, %d failed, %d skipped: %s", kind, count["passed"], count["failed"],
		count["skipped"], strings.Join(list, ", "))
}

const someSkips = "# comment\n\nclass vendor for others\nclass dice now and then\nskip vendor a.B.c\nskip vendor a.B.d InfiniBand\n" +
	"skip dice a.B.e sometimes\n"

// Every result that differs from the table is reported, in both directions.
func TestSkips(t *testing.T) {
	s, err := parseSkips(strings.NewReader(someSkips))
	if err != nil {
		t.Fatal(err)
	}
	as := func(c, d, e string) outcomes {
		return outcomes{{"a.B.c", c, "why"}, {"a.B.d", d, "why"}, {"a.B.e", e, "why"}}
	}
	for _, c := range []struct {
		name, kind string
		ran        outcomes
		want       []string // parts of the complaints
	}{
		{"as the table says", "InfiniBand", as("skipped", "skipped", "skipped"), nil},
		{"by chance", "InfiniBand", as("skipped", "skipped", "passed"), nil},
		{"another kind", "Ethernet", as("skipped", "passed", "passed"), nil},
		{"not on this kind", "Ethernet", as("skipped", "skipped", "passed"), []string{"a.B.d is skipped (why)"}},
		{"passes now", "loopback", as("passed", "passed", "passed"), []string{"a.B.c passes"}},
		{"failed", "loopback", as("failed", "passed", "failed"), []string{"a.B.c failed: why", "a.B.e failed: why"}},
		{"a new one", "Ethernet", append(as("skipped", "passed", "passed"), outcome{"a.B.x", "skipped", "why"}), []string{"a.B.x is skipped"}},
		{"one less", "Ethernet", as("skipped", "passed", "passed")[1:], []string{"names a.B.c"}},
	} {
		got := s.judge(c.kind, c.ran)
		same := slices.EqualFunc(got, c.want, func(g, w string) bool { return strings.Contains(g, w) })
		if !same {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	want := "rdma-core's tests (InfiniBand): 1 passed, 0 failed, 2 skipped: 2 vendor"
	if got := s.summary("InfiniBand", as("skipped", "skipped", "passed")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A line that means nothing is an error that names it.
func TestSkipsErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"skip vendor", "neither class"}, {"skp vendor a.B.x", "neither class"}, {"skip other a.B.x", `no class "other"`},
		{"skip vendor a.B.c", "named twice"}, {"skip vendor a.B.x ethernet", `"ethernet", want loopback`},
	} {
		_, err := parseSkips(strings.NewReader(someSkips + c.line + "\n"))
		if err == nil || !strings.Contains(err.Error(), "line 8: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want line 8 and %s", c.line, err, c.want)
		}
	}
}
