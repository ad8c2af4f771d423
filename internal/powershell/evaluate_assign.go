package powershell

import (
	"errors"
	"fmt"
)

// assign sets a variable, a property or an element, and returns the value, which is that of an assignment in parentheses.
func (in *Interpreter) assign(s *assignment) (any, error) {
	v, err := in.value(s.value)
	if err != nil {
		return nil, err
	}
	if s.operator != "=" {
		old, err := in.expression(s.target)
		if err != nil {
			return nil, err
		}
		if v, err = in.operate(s.operator[:1], old, v); err != nil {
			return nil, in.wrong(s, err)
		}
	}
	return v, in.set(s.target, v)
}

// assignEach gives the elements of a list to several targets, the rest of them to the last one (about_Assignment_Operators).
func (in *Interpreter) assignEach(targets []expression, v any) error {
	values := List(v)
	for i, t := range targets {
		var x any
		switch {
		case i == len(targets)-1:
			x = unwrap(values)
		case len(values) > 0:
			x, values = values[0], values[1:]
		}
		if err := in.set(t, x); err != nil {
			return err
		}
	}
	return nil
}

// setTyped is [int]$x = 5: what the variable is set to later is converted, too.
func (in *Interpreter) setTyped(t *cast, v any) error {
	if x, ok := t.of.(*variable); ok {
		return in.setVariable(x, t.name, v)
	}
	converted, err := in.convert(t.name, v)
	if err != nil {
		return in.wrong(t, err)
	}
	return in.set(t.of, converted)
}

func (in *Interpreter) set(target expression, v any) error {
	switch t := target.(type) {
	case *variable:
		return in.setVariable(t, "", v)
	case *cast:
		return in.setTyped(t, v)
	case *array:
		return in.assignEach(t.items, v)
	case *member:
		if c, ok := t.of.(*cast); ok && t.static {
			return in.setOfClass(t, c, v)
		}
		of, err := in.expression(t.of)
		if err != nil {
			return err
		}
		name, err := in.expression(t.name)
		if err != nil {
			return err
		}
		return in.setProperty(t, of, Text(name), v)
	case *index:
		of, err := in.expression(t.of)
		if err != nil {
			return err
		}
		at, err := in.expression(t.at)
		if err != nil {
			return err
		}
		return in.setElement(t, of, at, v)
	}
	return in.wrong(target, errors.New("this cannot be set"))
}

func (in *Interpreter) setProperty(at expression, of any, name string, v any) error {
	switch o := of.(type) {
	case *Table:
		o.With(name, v)
	case *Object:
		if o.class != nil {
			return in.wrongIf(at, in.setField(o, name, v))
		}
		if _, ok := o.Get(name); !ok {
			return in.wrong(at, fmt.Errorf("there is no property %q", name))
		}
		o.With(name, v)
	default:
		return in.wrong(at, fmt.Errorf("a value of %s has no properties to set", typeName(of)))
	}
	return in.spend(valueBytes + len(name))
}

func (in *Interpreter) setElement(at expression, of, where, v any) error {
	switch o := of.(type) {
	case *Table:
		o.With(Text(where), v)
		return in.spend(valueBytes)
	case []any:
		i, err := Integer(where)
		if err != nil {
			return in.wrong(at, err)
		}
		if i < 0 {
			i += int64(len(o))
		}
		if i < 0 || i >= int64(len(o)) {
			return in.wrong(at, fmt.Errorf("there is no element %d of %d", i, len(o)))
		}
		if list, nested := v.([]any); nested {
			if holds(list, o) {
				return in.wrong(at, errors.New("a list cannot be an element of itself"))
			}
			if err := in.spendList(list); err != nil {
				return err
			}
		}
		o[i] = v
		return nil
	}
	return in.wrong(at, fmt.Errorf("a value of %s has no elements to set", typeName(of)))
}

// setOfClass is [Name]::Property = value.
func (in *Interpreter) setOfClass(t *member, of *cast, v any) error {
	c := in.class(of.name)
	if c == nil || c.enum {
		return in.wrong(t, fmt.Errorf("[%s] has no property that can be set", of.name))
	}
	name, err := in.expression(t.name)
	if err != nil {
		return err
	}
	return in.wrongIf(t, in.setStatic(c, Text(name), v))
}
