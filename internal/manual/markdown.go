package manual

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the page as Markdown, for pages that browsers show.
func (p Page) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", escaped(p.Name), escaped(p.Summary))
	if len(p.Synopsis) > 0 {
		b.WriteString("## SYNOPSIS\n\n" + block(strings.Join(p.Synopsis, "\n")))
	}
	for _, s := range p.Sections {
		s.writeMarkdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Section) writeMarkdown(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n", escaped(s.Title))
	for _, t := range s.Text {
		b.WriteString(escaped(t) + "\n\n")
	}
	if len(s.Terms) > 0 {
		b.WriteString("| | |\n|---|---|\n")
		for _, t := range s.Terms {
			fmt.Fprintf(b, "| **%s** | %s |\n", escaped(t.Name), escaped(t.Text))
		}
		b.WriteString("\n")
	}
	if s.Verbatim != "" {
		b.WriteString(block(s.Verbatim))
	}
}

// block returns lines as a block of code.
func block(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString("    " + strings.TrimRight(l, "\n") + "\n")
	}
	return b.String() + "\n"
}

// escaped returns a text as one line of Markdown that shows it as it is.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|~&$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
