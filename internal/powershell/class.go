package powershell

import (
	"slices"
	"strings"
)

// class is a class or an enumeration of a script (about_Classes, about_Enum). Its members are in the order in which they stand.
type class struct {
	Position
	name       string
	baseName   string // in lower case; empty: none
	base       *class // once the script was read
	enum       bool
	properties []*classProperty
	methods    []*classMethod // constructors, which have the name of the class, among them
	// values are those of an enumeration.
	values []enumValue
}

type classProperty struct {
	parameter
	static, hidden bool
}

// classMethod is a method, or a constructor if it has the name of the class.
type classMethod struct {
	name   string
	kind   string // of what it returns, in lower case; void: nothing
	static bool
	params []*parameter
	body   []statement
	// chained are the arguments of the constructor of the base class, if there are any: A() : base($x).
	chained  []expression
	hasChain bool
}

type enumValue struct {
	name   string
	number int64
}

// line returns the class and those that it is made from, the most special first.
func (c *class) line() (out []*class) {
	for at := c; at != nil; at = at.base {
		out = append(out, at)
	}
	return out
}

// is reports whether a class has a name in lower case, or is made from one that has.
func (c *class) is(name string) bool {
	return slices.ContainsFunc(c.line(), func(x *class) bool { return strings.EqualFold(x.name, name) })
}

// property returns a property by its name in any letter case; nil: there is none.
func (c *class) property(name string, static bool) *classProperty {
	for _, at := range c.line() {
		for _, p := range at.properties {
			if p.static == static && strings.EqualFold(p.Name, name) {
				return p
			}
		}
	}
	return nil
}

// fields are the properties of objects of a class: those of its base class first.
func (c *class) fields() (out []*classProperty) {
	line := c.line()
	slices.Reverse(line)
	for _, at := range line {
		for _, p := range at.properties {
			if !p.static {
				out = append(out, p)
			}
		}
	}
	return out
}

// overloads are the methods of a name, those of the class itself before those of its base class.
func (c *class) overloads(name string, static bool) (out []*classMethod) {
	for _, at := range c.line() {
		for _, m := range at.methods {
			if m.static == static && strings.EqualFold(m.name, name) && !strings.EqualFold(m.name, at.name) {
				out = append(out, m)
			}
		}
	}
	return out
}

// constructors are those of the class itself.
func (c *class) constructors() (out []*classMethod) {
	for _, m := range c.methods {
		if strings.EqualFold(m.name, c.name) {
			out = append(out, m)
		}
	}
	return out
}

// member returns a value of an enumeration, by its name in any letter case or by its number; nil: there is none.
func (c *class) member(v any) *Object {
	for _, x := range c.values {
		n, isNumber := v.(int64)
		if isNumber && n == x.number || !isNumber && strings.EqualFold(x.name, strings.TrimSpace(Text(v))) {
			o := &Object{Type: c.name, class: c, text: x.name}
			return o.With("value__", x.number)
		}
	}
	return nil
}

// names lists the values of an enumeration, for messages.
func (c *class) names() string {
	words := make([]string, len(c.values))
	for i, v := range c.values {
		words[i] = v.name
	}
	return strings.Join(words, ", ")
}

// enumerated returns the number of a value of an enumeration.
func (o *Object) enumerated() (int64, bool) {
	if o.class == nil || !o.class.enum {
		return 0, false
	}
	v, _ := o.Get("value__")
	n, ok := v.(int64)
	return n, ok
}
