package main

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// document is a page that was read.
type document struct {
	title string
	html  string
	tree  ast.Node
	text  []byte
}

// anchors names headings as GitHub does, on which the documents' links rely: small letters, digits, - and _, hyphens for blanks.
type anchors struct{ used map[string]int }

func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(string(bytes.TrimSpace(value))) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		}
	}
	name := b.String()
	if name == "" {
		name = "section"
	}
	n := a.used[name]
	a.used[name]++
	if n > 0 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return []byte(name)
}

func (a anchors) Put(value []byte) { a.used[string(value)]++ }

// markdown takes over HTML: what of it a document may have, render has checked.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// render makes HTML of a source's Markdown. Links to other sources become links to their pages, which are wanted from then on.
func (s *site) render(source, md string) (document, error) {
	d := document{text: []byte(md), title: path.Base(source)}
	names := parser.NewContext(parser.WithIDs(anchors{map[string]int{}}))
	d.tree = markdown.Parser().Parse(text.NewReader(d.text), parser.WithContext(names))
	err := ast.Walk(d.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 1 && d.title == path.Base(source) {
				d.title = plain(n, d.text)
			}
		case *ast.RawHTML:
			return ast.WalkContinue, onlyComment(n.Segments, d.text)
		case *ast.HTMLBlock:
			return ast.WalkContinue, onlyComment(n.Lines(), d.text)
		case *ast.Link:
			to, err := s.destination(source, string(n.Destination))
			n.Destination = []byte(to)
			return ast.WalkContinue, err
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return d, err
	}
	var b bytes.Buffer
	err = markdown.Renderer().Render(&b, d.text, d.tree)
	d.html = b.String()
	return d, err
}

// onlyComment returns an error for HTML in a document but comments and breaks of lines in tables: mostly it is meant as text, whose <
// and > a reader would miss.
func onlyComment(lines *text.Segments, source []byte) error {
	if code := strings.TrimSpace(string(lines.Value(source))); code != "" && code != "<br>" && !strings.HasPrefix(code, "<!--") {
		return fmt.Errorf("HTML in a document: %.60q; allowed: comments, <br>, and code in backticks", code)
	}
	return nil
}

// destination returns where a link of a source leads on the site.
func (s *site) destination(source, to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
		return to, err
	}
	target := path.Join(path.Dir(source), u.Path)
	if s.isDirectory(source) {
		target = path.Join(source, u.Path)
	}
	if target == ".." || strings.HasPrefix(target, "../") {
		return "", fmt.Errorf("a link leads out of the sources: %s", to)
	}
	s.want(target)
	u.Path = up(s.pageOf(source)) + s.pageOf(target)
	return u.String(), nil
}

// plain returns the text of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
