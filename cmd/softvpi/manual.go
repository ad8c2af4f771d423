package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/softvpi/softvpi/internal/manual"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type manCmd struct {
	Page      string `arg:"" optional:"" help:"softvpi, a command such as \"link set\" (also softvpi-link-set), or a tool; all that there are if --directory is given."`
	Directory string `help:"Write pages into this directory, which exists, as NAME.1." placeholder:"DIR"`
	Markdown  bool   `help:"Write pages in Markdown, and files as NAME.md."`
}

func (c manCmd) Run(s *session) error {
	pages, err := manualPages(s.ctx)
	if err != nil {
		return err
	}
	if want := strings.ReplaceAll(c.Page, " ", "-"); c.Page != "" {
		pages = pagesNamed(pages, want, "softvpi-"+want)
		if len(pages) == 0 {
			return tool.Usagef("there is no manual page %q; allowed: softvpi, its commands, and the tools of softvpi tools list", c.Page)
		}
	}
	if c.Directory == "" {
		if c.Page == "" {
			return tool.Usagef("want the name of a page, or --directory DIR for all pages")
		}
		return c.write(s.env.Stdout, pages[0])
	}
	ending := fmt.Sprint(manual.Command)
	if c.Markdown {
		ending = "md"
	}
	for _, p := range pages {
		var b bytes.Buffer
		_ = c.write(&b, p) // a buffer takes everything
		if err := os.WriteFile(filepath.Join(c.Directory, p.Name+"."+ending), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.env.Stdout, "%d pages in %s\n", len(pages), c.Directory)
	return err
}

func (c manCmd) write(w io.Writer, p manual.Page) error {
	if c.Markdown {
		return p.WriteMarkdown(w)
	}
	_, err := p.WriteTo(w)
	return err
}

func pagesNamed(pages []manual.Page, names ...string) (out []manual.Page) {
	for _, p := range pages {
		for _, n := range names {
			if strings.EqualFold(p.Name, n) {
				return []manual.Page{p}
			}
		}
	}
	return nil
}

// manualPages returns the pages of softvpi, of its commands, and of the tools. They are made of the tables that parse their command
// lines.
func manualPages(ctx context.Context) ([]manual.Page, error) {
	parser, err := newParser(tool.Env{}, &cli{})
	if err != nil {
		return nil, err
	}
	pages := []manual.Page{topPage(parser.Model.Node)}
	for _, c := range commands(parser.Model.Node) {
		if c.Passthrough { // it parses its line itself, as a tool does
			pages = append(pages, helpPage(pageName(c), oneSentence(c.Help), helpOf(ctx, c.Name)))
			continue
		}
		pages = append(pages, commandPage(c))
	}
	for _, name := range toolNames() {
		pages = append(pages, helpPage(name, toolSummaries[name], helpOf(ctx, name)))
	}
	return pages, nil
}

// commands returns the commands below n that can be run, without those that are hidden.
func commands(n *kong.Node) (out []*kong.Node) {
	for _, c := range n.Children {
		switch {
		case c.Hidden:
		case c.Leaf():
			out = append(out, c)
		default:
			out = append(out, commands(c)...)
		}
	}
	return out
}

func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// oneSentence returns the first sentence of a text, without its full stop.
func oneSentence(s string) string {
	first, _, _ := strings.Cut(s, ". ")
	return strings.TrimSuffix(first, ".")
}

func topPage(n *kong.Node) manual.Page {
	var rows []manual.Term
	for _, c := range commands(n) {
		rows = append(rows, manual.Term{Name: c.FullPath(), Text: c.Help})
	}
	return manual.Page{
		Name: n.Name, Summary: "a software VPI adapter and its driver stack", Version: version(),
		Synopsis: []string{n.Name + " <command> [options]", n.Name + " <tool> [options]"},
		Sections: []manual.Section{
			{Title: "DESCRIPTION", Text: []string{n.Help}},
			{Title: "COMMANDS", Text: []string{"Each has a page of its own, such as softvpi-up(1)."}, Terms: rows},
			{Title: "TOOLS", Text: []string{"Each has a page of its own, and runs by a link with its name, too (softvpi tools install).",
				strings.Join(toolNames(), " ")}},
			{Title: "ENVIRONMENT", Terms: []manual.Term{
				{Name: "SOFTVPI_FUNCTION", Text: "Name of the virtual function that a program is to have: it sees that alone, as its only device."},
				{Name: "SOFTVPI_SOCKET", Text: "Path of the driver's socket; softvpi/driver.sock below $XDG_RUNTIME_DIR if it is not set."},
				{Name: "SOFTVPI_STATE", Text: "Directory of the driver's registry and logs; softvpi below $XDG_STATE_HOME or ~/.local/state if it is not set."},
			}},
			exitSection,
		},
	}
}

var exitSection = manual.Section{Title: "EXIT STATUS", Terms: []manual.Term{
	{Name: "0", Text: "success"}, {Name: "1", Text: "failure"}, {Name: "2", Text: "a command line or configuration that is wrong"},
}}

func commandPage(n *kong.Node) manual.Page {
	p := manual.Page{Name: pageName(n), Summary: oneSentence(n.Help), Version: version(), Synopsis: []string{"softvpi " + n.Summary()},
		Sections: []manual.Section{{Title: "DESCRIPTION", Text: []string{n.Help}}}}
	var args, flags []manual.Term
	for _, a := range n.Positional {
		args = append(args, manual.Term{Name: a.Summary(), Text: a.Help})
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			flags = append(flags, manual.Term{Name: flagName(f), Text: f.Help})
		}
	}
	for _, s := range []manual.Section{{Title: "ARGUMENTS", Terms: args}, {Title: "OPTIONS", Terms: flags}} {
		if len(s.Terms) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	return p
}

func flagName(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if f.IsBool() {
		return name
	}
	return name + "=" + f.FormatPlaceHolder()
}

// toolSummaries are those of tools whose help begins, as that of the tools they are like, with something else.
var toolSummaries = map[string]string{
	"ibportstate": "Shows and changes the state, speed and width of a port's link",
	"osmtest":     "Tests a subnet manager and its subnet administration",
	"saquery":     "Queries the subnet administration",
	"smpquery":    "Asks a port for the attributes of subnet management",
}

// helpPage makes the page of a tool of what it says when it is asked for help: usage lines, one or more sentences, and its options.
// Without a summary the first sentence is it.
func helpPage(name, summary, help string) manual.Page {
	p := manual.Page{Name: name, Summary: summary, Version: version()}
	var body strings.Builder
	for l := range strings.Lines(help) {
		text := strings.TrimSpace(l)
		if usage, ok := strings.CutPrefix(text, "usage: "); ok {
			p.Synopsis = append(p.Synopsis, usage)
			continue
		}
		if body.Len() == 0 && len(p.Synopsis) > 0 && strings.HasPrefix(l, "  ") {
			p.Synopsis = append(p.Synopsis, text)
			continue
		}
		body.WriteString(l)
	}
	if len(p.Synopsis) == 0 {
		p.Synopsis = []string{strings.ReplaceAll(name, "softvpi-", "softvpi ") + " ..."}
	}
	if p.Summary == "" {
		paragraph, _, _ := strings.Cut(strings.TrimLeft(body.String(), "\n"), "\n\n")
		p.Summary = oneSentence(strings.Join(strings.Fields(paragraph), " "))
	}
	p.Sections = []manual.Section{{Title: "DESCRIPTION", Verbatim: strings.Trim(body.String(), "\n") + "\n"}, exitSection}
	return p
}

// helpOf returns what a tool, or a command that parses its line itself, prints when it is asked for help.
func helpOf(ctx context.Context, name string) string {
	var out bytes.Buffer
	start(ctx, tool.Env{Name: "softvpi", Args: []string{name, "-h"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	return out.String()
}
