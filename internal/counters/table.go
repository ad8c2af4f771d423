package counters

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Writer writes readings in one of the formats of typeperf, or as JSON. The columns are those of the first
// readings.
type Writer struct {
	w        io.Writer
	computer string
	form     Form
	columns  []string
}

// Form is the format of a Writer's output.
type Form string

// The formats.
const (
	CSV  Form = "csv"
	TSV  Form = "tsv"
	JSON Form = "json" // one object per line
	Text Form = "text" // a table of path, value and unit for each reading
)

// Forms lists all formats.
var Forms = []Form{CSV, TSV, JSON, Text}

// NewWriter returns a Writer that uses computer in its paths.
func NewWriter(w io.Writer, form Form, computer string) *Writer {
	return &Writer{w: w, form: form, computer: computer}
}

// line is a line in the format JSON.
type line struct {
	Time     time.Time `json:"time"`
	Readings []Reading `json:"readings"`
}

// Write writes one sample.
func (w *Writer) Write(at time.Time, readings []Reading) error {
	switch w.form {
	case JSON:
		return json.NewEncoder(w.w).Encode(line{at, readings})
	case Text:
		return w.text(readings)
	}
	return w.separated(at, readings)
}

// separated writes like typeperf: a header "(PDH-CSV 4.0)" with the paths, then one line per sample, every
// field in quotes. As there, a missing value is a blank.
func (w *Writer) separated(at time.Time, readings []Reading) error {
	sep, title := ",", "(PDH-CSV 4.0)"
	if w.form == TSV {
		sep, title = "\t", "(PDH-TSV 4.0)"
	}
	values := map[string]Number{}
	first := w.columns == nil
	for _, r := range readings {
		path := formatPath(w.computer, r.Set, r.Instance, r.Counter)
		values[path] = r.Value
		if first {
			w.columns = append(w.columns, path)
		}
	}
	var b strings.Builder
	if first {
		b.WriteString(quoted(title))
		for _, c := range w.columns {
			b.WriteString(sep + quoted(c))
		}
		b.WriteString("\n")
	}
	b.WriteString(quoted(at.Format("01/02/2006 15:04:05.000")))
	for _, c := range w.columns {
		b.WriteString(sep + quoted(decimal(values[c])))
	}
	_, err := io.WriteString(w.w, b.String()+"\n")
	return err
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// decimal formats a number with six decimal places, like typeperf.
func decimal(n Number) string {
	switch {
	case !n.Known:
		return " "
	case n.Whole:
		return strconv.FormatUint(n.Integer, 10) + ".000000"
	}
	return n.text(" ", 6)
}

// text writes one line per counter, with a line for each instance before its counters.
func (w *Writer) text(readings []Reading) error {
	width := 0
	for _, r := range readings {
		width = max(width, len(r.Counter))
	}
	var b strings.Builder
	for i, r := range readings {
		if i == 0 || r.Set != readings[i-1].Set || r.Instance != readings[i-1].Instance {
			fmt.Fprintf(&b, "%s (%s)\n", r.Set, r.Instance)
		}
		fmt.Fprintf(&b, "  %-*s %16s %s", width, r.Counter, r.Value, r.Unit)
		b.WriteString("\n")
	}
	_, err := io.WriteString(w.w, b.String())
	return err
}
