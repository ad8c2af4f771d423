package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// part is a part of the table of contents.
type part struct {
	Title   string
	Entries []entry
}

// entry is a page in the table of contents.
type entry struct{ Title, Source string }

var summaryLine = regexp.MustCompile(`^- \[([^\]]+)\]\(([^)#]+\.md)\)$`)

// parseContents reads a table of contents in the form of mdBook's SUMMARY.md: headings of parts, and lists of links below them. Sources
// are relative to the file's directory.
func parseContents(text, dir string) (parts []part, err error) {
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " ")
		if title, ok := strings.CutPrefix(line, "# "); ok {
			parts = append(parts, part{Title: title})
			continue
		}
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		m := summaryLine.FindStringSubmatch(line)
		switch {
		case m == nil:
			return nil, fmt.Errorf("line %d of the contents is %q; allowed: - [title](file.md)", i+1, line)
		case len(parts) == 0:
			return nil, fmt.Errorf("line %d of the contents is in no part; allowed: behind a line # TITLE", i+1)
		}
		source := path.Join(dir, m[2])
		if seen[source] {
			return nil, fmt.Errorf("line %d of the contents: %s is in them twice", i+1, source)
		}
		seen[source] = true
		p := &parts[len(parts)-1]
		p.Entries = append(p.Entries, entry{m[1], source})
	}
	return parts, nil
}
