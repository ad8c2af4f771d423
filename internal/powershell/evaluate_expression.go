package powershell

import (
	"errors"
	"fmt"
	"math"
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
		return list, in.spend(len(list) * valueBytes)
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
		return &Block{e.body}, nil
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
		v, err = convert(e.name, v)
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
		return v, in.set(e.of, next)
	}
	return nil, in.wrong(e, errors.New("no expression"))
}

// subexpression is ( ) and $( ). A single expression keeps its value.
func (in *Interpreter) subexpression(e *subexpression) (any, error) {
	if len(e.body) == 1 {
		return in.value(e.body[0])
	}
	list, err := in.collect(func(out emit) error { _, err := in.statements(e.body, out); return err })
	return unwrap(list), err
}

func (in *Interpreter) interpolate(e *interpolated) (any, error) {
	var b strings.Builder
	for _, x := range e.parts {
		v, err := in.expression(x)
		if err != nil {
			return nil, err
		}
		s := Text(v)
		if err := in.spend(len(s)); err != nil {
			return nil, err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (in *Interpreter) lookup(e *variable) (any, error) {
	if name, ok := strings.CutPrefix(e.name, "env:"); ok {
		return in.cfg.Host.Getenv(strings.ToUpper(name)), nil
	}
	v, ok := in.variables[e.name]
	if !ok && e.name == "?" {
		return true, nil
	}
	return v, nil
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
		words = append(words, Text(x))
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

// operate is a binary operator on two values.
func (in *Interpreter) operate(op string, left, right any) (any, error) {
	switch op {
	case "+", "-", "*", "/", "%":
		return in.compute(op, left, right)
	case "xor":
		return Truth(left) != Truth(right), nil
	case "band", "bor", "bxor":
		return bitwise(op, left, right)
	case "..":
		return in.span(left, right)
	case "f":
		return in.formatted(Text(left), List(right))
	case "join":
		return in.join(left, Text(right))
	case "is", "isnot":
		return isType(left, Text(right)) == (op == "is"), nil
	case "as":
		v, err := convert(strings.Trim(strings.ToLower(Text(right)), "[]"), left)
		if err != nil {
			return nil, nil //nolint:nilerr // -as answers with nothing
		}
		return v, nil
	}
	heed := false
	if base := op[1:]; (op[0] == 'c' && op != "contains" || op[0] == 'i' && op != "in") && base != "" {
		heed, op = op[0] == 'c', base
	}
	switch op {
	case "contains", "notcontains":
		return within(left, right, heed) == (op == "contains"), nil
	case "in", "notin":
		return within(right, left, heed) == (op == "in"), nil
	case "replace", "split":
		return in.rewrite(op, left, right, heed)
	}
	return in.compareValues(op, left, right, heed)
}

// compareValues compares one value, or returns those of a list for which the comparison holds.
func (in *Interpreter) compareValues(op string, left, right any, heed bool) (any, error) {
	test, err := predicate(op, right, heed)
	if err != nil {
		return nil, err
	}
	list, several := left.([]any)
	if !several {
		ok, err := test(left)
		if ok && op == "match" {
			in.match(Text(left), Text(right), heed)
		}
		return ok, err
	}
	out := []any{}
	for _, v := range list {
		ok, err := test(v)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, v)
		}
	}
	return out, in.spend(len(out) * valueBytes)
}

// match sets $matches.
func (in *Interpreter) match(text, pattern string, heed bool) {
	re, err := regular(pattern, heed)
	if err != nil {
		return
	}
	t := &Table{}
	for i, s := range re.FindStringSubmatch(text) {
		name := re.SubexpNames()[i]
		if name == "" {
			name = fmt.Sprint(i)
		}
		t.With(name, s)
	}
	in.variables["matches"] = t
}

func (in *Interpreter) compute(op string, left, right any) (any, error) {
	switch l := left.(type) {
	case []any:
		switch op {
		case "+":
			out := append(append(make([]any, 0, len(l)+len(List(right))), l...), List(right)...)
			return out, in.spend(len(out) * valueBytes)
		case "*":
			return in.repeat(op, len(l), right, func(n int) any {
				out := []any{}
				for range n {
					out = append(out, l...)
				}
				return out
			}, valueBytes)
		}
		return nil, fmt.Errorf("%s does not work on a list", op)
	case string:
		switch op {
		case "+":
			s := Text(right)
			if err := in.spend(len(l) + len(s)); err != nil {
				return nil, err
			}
			return l + s, nil
		case "*":
			return in.repeat(op, len(l), right, func(n int) any { return strings.Repeat(l, n) }, 1)
		}
	case nil:
		if op == "+" {
			return right, nil
		}
	case *Table:
		if r, ok := right.(*Table); ok && op == "+" {
			out := &Table{*l.clone()}
			for _, p := range r.properties {
				if _, twice := out.Get(p.Name); twice {
					return nil, fmt.Errorf("both tables have %q", p.Name)
				}
				out.With(p.Name, p.Value)
			}
			return out, in.spend(len(out.properties) * valueBytes)
		}
	}
	return arithmetic(op, left, right)
}

func (in *Interpreter) repeat(op string, length int, times any, make func(int) any, each int) (any, error) {
	n, err := Integer(times)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("%s wants a number of 0 or more, not %d", op, n)
	}
	if length > 0 && n > int64(in.limits.Memory/(length*each)) {
		return nil, &LimitError{"bytes of values", in.limits.Memory}
	}
	if err := in.spend(int(n) * length * each); err != nil {
		return nil, err
	}
	if length == 0 {
		n = 0
	}
	return make(int(n)), nil
}

func bitwise(op string, left, right any) (any, error) {
	a, err := Integer(left)
	if err != nil {
		return nil, err
	}
	b, err := Integer(right)
	if err != nil {
		return nil, err
	}
	switch op {
	case "band":
		return a & b, nil
	case "bor":
		return a | b, nil
	}
	return a ^ b, nil
}

// span is 1..5.
func (in *Interpreter) span(left, right any) (any, error) {
	a, err := Integer(left)
	if err != nil {
		return nil, err
	}
	b, err := Integer(right)
	if err != nil {
		return nil, err
	}
	if math.Abs(float64(a)-float64(b)) > float64(in.limits.Memory/valueBytes) {
		return nil, &LimitError{"bytes of values", in.limits.Memory}
	}
	n, by := b-a, int64(1)
	if n < 0 {
		n, by = -n, -1
	}
	if err := in.spend(int(n+1) * valueBytes); err != nil {
		return nil, err
	}
	out := make([]any, 0, n+1)
	for i := range n + 1 {
		out = append(out, a+by*i)
	}
	return out, nil
}

// rewrite is -replace and -split.
func (in *Interpreter) rewrite(op string, left, right any, heed bool) (any, error) {
	args := List(right)
	if len(args) == 0 || len(args) > 2 {
		return nil, fmt.Errorf("-%s wants a pattern, or a pattern and what comes in its place", op)
	}
	re, err := regular(Text(args[0]), heed)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, v := range List(left) {
		s := Text(v)
		if op == "split" {
			limit := int64(0)
			if len(args) == 2 {
				if limit, err = Integer(args[1]); err != nil {
					return nil, err
				}
			}
			if limit <= 0 || limit > math.MaxInt32 {
				limit = -1
			}
			for _, w := range re.Split(s, int(limit)) {
				out = append(out, w)
			}
		} else {
			to := ""
			if len(args) == 2 {
				to = Text(args[1])
			}
			if n := len(re.FindAllStringIndex(s, -1)); in.spend(n*len(to)) != nil {
				return nil, &LimitError{"bytes of values", in.limits.Memory}
			}
			out = append(out, re.ReplaceAllString(s, to))
		}
		if err := in.spend(len(s) + len(out)*valueBytes); err != nil {
			return nil, err
		}
	}
	if _, several := left.([]any); several {
		return out, nil
	}
	return unwrap(out), nil
}

func isType(v any, name string) bool {
	name = strings.TrimPrefix(strings.Trim(strings.ToLower(name), "[]"), "system.")
	switch v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "bool" || name == "boolean"
	case int64:
		return name == "int" || name == "long" || name == "int64" || name == "int32"
	case float64:
		return name == "double"
	case []any:
		return name == "array" || name == "object"
	case *Table:
		return name == "hashtable"
	}
	return v != nil && strings.EqualFold(typeName(v), name)
}
