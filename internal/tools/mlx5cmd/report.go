package mlx5cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// report is the output of a command: blocks of fields, followed by notes.
type report interface {
	text(io.Writer) error
	json(io.Writer) error
}

// field is a name and its value.
type field struct {
	name  string
	value any
}

// block is fields below a title, in the manuals' format for attributes: indented, "name: value".
type block struct {
	title   string
	section string // in JSON, if a report has several per adapter
	adapter string
	fields  []field
}

func (b *block) add(name string, value any) { b.fields = append(b.fields, field{name, value}) }

// blocks is a report of blocks.
type blocks struct {
	list  []block
	notes []string
}

func (r blocks) text(w io.Writer) error {
	var b bytes.Buffer
	for i, x := range r.list {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(x.title + ":\n")
		for _, f := range x.fields {
			fmt.Fprintf(&b, "\t%s: %s\n", f.name, shown(f.value))
		}
	}
	for _, n := range r.notes {
		b.WriteString(n + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// shown returns a value on one line.
func shown(v any) string {
	if v == nil {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, fmt.Sprint(v))
}

// json writes an array of {"adapter", "section", "values": {...}}, with the fields in order and
// with their printed names.
func (r blocks) json(w io.Writer) error {
	b := bytes.NewBufferString("[")
	for i, x := range r.list {
		if i > 0 {
			b.WriteString(",")
		}
		head, err := json.Marshal(map[string]string{"adapter": x.adapter, "section": x.section})
		if err != nil {
			return err
		}
		b.Write(head[:len(head)-1])
		b.WriteString(`,"values":{`)
		for j, f := range x.fields {
			if j > 0 {
				b.WriteString(",")
			}
			name, err := json.Marshal(f.name)
			if err != nil {
				return err
			}
			value, err := json.Marshal(f.value)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "%s:%s", name, value)
		}
		b.WriteString("}}")
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
