package powershell

import (
	"fmt"
	"io"
	"strings"
)

// printer shows results as PowerShell does: text as it is, objects of one type in a table or as lists.
type printer struct {
	out     io.Writer
	json    bool
	records bool
	pending []*Object
	all     []any // with json
}

// maxPending is how many objects wait for a table to be made.
const maxPending = 1 << 16

func (p *printer) print(v any) error {
	if p.json {
		p.all = append(p.all, v)
		return nil
	}
	if p.records {
		return p.record(v)
	}
	if t, ok := v.(*Table); ok {
		return p.printTable(t)
	}
	o, ok := v.(*Object)
	if !ok || o.text != "" {
		if err := p.flush(); err != nil {
			return err
		}
		if list, several := v.([]any); several {
			for _, x := range list {
				if err := p.print(x); err != nil {
					return err
				}
			}
			return nil
		}
		_, err := fmt.Fprintln(p.out, Text(v))
		return err
	}
	if len(p.pending) > 0 && (p.pending[0].Type != o.Type || len(p.pending) >= maxPending) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.pending = append(p.pending, o)
	return nil
}

// printTable shows a hash table by names and values.
func (p *printer) printTable(t *Table) error {
	if err := p.flush(); err != nil {
		return err
	}
	rows := []*Object{}
	for _, x := range t.properties {
		rows = append(rows, NewObject("entry").With("Name", x.Name).With("Value", x.Value))
	}
	return writeTable(p.out, rows, []string{"Name", "Value"}, false)
}

// flush shows the objects that wait.
func (p *printer) flush() error {
	if p.json {
		list := p.all
		p.all = nil
		if list == nil {
			return nil
		}
		return writeJSON(p.out, unwrap(list))
	}
	list := p.pending
	p.pending = nil
	if len(list) == 0 {
		return nil
	}
	names := list[0].Show
	if len(names) == 0 {
		for _, x := range list[0].properties {
			names = append(names, x.Name)
		}
	}
	const mostColumns = 4
	if list[0].List || len(list[0].Show) == 0 && len(names) > mostColumns {
		return writeList(p.out, list, list[0].Show)
	}
	return writeTable(p.out, list, names, false)
}

// cell returns a value as tables and lists show it.
func cell(v any) string {
	switch v := v.(type) {
	case []any:
		words := make([]string, len(v))
		for i, x := range v {
			words[i] = shallow(x)
		}
		return "{" + strings.Join(words, ", ") + "}"
	case *Table:
		words := make([]string, len(v.properties))
		for i, p := range v.properties {
			words[i] = p.Name
		}
		return "{" + strings.Join(words, ", ") + "}"
	}
	return Text(v)
}

// writeTable writes objects as a table of columns. Numbers stand at the right.
func writeTable(w io.Writer, list []*Object, names []string, noHeaders bool) error {
	rows := make([][]string, len(list))
	width := make([]int, len(names))
	right := make([]bool, len(names))
	for i := range names {
		if !noHeaders {
			width[i] = len([]rune(names[i]))
		}
		right[i] = len(list) > 0
	}
	for r, o := range list {
		for i, n := range names {
			v, _ := o.Get(n)
			switch v.(type) {
			case int64, float64:
			default:
				right[i] = false
			}
			s := strings.Join(strings.Split(cell(v), "\n"), " ")
			rows[r] = append(rows[r], s)
			width[i] = max(width[i], len([]rune(s)))
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		for i, c := range cells {
			space := strings.Repeat(" ", width[i]-len([]rune(c)))
			if right[i] {
				c = space + c
			} else {
				c += space
			}
			if i > 0 {
				l.WriteByte(' ')
			}
			l.WriteString(c)
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	b.WriteString("\n")
	if !noHeaders {
		line(names)
		under := make([]string, len(names))
		for i, n := range names {
			under[i] = strings.Repeat("-", len([]rune(n)))
		}
		line(under)
	}
	for _, r := range rows {
		line(r)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// writeList writes objects as lists of properties: the named ones, or each object's own.
func writeList(w io.Writer, list []*Object, named []string) error {
	var b strings.Builder
	for _, o := range list {
		names := named
		if len(names) == 0 {
			names = shown(o, false)
		}
		width := 0
		for _, n := range names {
			width = max(width, len([]rune(n)))
		}
		b.WriteString("\n")
		for _, n := range names {
			v, _ := o.Get(n)
			b.WriteString(n + strings.Repeat(" ", width-len([]rune(n))))
			b.WriteString(strings.TrimRight(" : "+strings.ReplaceAll(cell(v), "\n", "\n"+strings.Repeat(" ", width+3)), " ") + "\n")
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}
