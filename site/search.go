package main

import (
	"bytes"
	"encoding/json"
	"html/template"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// section is what a search finds: the text below a heading, or a row of a table, which may be one of hundreds.
type section struct {
	page, anchor  string
	title, inPage string
	text          string
}

// MarshalJSON implements json.Marshaler: names would be repeated in each.
func (s section) MarshalJSON() ([]byte, error) {
	return json.Marshal([]string{s.page, s.anchor, s.title, s.inPage, s.text})
}

// sections returns what can be found in a document.
func sections(d document, page string) (list []section) {
	now := section{page: page, title: d.title, inPage: d.title}
	for n := d.tree.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if now.text != "" || now.title != "" {
				list = append(list, now)
			}
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			now = section{page: page, anchor: string(name), title: plain(n, d.text), inPage: d.title}
		case *extast.Table:
			for r := n.FirstChild(); r != nil; r = r.NextSibling() {
				row := now
				row.text = plain(r, d.text)
				list = append(list, row)
			}
		default:
			if t := plain(n, d.text); t != "" {
				now.text += t + " "
			}
		}
	}
	return append(list, now)
}

// addSearch adds the page of the search, its script, what it searches in, and the style. The index is a script rather than JSON, which
// browsers do not read from a disk.
func (s *site) addSearch() error {
	index, err := json.Marshal(s.index)
	if err != nil {
		return err
	}
	s.files["search-index.js"] = append(append([]byte("var softvpiIndex = "), index...), ";\n"...)
	for _, name := range []string{"search.js", "style.css"} {
		if s.files[name], err = assets.ReadFile("assets/" + name); err != nil {
			return err
		}
	}
	body, err := assets.ReadFile("assets/search.html")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = layout.Execute(&b, view{Title: "Search", Body: template.HTML(body), Parts: s.navigation("", "search.html")})
	s.files["search.html"] = b.Bytes()
	return err
}
