package powershell

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// member is a property or a method.
func (in *Interpreter) member(e *member) (any, error) {
	if c, ok := e.of.(*cast); ok && c.of == nil && e.static {
		v, err := in.static(c.name, e)
		return v, in.wrongIf(e, err)
	}
	if v, ok := e.of.(*variable); ok && v.name == "error" && e.call && len(e.args) == 0 {
		if l, ok := e.name.(*literal); ok && strings.EqualFold(Text(l.value), "clear") {
			in.errors = nil
			return nil, nil
		}
	}
	if c := in.viewed(e); c != nil {
		return in.baseMethod(c, e)
	}
	of, err := in.expression(e.of)
	if err != nil {
		return nil, err
	}
	n, err := in.expression(e.name)
	if err != nil {
		return nil, err
	}
	name := Text(n)
	if !e.call {
		return in.property(of, name), nil
	}
	args, err := in.values(e.args)
	if err != nil {
		return nil, err
	}
	v, err := in.method(of, name, args)
	return v, in.wrongIf(e, classify(methodException, err))
}

func (in *Interpreter) values(list []expression) (out []any, err error) {
	for _, x := range list {
		v, err := in.expression(x)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// property returns a property of a value, nil if it has none of that name; of a list that has none, those of its elements.
func (in *Interpreter) property(of any, name string) any {
	counts := strings.EqualFold(name, "Count") || strings.EqualFold(name, "Length")
	switch o := of.(type) {
	case nil:
		if counts {
			return int64(0)
		}
		return nil
	case *Table:
		if v, ok := o.Get(name); ok {
			return v
		}
		return tableProperty(o, name)
	case *Object:
		if v, ok := o.Get(name); ok {
			return v
		}
	case string:
		if strings.EqualFold(name, "Length") {
			return int64(len([]rune(o)))
		}
	case []any:
		if counts {
			return int64(len(o))
		}
		var list []any
		for _, x := range o {
			if v := in.property(x, name); v != nil {
				list = append(list, List(v)...)
			}
		}
		return unwrap(list)
	}
	if strings.EqualFold(name, "Count") {
		return int64(1)
	}
	return nil
}

func tableProperty(t *Table, name string) any {
	list := []any{}
	switch strings.ToLower(name) {
	case "count":
		return int64(len(t.properties))
	case "keys":
		for _, p := range t.properties {
			list = append(list, p.Name)
		}
	case "values":
		for _, p := range t.properties {
			list = append(list, p.Value)
		}
	default:
		return nil
	}
	return list
}

func (in *Interpreter) method(of any, name string, args []any) (any, error) {
	lower := strings.ToLower(name)
	if of == nil {
		return nil, theirs("You cannot call a method on a null-valued expression.")
	}
	if o, ok := of.(*Object); ok && o.class != nil && len(o.class.overloads(name, false)) > 0 {
		return in.callMethod(o.class, o, name, args)
	}
	switch lower {
	case "tostring":
		if len(args) == 1 {
			return in.formatted("{0:"+Text(args[0])+"}", []any{of})
		}
		return Text(of), nil
	case "gettype":
		return NewObject("System.RuntimeType", "Name").With("Name", typeName(of)[strings.LastIndexByte(typeName(of), '.')+1:]).
			With("FullName", typeName(of)), nil
	case "equals":
		if len(args) == 1 {
			return equal(of, args[0], true), nil
		}
	}
	switch o := of.(type) {
	case *Object:
		if o.call != nil && lower == "shouldprocess" && (len(args) == 1 || len(args) == 2) {
			return o.call.shouldProcess(args)
		}
	case string:
		m, ok := texts[lower]
		if !ok {
			break
		}
		if len(args) < m.least || len(args) > m.most {
			return nil, fmt.Errorf("%s takes %d to %d arguments, not %d", name, m.least, m.most, len(args))
		}
		v, err := m.do(o, args)
		return v, errors.Join(err, in.spend(len(Text(v))+valueBytes))
	case *Table:
		return in.tableMethod(o, lower, args)
	case []any:
		if (lower == "contains" || lower == "indexof") && len(args) == 1 {
			for i, x := range o {
				if equal(x, args[0], true) {
					if lower == "contains" {
						return true, nil
					}
					return int64(i), nil
				}
			}
			if lower == "contains" {
				return false, nil
			}
			return int64(-1), nil
		}
	}
	return nil, fmt.Errorf("a value of %s has no method %s", typeName(of), name)
}

func (in *Interpreter) tableMethod(t *Table, name string, args []any) (any, error) {
	switch {
	case (name == "containskey" || name == "contains") && len(args) == 1:
		_, ok := t.Get(Text(args[0]))
		return ok, nil
	case name == "getenumerator" && len(args) == 0:
		list := []any{}
		for _, p := range t.properties {
			list = append(list, NewObject("System.Collections.DictionaryEntry", "Name", "Value").With("Name", p.Name).With("Key", p.Name).
				With("Value", p.Value))
		}
		return list, in.spend(len(list) * 4 * valueBytes)
	case name == "clear" && len(args) == 0:
		t.properties = nil
		return nil, nil
	case name == "add" && len(args) == 2:
		if _, twice := t.Get(Text(args[0])); twice {
			return nil, fmt.Errorf("there is a key %q", Text(args[0]))
		}
		t.With(Text(args[0]), args[1])
		return nil, in.spend(valueBytes)
	case name == "remove" && len(args) == 1:
		if i := t.find(Text(args[0])); i >= 0 {
			t.properties = append(t.properties[:i], t.properties[i+1:]...)
		}
		return nil, nil
	}
	return nil, fmt.Errorf("a hash table has no method %s of %d arguments", name, len(args))
}

// static is [math]::Round(x) and a few others.
func (in *Interpreter) static(class string, e *member) (any, error) {
	n, err := in.expression(e.name)
	if err != nil {
		return nil, err
	}
	args, err := in.values(e.args)
	if err != nil {
		return nil, err
	}
	if c := in.class(class); c != nil {
		return in.classStatic(c, Text(n), e, args)
	}
	name := strings.TrimPrefix(class, "system.") + "::" + strings.ToLower(Text(n))
	kind := exceptionNamed(class)
	switch {
	case kind != "" && strings.HasSuffix(name, "::new") && len(args) <= 1:
		if len(args) == 0 {
			args = []any{"Exception of type '" + kind + "' was thrown."}
		}
		return newException(kind, Text(args[0])), nil
	case name == "string::isnullorempty" && len(args) == 1:
		return Text(args[0]) == "", nil
	case name == "string::join" && len(args) >= 2:
		if len(args) == 2 {
			return in.join(args[1], Text(args[0]))
		}
		return in.join(args[1:], Text(args[0]))
	case name == "string::format" && len(args) >= 1:
		return in.formatted(Text(args[0]), args[1:])
	case name == "math::pi" && len(args) == 0:
		return math.Pi, nil
	case name == "math::e" && len(args) == 0:
		return math.E, nil
	case strings.HasPrefix(name, "math::") && len(args) > 0:
		return mathOf(strings.TrimPrefix(name, "math::"), args)
	}
	return nil, fmt.Errorf("[%s]::%s is not in the part of PowerShell that is understood; allowed: [math], [string], new of exceptions, and classes of the script", class, Text(n))
}

func mathOf(name string, args []any) (any, error) {
	v, err := number(args[0])
	if err != nil {
		return nil, err
	}
	f := float(v)
	switch {
	case name == "round" && len(args) == 1:
		return math.RoundToEven(f), nil
	case name == "round" && len(args) == 2:
		digits, err := Integer(args[1])
		if err != nil || digits < 0 || digits > 15 {
			return nil, errors.New("method Round wants 0 to 15 digits")
		}
		p := math.Pow(10, float64(digits))
		return math.RoundToEven(f*p) / p, nil
	case name == "floor":
		return math.Floor(f), nil
	case name == "ceiling":
		return math.Ceil(f), nil
	case name == "truncate":
		return math.Trunc(f), nil
	case name == "pow" && len(args) == 2:
		y, err := number(args[1])
		if err != nil {
			return nil, err
		}
		return math.Pow(f, float(y)), nil
	case name == "sqrt":
		return math.Sqrt(f), nil
	case name == "abs":
		return arithmetic("*", v, map[bool]any{true: int64(-1), false: int64(1)}[f < 0])
	case (name == "min" || name == "max") && len(args) == 2:
		c, err := compare(v, args[1], true)
		if (c > 0) == (name == "min") {
			return args[1], err
		}
		return v, err
	}
	return nil, fmt.Errorf("[math]::%s is not in the part of PowerShell that is understood", name)
}
