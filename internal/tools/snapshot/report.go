package snapshot

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

// report is the tool's result: tables, each about one subject.
type report struct {
	Host     string    `json:"host"`
	Time     time.Time `json:"time"`
	Running  bool      `json:"running"` // a driver; otherwise the report is about what is on disk
	Sections []section `json:"sections"`
}

// section is a table with a title. A note says what could not be found out.
type section struct {
	Title  string     `json:"title"`
	Note   string     `json:"note,omitempty"`
	Fields []string   `json:"fields,omitempty"`
	Rows   [][]string `json:"rows,omitempty"`
}

// ID returns the section's anchor.
func (s *section) ID() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, s.Title)
}

// add adds a row.
func (s *section) add(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = fmt.Sprint(v)
	}
	s.Rows = append(s.Rows, row)
}

// section adds a table to the report.
func (r *report) section(title string, fields ...string) *section {
	r.Sections = append(r.Sections, section{Title: title, Fields: fields})
	return &r.Sections[len(r.Sections)-1]
}

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// html writes the report as one self-contained page.
func (r *report) html(w io.Writer) error { return pageTemplate.Execute(w, r) }

func (r *report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
