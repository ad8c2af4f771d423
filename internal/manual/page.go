// Package manual writes manual pages in the man macros of roff, for man(1) of Linux, macOS and the BSDs.
package manual

import (
	"fmt"
	"io"
	"strings"
)

// Page is a manual page.
type Page struct {
	Name    string // of the program or command, such as "softvpi-up"
	Summary string // in one line, without a full stop
	Version string // of the program
	// Synopsis are command lines, one for each form.
	Synopsis []string
	Sections []Section
}

// Section is one of a page's sections.
type Section struct {
	Title string
	// Text are paragraphs. Terms come behind them, and Verbatim is last, line by line as it is.
	Text     []string
	Terms    []Term
	Verbatim string
}

// Term is an option, a command, a file or whatever else is explained.
type Term struct{ Name, Text string }

// Command returns the number of the section of the manual in which programs are.
const Command = 1

// WriteTo writes the page as roff.
func (p Page) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %d \"\" %s \"SoftVPI\"\n", quoted(strings.ToUpper(p.Name)), Command, quoted(p.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", line(p.Name), line(p.Summary))
	if len(p.Synopsis) > 0 {
		b.WriteString(".SH SYNOPSIS\n.nf\n")
		for _, s := range p.Synopsis {
			b.WriteString(line(s) + "\n")
		}
		b.WriteString(".fi\n")
	}
	for _, s := range p.Sections {
		s.write(&b)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (s Section) write(b *strings.Builder) {
	fmt.Fprintf(b, ".SH %s\n", quoted(s.Title))
	for i, t := range s.Text {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(line(t) + "\n")
	}
	for _, t := range s.Terms {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", line(t.Name), line(t.Text))
	}
	if s.Verbatim == "" {
		return
	}
	b.WriteString(".PP\n.nf\n")
	for l := range strings.Lines(s.Verbatim) {
		b.WriteString(line(strings.TrimRight(l, "\n")) + "\n")
	}
	b.WriteString(".fi\n")
}

// plain are the characters that mean something to roff inside of a line.
var plain = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", "\t", "        ")

// line returns a text as one line of roff that shows it as it is: a point or an apostrophe at the beginning would be a request.
func line(s string) string {
	s = plain.Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return `\&` + s
	}
	return s
}

// quoted returns a text as one argument of a request.
func quoted(s string) string { return `"` + strings.ReplaceAll(line(s), `"`, `\(dq`) + `"` }
