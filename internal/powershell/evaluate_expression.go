package powershell

import (
	"errors"
	"fmt"
	"strings"
)

func (in *Interpreter) expression(e expression) (any, error) {
	end, err := in.deepen()
	if err != nil {
		return nil, err
	}
	defer end()
	switch e := e.(type) {
	case *literal:
		return e.value, nil
	case *interpolated:
		return in.interpolate(e)
	case *variable:
		return in.lookup(e)
	case *array:
		list := make([]any, 0, len(e.items))
		for _, x := range e.items {
			v, err := in.expression(x)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, in.spendList(list)
	case *arrayOf:
		list, err := in.collect(func(out emit) error { _, err := in.statements(e.body, out); return err })
		if list == nil {
			list = []any{}
		}
		return list, err
	case *subexpression:
		return in.subexpression(e)
	case *hash:
		return in.hash(e)
	case *block:
		return &Block{e.code}, nil
	case *member:
		return in.member(e)
	case *index:
		return in.index(e)
	case *unary:
		return in.unary(e)
	case *binary:
		return in.binary(e)
	case *cast:
		if e.of == nil {
			return "[" + e.name + "]", nil
		}
		v, err := in.expression(e.of)
		if err != nil {
			return nil, err
		}
		v, err = in.convert(e.name, v)
		return v, in.wrongIf(e, err)
	case *step:
		v, err := in.expression(e.of)
		if err != nil {
			return nil, err
		}
		next, err := in.operate("+", v, e.by)
		if err != nil {
			return nil, in.wrong(e, err)
		}
		if e.before {
			v = next
		}
		return v, in.set(e.of, next)
	}
	return nil, in.wrong(e, errors.New("no expression"))
}

// subexpression is ( ) and $( ). A single expression keeps its value.
func (in *Interpreter) subexpression(e *subexpression) (any, error) {
	if len(e.body) == 1 && (e.grouping || !silent(e.body[0])) {
		return in.value(e.body[0])
	}
	list, err := in.collect(func(out emit) error { _, err := in.statements(e.body, out); return err })
	return unwrap(list), err
}

// silent reports whether a statement returns nothing unless it stands in parentheses: $x = 5, $x++.
func silent(s statement) bool {
	switch s := s.(type) {
	case *assignment:
		return true
	case *pipeline:
		_, counts := s.elements[0].(*step)
		return counts
	}
	return false
}

func (in *Interpreter) interpolate(e *interpolated) (any, error) {
	var b strings.Builder
	for _, x := range e.parts {
		v, err := in.expression(x)
		if err != nil {
			return nil, err
		}
		s, err := in.text(v)
		if err != nil {
			return nil, err
		}
		if err := in.spend(len(s)); err != nil {
			return nil, err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (in *Interpreter) hash(e *hash) (any, error) {
	t := &Table{}
	for i, k := range e.keys {
		key, err := in.expression(k)
		if err != nil {
			return nil, err
		}
		if _, twice := t.Get(Text(key)); twice {
			return nil, in.wrong(k, fmt.Errorf("key %q stands twice", Text(key)))
		}
		v, err := in.value(e.values[i])
		if err != nil {
			return nil, err
		}
		t.With(Text(key), v)
	}
	return t, in.spend(len(e.keys) * valueBytes)
}

func (in *Interpreter) index(e *index) (any, error) {
	of, err := in.expression(e.of)
	if err != nil {
		return nil, err
	}
	at, err := in.expression(e.at)
	if err != nil {
		return nil, err
	}
	if where, several := at.([]any); several {
		list := []any{}
		for _, w := range where {
			v, err := elementAt(of, w)
			if err != nil {
				return nil, in.wrong(e, err)
			}
			list = append(list, v)
		}
		return list, in.spend(len(list) * valueBytes)
	}
	v, err := elementAt(of, at)
	return v, in.wrongIf(e, err)
}

// elementAt returns an element; nil: there is none.
func elementAt(of, at any) (any, error) {
	if t, ok := of.(*Table); ok {
		v, _ := t.Get(Text(at))
		return v, nil
	}
	if of == nil {
		return nil, errors.New("nothing ($null) has no elements")
	}
	list, ok := of.([]any)
	if s, isText := of.(string); isText {
		ok = true
		for _, r := range s {
			list = append(list, string(r))
		}
	}
	if !ok {
		list = []any{of}
	}
	i, err := Integer(at)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		i += int64(len(list))
	}
	if i < 0 || i >= int64(len(list)) {
		return nil, nil
	}
	return list[i], nil
}

func (in *Interpreter) unary(e *unary) (any, error) {
	v, err := in.expression(e.of)
	if err != nil {
		return nil, err
	}
	switch e.operator {
	case "not":
		return !Truth(v), nil
	case "-":
		v, err = arithmetic("-", int64(0), v)
		return v, in.wrongIf(e, err)
	case "bnot":
		n, err := Integer(v)
		return ^n, in.wrongIf(e, err)
	case "join":
		return in.join(v, "")
	case "split":
		var out []any
		for _, w := range strings.Fields(Text(v)) {
			out = append(out, w)
		}
		return unwrap(out), in.spend(len(out) * valueBytes)
	}
	return nil, in.wrong(e, fmt.Errorf("-%s does not stand before one value", e.operator))
}

func (in *Interpreter) join(v any, between string) (any, error) {
	words, size := []string{}, 0
	for _, x := range List(v) {
		words = append(words, elementText(x))
		size += len(words[len(words)-1]) + len(between)
	}
	if err := in.spend(size); err != nil {
		return nil, err
	}
	return strings.Join(words, between), nil
}

func (in *Interpreter) binary(e *binary) (any, error) {
	left, err := in.expression(e.left)
	if err != nil {
		return nil, err
	}
	switch e.operator {
	case "and", "or":
		if Truth(left) == (e.operator == "or") {
			return e.operator == "or", nil
		}
		right, err := in.expression(e.right)
		return Truth(right), err
	}
	right, err := in.expression(e.right)
	if err != nil {
		return nil, err
	}
	v, err := in.operate(e.operator, left, right)
	return v, in.wrongIf(e, err)
}
