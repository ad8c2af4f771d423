package powershell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// class returns the class of the script that a type names; nil: there is none.
func (in *Interpreter) class(name string) *class { return in.classes[strings.ToLower(name)] }

// convert is [name] v, where name may be a class of the script: an object of it, a hash table of its properties, a value of an
// enumeration, or what a constructor with one argument takes.
func (in *Interpreter) convert(name string, v any) (any, error) {
	if elem, list := strings.CutSuffix(name, "[]"); list && in.class(elem) != nil {
		out := []any{}
		for _, x := range List(v) {
			o, err := in.convert(elem, x)
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
		return out, in.spendList(out)
	}
	c := in.class(name)
	if c == nil {
		return convert(name, v)
	}
	if o, ok := v.(*Object); ok && o.class != nil && o.class.is(c.name) {
		return o, nil
	}
	switch t, table := v.(*Table); {
	case c.enum:
		if o := c.member(v); o != nil {
			return o, nil
		}
		return nil, classify(castException, fmt.Errorf("%q is no value of [%s]; allowed: %s", Text(v), c.name, c.names()))
	case v == nil:
		return nil, nil
	case table:
		return in.fromTable(c, t)
	}
	return in.construct(c, []any{v})
}

// fromTable is [Name]@{ }: an object with these properties.
func (in *Interpreter) fromTable(c *class, t *Table) (any, error) {
	o, err := in.construct(c, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range t.properties {
		if err := in.setField(o, p.Name, p.Value); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// setField sets a property of an object of a class, in its type.
func (in *Interpreter) setField(o *Object, name string, v any) error {
	p := o.class.property(name, false)
	if p == nil || o.class.enum {
		return fmt.Errorf("[%s] has no property %q that can be set", o.class.name, name)
	}
	v, err := in.fieldValue(p, v)
	if err != nil {
		return err
	}
	o.With(p.Name, v)
	return in.spend(valueBytes)
}

// fieldValue returns a value as a property takes it.
func (in *Interpreter) fieldValue(p *classProperty, v any) (any, error) {
	v, err := p.checked(in, v)
	var wrong *ParameterError
	if errors.As(err, &wrong) {
		wrong.Parameter = "$" + p.Name
	}
	return v, err
}

// construct makes an object of a class: its properties with their defaults, and then what a constructor does.
func (in *Interpreter) construct(c *class, args []any) (*Object, error) {
	if c.enum {
		return nil, fmt.Errorf("[%s] is an enumeration; allowed: %s", c.name, c.names())
	}
	leave, err := in.enter(c.name)
	if err != nil {
		return nil, err
	}
	defer leave()
	o := &Object{Type: c.name, class: c}
	for _, p := range c.fields() {
		v, err := in.fieldDefault(p)
		if err != nil {
			return nil, err
		}
		o.With(p.Name, v)
		if err := in.spend(valueBytes + len(p.Name)); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(c.fields(), func(p *classProperty) bool { return p.hidden }) {
		o.Show = []string{}
		for _, p := range c.fields() {
			if !p.hidden {
				o.Show = append(o.Show, p.Name)
			}
		}
	}
	return o, in.initialize(c, o, args)
}

func (in *Interpreter) fieldDefault(p *classProperty) (any, error) {
	if p.value == nil {
		if c := in.class(p.kind); c != nil && c.enum {
			if first := c.member(int64(0)); first != nil {
				return first, nil
			}
		}
		if slices.Contains(zeroed, p.kind) && p.kind != "string" {
			return in.convert(p.kind, nil)
		}
		return nil, nil
	}
	v, err := in.inScript(func() (any, error) { return in.expression(p.value) })
	if err != nil {
		return nil, err
	}
	return in.fieldValue(p, v)
}

// inScript does something in a scope that only the script is around, as methods are.
func (in *Interpreter) inScript(do func() (any, error)) (any, error) {
	around := in.scope
	in.scope = newScope(in.script)
	defer func() { in.scope = around }()
	return do()
}

// initialize runs the constructor of a class that takes the arguments, behind one of its base class.
func (in *Interpreter) initialize(c *class, o *Object, args []any) error {
	list := c.constructors()
	if len(list) == 0 {
		if len(args) > 0 {
			return fmt.Errorf("[%s] has no constructor of %d arguments", c.name, len(args))
		}
		if c.base != nil {
			return in.initialize(c.base, o, nil)
		}
		return nil
	}
	m, values := in.fitting(list, args)
	if m == nil {
		return fmt.Errorf("[%s] has no constructor of %d arguments of these types", c.name, len(args))
	}
	_, err := in.runMethod(c, m, o, values)
	return err
}

// fitting returns the first of several methods that takes the arguments, and these in its types; nil: none does.
func (in *Interpreter) fitting(list []*classMethod, args []any) (*classMethod, []any) {
	for _, m := range list {
		if len(m.params) != len(args) {
			continue
		}
		values, ok := make([]any, len(args)), true
		for i, v := range m.params {
			x, err := v.checked(in, args[i])
			ok = ok && err == nil
			values[i] = x
		}
		if ok {
			return m, values
		}
	}
	return nil, nil
}

// callMethod calls a method of a class: that of an object, or a static one.
func (in *Interpreter) callMethod(c *class, o *Object, name string, args []any) (any, error) {
	list := c.overloads(name, o == nil)
	if len(list) == 0 {
		return nil, fmt.Errorf("[%s] has no method %s", c.name, name)
	}
	m, values := in.fitting(list, args)
	if m == nil {
		return nil, fmt.Errorf("no method %s of [%s] takes %d arguments of these types", name, c.name, len(args))
	}
	return in.runMethod(c, m, o, values)
}

// enter counts calls in each other; call the result when this one ends.
func (in *Interpreter) enter(name string) (leave func(), err error) {
	if err := in.tick(); err != nil {
		return nil, err
	}
	if in.calls++; in.calls > in.limits.Calls {
		in.calls--
		return nil, fmt.Errorf("%s: %w", name, &LimitError{"calls of functions in each other", in.limits.Calls})
	}
	return func() { in.calls-- }, nil
}

// runMethod runs a method or a constructor. Only what it returns by return is its result.
func (in *Interpreter) runMethod(c *class, m *classMethod, o *Object, args []any) (any, error) {
	leave, err := in.enter(m.name)
	if err != nil {
		return nil, err
	}
	defer leave()
	return in.inScript(func() (any, error) {
		for i, v := range m.params {
			in.scope.variables[strings.ToLower(v.Name)] = &slot{value: args[i], kind: v.kind}
		}
		if o != nil {
			in.scope.variables["this"] = &slot{value: o}
		}
		if err := in.chain(c, m, o); err != nil {
			return nil, err
		}
		_, err := in.statements(m.body, discard)
		var j *jumped
		if err != nil && (!errors.As(err, &j) || j.word != "return") {
			return nil, err
		}
		if m.kind == "" || m.kind == "void" || j == nil {
			if j != nil && m.kind == "" {
				return j.value, nil
			}
			return nil, nil
		}
		return in.convert(m.kind, j.value)
	})
}

// chain runs the constructor of the base class, before that of a class.
func (in *Interpreter) chain(c *class, m *classMethod, o *Object) error {
	if o == nil || !strings.EqualFold(m.name, c.name) || c.base == nil {
		return nil
	}
	args, err := in.values(m.chained)
	if err != nil {
		return err
	}
	return in.initialize(c.base, o, args)
}

// classStatic is [Name]::new(...), a static property or method, or a value of an enumeration.
func (in *Interpreter) classStatic(c *class, name string, e *member, args []any) (any, error) {
	switch {
	case e.call && strings.EqualFold(name, "new"):
		return in.construct(c, args)
	case e.call:
		return in.callMethod(c, nil, name, args)
	case c.enum:
		if o := c.member(name); o != nil {
			return o, nil
		}
		return nil, fmt.Errorf("[%s] has no value %s; allowed: %s", c.name, name, c.names())
	}
	s, err := in.staticSlot(c, name)
	if err != nil {
		return nil, err
	}
	return s.value, nil
}

// staticSlot returns a static property, with its default when it is asked for first.
func (in *Interpreter) staticSlot(c *class, name string) (*slot, error) {
	p := c.property(name, true)
	if p == nil {
		return nil, fmt.Errorf("[%s] has no static property %s", c.name, name)
	}
	if in.statics == nil {
		in.statics = map[*classProperty]*slot{}
	}
	if s := in.statics[p]; s != nil {
		return s, nil
	}
	s := &slot{}
	in.statics[p] = s // before its default, which may ask for it
	v, err := in.fieldDefault(p)
	s.value = v
	return s, err
}

// setStatic is [Name]::Property = value.
func (in *Interpreter) setStatic(c *class, name string, v any) error {
	s, err := in.staticSlot(c, name)
	if err != nil {
		return err
	}
	if v, err = in.fieldValue(c.property(name, true), v); err != nil {
		return err
	}
	s.value = v
	return in.spend(valueBytes)
}

// text is Text, by the method ToString of a class that has one.
func (in *Interpreter) text(v any) (string, error) {
	if list, several := v.([]any); several {
		if between := in.get("ofs"); between != nil { // $OFS (about_Preference_Variables)
			s, err := in.join(list, Text(between))
			return Text(s), err
		}
	}
	o, ok := v.(*Object)
	if !ok || o.class == nil || len(o.class.overloads("ToString", false)) == 0 {
		return Text(v), nil
	}
	s, err := in.callMethod(o.class, o, "ToString", nil)
	return Text(s), err
}

// viewed returns the class as whose object ([Name]$x).Method() sees one; nil: the call is none of that form.
func (in *Interpreter) viewed(e *member) *class {
	g, ok := e.of.(*subexpression)
	if !ok || !g.grouping || !e.call || len(g.body) != 1 {
		return nil
	}
	p, ok := g.body[0].(*pipeline)
	if !ok || len(p.elements) != 1 {
		return nil
	}
	c, ok := p.elements[0].(*cast)
	if !ok || c.of == nil {
		return nil
	}
	return in.class(c.name)
}

// baseMethod is ([Name]$x).Method(): that of the class Name, though the object's own class has another one.
func (in *Interpreter) baseMethod(c *class, e *member) (any, error) {
	of, err := in.expression(e.of)
	if err != nil {
		return nil, err
	}
	name, err := in.expression(e.name)
	if err != nil {
		return nil, err
	}
	args, err := in.values(e.args)
	if err != nil {
		return nil, err
	}
	o, ok := of.(*Object)
	if ok && o.class != nil && len(c.overloads(Text(name), false)) > 0 {
		v, err := in.callMethod(c, o, Text(name), args)
		return v, in.wrongIf(e, classify(methodException, err))
	}
	v, err := in.method(of, Text(name), args)
	return v, in.wrongIf(e, classify(methodException, err))
}
