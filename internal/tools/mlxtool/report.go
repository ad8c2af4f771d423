package mlxtool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// report is the output of a sub-command: tables with titles.
type report []table

// table is rows of values below the names of their fields. As text it is drawn with lines like the
// manual's tables (WinOF 5.50, 5.5.2.6); in JSON each row is an object with the names in lower case, words
// joined by "_".
type table struct {
	// Label and Name are the line above the table: "Label: Name".
	Label, Name string
	Fields      []string
	Rows        [][]any
	// Empty is printed if there are no rows.
	Empty string
}

// add adds a row.
func (t *table) add(values ...any) { t.Rows = append(t.Rows, values) }

// notKnown is an unknown value: "-" in text, null in JSON.
var notKnown = any(nil)

func cell(v any) string {
	if v == nil {
		return "-"
	}
	switch x := v.(type) {
	case float64:
		return fmt.Sprintf("%.3f", x)
	case bool:
		if x {
			return "Yes"
		}
		return "No"
	}
	return strings.Map(func(r rune) rune { // names chosen by others must not break the line
		if r < ' ' || r == '|' {
			return '?'
		}
		return r
	}, fmt.Sprint(v))
}

func (r report) text(w io.Writer) error {
	var b bytes.Buffer
	for i := range r {
		if i > 0 {
			b.WriteString("\n")
		}
		r[i].draw(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (t *table) draw(b *bytes.Buffer) {
	if t.Label != "" {
		fmt.Fprintf(b, "%s: %s\n", t.Label, cell(t.Name))
	}
	if len(t.Rows) == 0 {
		fmt.Fprintf(b, "  %s\n", t.Empty)
		return
	}
	widths := make([]int, len(t.Fields))
	for i, f := range t.Fields {
		widths[i] = len(f)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], len([]rune(cell(row[i]))))
		}
	}
	rule := "  "
	for _, n := range widths {
		rule += " " + strings.Repeat("-", n+2)
	}
	line := func(values []string) {
		b.WriteString("  ")
		for i, v := range values {
			fmt.Fprintf(b, "| %-*s ", widths[i], v)
		}
		b.WriteString("|\n")
	}
	b.WriteString(rule + "\n")
	line(t.Fields)
	b.WriteString(rule + "\n")
	for _, row := range t.Rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = cell(v)
		}
		line(values)
	}
	b.WriteString(rule + "\n")
}

func (r report) json(w io.Writer) error {
	b := bytes.NewBufferString("[")
	for i := range r {
		if i > 0 {
			b.WriteString(",")
		}
		if err := r[i].object(b); err != nil {
			return err
		}
	}
	b.WriteString("]")
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := w.Write(out.Bytes())
	return err
}

// object writes a table as {"<label>": name, "rows": [...]} with the fields in order.
func (t *table) object(b *bytes.Buffer) error {
	b.WriteString("{")
	if t.Label != "" {
		fmt.Fprintf(b, "%q:", key(t.Label))
		if err := value(b, t.Name); err != nil {
			return err
		}
		b.WriteString(",")
	}
	b.WriteString(`"rows":[`)
	for i, row := range t.Rows {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("{")
		for j, v := range row {
			if j > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(b, "%q:", key(t.Fields[j]))
			if err := value(b, v); err != nil {
				return err
			}
		}
		b.WriteString("}")
	}
	b.WriteString("]}")
	return nil
}

func value(b *bytes.Buffer, v any) error {
	text, err := json.Marshal(v)
	b.Write(text)
	return err
}

// key returns the name of a field in JSON.
func key(field string) string {
	words := strings.FieldsFunc(strings.ToLower(field), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "_")
}
