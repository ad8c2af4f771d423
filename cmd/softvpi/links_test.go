package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	code    = regexp.MustCompile(`(?m)^ {4}.*$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	mark    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every link of a document to another file, or to a heading, leads somewhere.
func TestLinksOfTheDocuments(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := filepath.Glob("../../docs/spec/*.md")
	if err != nil || len(spec) == 0 {
		t.Fatal("docs/spec: no documents ", err)
	}
	documents = append(append(documents, spec...), "../../README.md", "../../examples/container/README.md")
	for _, from := range documents {
		text := contents(t, from)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			to := from
			if file != "" {
				to = filepath.Join(filepath.Dir(from), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: (%s): %v", from, m[1], err)
			} else if anchor != "" && !anchors(contents(t, to))[anchor] {
				t.Errorf("%s: (%s): there is no such heading", from, m[1])
			}
		}
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors returns the names by which links refer to the headings of a text.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		names[strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return names
}
