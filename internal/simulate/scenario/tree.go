package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Error is an error in a scenario, or in a file that it names.
type Error struct {
	File    string
	Line    int    // 0: of no line
	Field   string // "": not of a field
	Value   string // what it is
	Allowed string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + " is ")
	}
	b.WriteString(e.Value)
	if e.Allowed != "" {
		b.WriteString("; allowed: " + e.Allowed)
	}
	return b.String()
}

// node is a value of the file. Exactly one of its parts is in use.
type node struct {
	line   int
	file   string // "": the scenario's own
	scalar any    // a string, json.Number, bool or nil
	list   []*node
	fields *fields
}

// fields are an object's, in their order.
type fields struct {
	names []string
	by    map[string]*node
}

func newFields() *fields { return &fields{by: map[string]*node{}} }

func (f *fields) set(name string, n *node) {
	if f.by[name] == nil {
		f.names = append(f.names, name)
	}
	f.by[name] = n
}

// deepest is how far values may be inside each other.
const deepest = 16

// parser reads the tree of a file.
type parser struct {
	file string
	text []byte
	d    *json.Decoder
	at   int64 // up to where lines are counted
	line int
}

// parse reads a tree. The error is an *Error.
func parse(file string, text []byte) (*node, error) {
	p := &parser{file: file, text: text, d: json.NewDecoder(strings.NewReader(string(text))), line: 1}
	p.d.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if n.fields == nil {
		return nil, &Error{File: file, Line: 1, Value: n.text(), Allowed: "one JSON object"}
	}
	if _, err := p.d.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{File: file, Line: p.lines(), Value: "something follows the object", Allowed: "one JSON object"}
	}
	return n, nil
}

// lines returns the line of the token that was read last.
func (p *parser) lines() int {
	to := min(p.d.InputOffset(), int64(len(p.text)))
	p.line += strings.Count(string(p.text[p.at:to]), "\n")
	p.at = to
	return p.line
}

func (p *parser) token() (json.Token, error) {
	t, err := p.d.Token()
	if err == nil {
		return t, nil
	}
	line := p.lines()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = 1 + strings.Count(string(p.text[:min(syntax.Offset, int64(len(p.text)))]), "\n")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &Error{File: p.file, Line: line, Value: "it ends too soon", Allowed: "one JSON object"}
	}
	return nil, &Error{File: p.file, Line: line, Value: "not JSON: " + strings.TrimPrefix(err.Error(), "json: ")}
}

func (p *parser) value(depth int) (*node, error) {
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.lines(), file: p.file}
	if depth > deepest {
		return nil, &Error{File: p.file, Line: n.line, Value: "too deep", Allowed: fmt.Sprintf("%d levels", deepest)}
	}
	switch t {
	case json.Delim('{'):
		n.fields = newFields()
		return n, p.object(n, depth)
	case json.Delim('['):
		n.list = []*node{}
		for p.d.More() {
			x, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.list = append(n.list, x)
		}
		_, err := p.token()
		return n, err
	}
	n.scalar = t
	return n, nil
}

func (p *parser) object(n *node, depth int) error {
	for p.d.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if n.fields.by[name] != nil {
			return &Error{File: p.file, Line: p.lines(), Field: name, Value: "there twice", Allowed: "each field once"}
		}
		x, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.fields.set(name, x)
	}
	_, err := p.token()
	return err
}

// text returns a value as a user would write it, shortened.
func (n *node) text() string {
	switch v := n.scalar.(type) {
	case string:
		if len(v) > 80 {
			v = v[:80] + "..."
		}
		return strconv.Quote(v)
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	switch {
	case n.fields != nil:
		return "an object"
	case n.list != nil:
		return "an array"
	}
	return "null"
}

// set puts a text in the place of a value, as an option of the command line has it.
func (n *node) set(path, text, option string) error {
	x := &node{file: option, scalar: text}
	if json.Valid([]byte(text)) {
		y, err := parseValue(option, text)
		if err != nil {
			return err
		}
		x = y
	}
	parts := strings.Split(path, ".")
	for i, name := range parts {
		last := i == len(parts)-1
		switch {
		case n.fields != nil && last:
			n.fields.set(name, x)
		case n.fields != nil:
			if n.fields.by[name] == nil {
				n.fields.set(name, &node{file: option, fields: newFields()})
			}
			n = n.fields.by[name]
		default:
			k, err := strconv.Atoi(name)
			if err != nil || k < 0 || k >= len(n.list) {
				return &Error{File: option, Field: path, Value: "none of the scenario", Allowed: "the path of a field, such as switch.kmin"}
			}
			if last {
				n.list[k] = x
			}
			n = n.list[k]
		}
	}
	return nil
}

func parseValue(file, text string) (*node, error) {
	p := &parser{file: file, text: []byte(text), d: json.NewDecoder(strings.NewReader(text))}
	p.d.UseNumber()
	n, err := p.value(0)
	if err == nil {
		n.forget()
	}
	return n, err
}

// forget forgets the lines of values that are in no file.
func (n *node) forget() {
	n.line = 0
	for _, x := range n.list {
		x.forget()
	}
	if n.fields != nil {
		for _, name := range slices.Clone(n.fields.names) {
			n.fields.by[name].forget()
		}
	}
}
