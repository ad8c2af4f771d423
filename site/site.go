package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// The names of what is made rather than read.
const (
	readme   = "README.md"
	contents = "docs/SUMMARY.md"
	manIndex = "man/index.md"
	apiPage  = "docs/api-reference.md"
)

// site is pages in the making.
type site struct {
	root    fs.FS
	man     fs.FS  // nil: no manual pages
	openapi []byte // nil: no reference of the management interface
	parts   []part

	made   map[string]string // pages that are made rather than read, by source: Markdown
	queue  []string          // sources that are wanted and have no page yet
	wanted map[string]bool
	files  map[string][]byte
	index  []section
}

func newSite(root fs.FS) *site {
	return &site{root: root, made: map[string]string{}, wanted: map[string]bool{}, files: map[string][]byte{}}
}

// build returns the files of the site by their names.
func (s *site) build() (map[string][]byte, error) {
	text, err := fs.ReadFile(s.root, contents)
	if err != nil {
		return nil, err
	}
	if s.parts, err = parseContents(string(text), path.Dir(contents)); err != nil {
		return nil, err
	}
	if err := s.complete(); err != nil {
		return nil, err
	}
	if err := errors.Join(s.addManual(), s.addReference()); err != nil {
		return nil, err
	}
	s.want(readme)
	for _, p := range s.parts {
		for _, e := range p.Entries {
			s.want(e.Source)
		}
	}
	for len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		if err := s.page(next); err != nil {
			return nil, fmt.Errorf("%s: %w", next, err)
		}
	}
	return s.files, s.addSearch()
}

// complete returns an error if the contents leave out a document.
func (s *site) complete() error {
	listed := map[string]bool{contents: true}
	for _, p := range s.parts {
		for _, e := range p.Entries {
			listed[e.Source] = true
		}
	}
	return fs.WalkDir(s.root, path.Dir(contents), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" && !listed[name] {
			return fmt.Errorf("%s leaves out %s", contents, name)
		}
		return err
	})
}

// addManual adds the manual pages, and a page that lists them.
func (s *site) addManual() error {
	if s.man == nil {
		return nil
	}
	names, err := fs.Glob(s.man, "*.md")
	if err != nil || len(names) == 0 {
		return fmt.Errorf("no manual pages: %w", errors.Join(err, fs.ErrNotExist))
	}
	var list strings.Builder
	list.WriteString("# Manual pages\n\nWhat `softvpi man` prints, of every command and tool.\n\n| page | |\n|---|---|\n")
	for _, n := range names {
		text, err := fs.ReadFile(s.man, n)
		if err != nil {
			return err
		}
		s.made["man/"+n] = string(text)
		s.want("man/" + n)
		_, rest, _ := strings.Cut(string(text), "\n\n")
		summary, _, _ := strings.Cut(rest, "\n")
		fmt.Fprintf(&list, "| [%s](%s) | %s |\n", strings.TrimSuffix(n, ".md"), n, summary)
	}
	s.made[manIndex] = list.String()
	s.parts = append(s.parts, part{Title: "Manual", Entries: []entry{{"Manual pages", manIndex}}})
	return nil
}

func (s *site) addReference() error {
	if s.openapi == nil {
		return nil
	}
	text, err := reference(s.openapi)
	if err != nil {
		return err
	}
	s.made[apiPage] = text
	for i := range s.parts {
		for j, e := range s.parts[i].Entries {
			if e.Source == "docs/api.md" {
				s.parts[i].Entries = slices.Insert(s.parts[i].Entries, j+1, entry{"Its requests", apiPage})
				return nil
			}
		}
	}
	return fmt.Errorf("%s does not list docs/api.md, behind which its requests belong", contents)
}

// want asks for the page of a source.
func (s *site) want(source string) {
	if !s.wanted[source] {
		s.wanted[source] = true
		s.queue = append(s.queue, source)
	}
}

// pageOf returns the name of a source's page.
func (s *site) pageOf(source string) string {
	if source == readme {
		return "index.html"
	}
	if d, name := path.Split(source); name == readme {
		return d + "index.html"
	}
	if path.Ext(source) == ".md" {
		return strings.TrimSuffix(source, ".md") + ".html"
	}
	if s.isDirectory(source) {
		return source + "/index.html"
	}
	return source + ".html"
}

func (s *site) isDirectory(source string) bool {
	i, err := fs.Stat(s.root, source)
	return err == nil && i.IsDir()
}

func (s *site) page(source string) error {
	text, err := s.source(source)
	if err != nil {
		return err
	}
	d, err := s.render(source, text)
	if err != nil {
		return err
	}
	name := s.pageOf(source)
	if path.Ext(source) == ".md" { // sources of programs are not searched
		s.index = append(s.index, sections(d, name)...)
	}
	var b bytes.Buffer
	err = layout.Execute(&b, view{Title: d.title, Body: template.HTML(d.html), Up: up(name), Parts: s.navigation(source, name)})
	s.files[name] = b.Bytes()
	return err
}

// maxFile limits the file of a source in bytes.
const maxFile = 1 << 20

// source returns a page's Markdown: that of a file that is none is its text, that of a directory the list of its files.
func (s *site) source(name string) (string, error) {
	if text, ok := s.made[name]; ok {
		return text, nil
	}
	if s.isDirectory(name) {
		return s.directory(name)
	}
	text, err := fs.ReadFile(s.root, name)
	switch {
	case err != nil:
		return "", err
	case len(text) > maxFile:
		return "", fmt.Errorf("a file of %d bytes; allowed: %d", len(text), maxFile)
	case path.Ext(name) == ".md":
		return string(text), nil
	}
	return fmt.Sprintf("# %s\n\n%s", path.Base(name), fenced(string(text))), nil
}

// fenced returns a text as a block of code that it cannot end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

func (s *site) directory(name string) (string, error) {
	if _, err := fs.Stat(s.root, name+"/"+readme); err == nil {
		text, err := fs.ReadFile(s.root, name+"/"+readme)
		return string(text), err
	}
	entries, err := fs.ReadDir(s.root, name)
	if err != nil {
		return "", err
	}
	text := "# " + name + "\n\n"
	for _, e := range entries {
		text += fmt.Sprintf("- [%s](%s)\n", e.Name(), e.Name())
	}
	return text, nil
}

// view is what the layout shows.
type view struct {
	Title string
	Body  template.HTML
	Up    string // from the page to the directory of the site
	Parts []shown
}

type shown struct {
	Title   string
	Entries []shownEntry
}

type shownEntry struct {
	Title, Page string
	Here        bool
}

func (s *site) navigation(source, name string) (list []shown) {
	for _, p := range s.parts {
		v := shown{Title: p.Title}
		for _, e := range p.Entries {
			v.Entries = append(v.Entries, shownEntry{e.Title, up(name) + s.pageOf(e.Source), e.Source == source})
		}
		list = append(list, v)
	}
	return list
}

// up leads from a page to the directory of the site.
func up(name string) string { return strings.Repeat("../", strings.Count(name, "/")) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
