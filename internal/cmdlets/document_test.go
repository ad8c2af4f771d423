package cmdlets

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the documents and golden files")

// TestDocument: the table of commands in docs/powershell.md is made of the table of this package.
func TestDocument(t *testing.T) {
	const path, begin, end = "../../docs/powershell.md", "-update -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("no %q and %q in %s", begin, end, path)
	}
	var b strings.Builder
	b.WriteString(head + begin)
	lines, refused := readLines(t), 0
	for _, l := range lines {
		if strings.Contains(l.outcome, " failed") {
			refused++
		}
	}
	if refused == 0 {
		fmt.Fprintf(&b, "\nEach of the %d lines of the manuals changes, shows or says something, or finds that it is so already; none is refused.\n",
			len(lines))
	} else {
		fmt.Fprintf(&b, "\nOf the %d lines of the manuals %d change, show or say something, or find that it is so already, and %d are refused: their feature\n"+
			"is not in yet, and the message names it.\n", len(lines), len(lines)-refused, refused)
	}
	module := ""
	for _, c := range New(nil, nil).All() {
		if c.Module != module {
			module = c.Module
			fmt.Fprintf(&b, "\n### %s\n\n| command | what it does here |\n|---|---|\n", module)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, strings.TrimSpace(c.Help+" "+c.Note))
	}
	b.WriteString("\n" + end + tail)
	if b.String() == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: go test ./internal/cmdlets -run Document -update", path)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTable: commands and parameters are described, names are unique, and positions do not collide within a set.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, c := range New(nil, nil).All() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if names[strings.ToLower(n)] {
				t.Errorf("%s stands twice", n)
			}
			names[strings.ToLower(n)] = true
		}
		if c.Help == "" || c.Module == "" || !strings.HasSuffix(c.Help, ".") {
			t.Errorf("%s: help %q, module %q", c.Name, c.Help, c.Module)
		}
		params := map[string]bool{}
		positions := map[string]bool{}
		for _, p := range c.Params {
			for _, n := range append([]string{p.Name}, p.Aliases...) {
				if params[strings.ToLower(n)] {
					t.Errorf("%s: -%s stands twice", c.Name, n)
				}
				params[strings.ToLower(n)] = true
			}
			if p.Help == "" {
				t.Errorf("%s -%s has no help", c.Name, p.Name)
			}
			if at := fmt.Sprint(p.Position, p.Set); p.Position > 0 && positions[at] {
				t.Errorf("%s -%s: position %d is taken", c.Name, p.Name, p.Position)
			} else {
				positions[at] = true
			}
		}
	}
}
