package powershell

import (
	"fmt"
	"math"
	"strings"
)

// operate is a binary operator on two values.
func (in *Interpreter) operate(op string, left, right any) (any, error) {
	switch op {
	case "+", "-", "*", "/", "%":
		return in.compute(op, left, right)
	case "xor":
		return Truth(left) != Truth(right), nil
	case "band", "bor", "bxor", "shl", "shr":
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
		v, err := in.convert(strings.Trim(strings.ToLower(Text(right)), "[]"), left)
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
	in.put("matches", t)
}

func (in *Interpreter) compute(op string, left, right any) (any, error) {
	switch l := left.(type) {
	case []any:
		switch op {
		case "+":
			out := append(append(make([]any, 0, len(l)+len(List(right))), l...), List(right)...)
			return out, in.spendList(out)
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
		switch op {
		case "+":
			return right, nil
		case "*":
			return nil, nil
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
	case "shl":
		return a << (b & 63), nil
	case "shr":
		return a >> (b & 63), nil
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

func isType(v any, name string) bool {
	name = strings.TrimPrefix(strings.Trim(strings.ToLower(name), "[]"), "system.")
	switch v := v.(type) {
	case *Object:
		if v.class != nil {
			return v.class.is(name)
		}
		if kind := exceptionNamed(name); kind != "" {
			return isException(v.Type, kind)
		}
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
