package powershell

import (
	"slices"
	"strings"
)

// maxMembers limits the members of a class, and the classes of a script.
const maxMembers = 200

// classStatement reads class Name : Base { } (about_Classes). The script has the class from its beginning on, as in PowerShell.
func (p *parser) classStatement(at Position) statement {
	p.at += len("class")
	c := p.newClass(at)
	if p.peek() == ':' {
		p.at++
		p.skipNewlines()
		if c.baseName = strings.ToLower(p.name()); c.baseName == "" {
			p.fail("class wants the name of a class behind the colon, not %s", p.here())
		}
		p.skipNewlines()
	}
	p.expect('{', "class")
	for p.skipLines(); p.peek() != '}'; p.skipLines() {
		if len(c.properties)+len(c.methods) >= maxMembers {
			p.fail("class %s has more members than are allowed: %d", c.name, maxMembers)
		}
		p.classMember(c)
	}
	p.at++
	return &classDefinition{at}
}

// newClass reads the name of a class or an enumeration, and notes it.
func (p *parser) newClass(at Position) *class {
	p.skipBlank()
	c := &class{Position: at, name: p.name()}
	if c.name == "" {
		p.fail("a class wants a name here, not %s", p.here())
	}
	name := strings.ToLower(c.name)
	if p.classes[name] != nil || slices.Contains(conversions, name) || exceptionNamed(name) != "" {
		p.fail("there is a type [%s]", c.name)
	}
	if p.classes == nil {
		p.classes = map[string]*class{}
	}
	if p.classes[name] = c; len(p.classes) > maxMembers {
		p.fail("the script has more classes than are allowed: %d", maxMembers)
	}
	p.skipNewlines()
	return c
}

// classMember reads a property, a method or a constructor.
func (p *parser) classMember(c *class) {
	defer p.deepen()()
	static, hidden := false, false
	for ; ; p.skipNewlines() {
		switch word := p.keyword(); word {
		case "static":
			static = true
			p.at += len(word)
			continue
		case "hidden":
			hidden = true
			p.at += len(word)
			continue
		}
		break
	}
	v := &parameter{}
	p.returns = true
	for ; p.peek() == '['; p.skipNewlines() {
		p.parameterAttribute(&code{}, v)
	}
	p.returns = false
	if p.peek() == '$' {
		p.classProperty(c, v, static, hidden)
		return
	}
	start := p.at
	m := &classMethod{name: p.name(), kind: v.kind, static: static}
	p.skipBlank()
	if m.name == "" || p.peek() != '(' {
		p.failAt(start, "class %s wants a property ($Name) or a method (Name()) here", c.name)
	}
	if len(v.checks) > 0 || v.set || len(v.Aliases) > 0 {
		p.failAt(start, "a method has no attributes here")
	}
	if static && strings.EqualFold(m.name, c.name) {
		p.failAt(start, "a constructor cannot be static here")
	}
	p.method(c, m)
	c.methods = append(c.methods, m)
}

func (p *parser) classProperty(c *class, v *parameter, static, hidden bool) {
	start := p.at
	p.at++
	if v.Name = p.name(); v.Name == "" {
		p.failAt(start, "a property wants a name, as in $Name")
	}
	if v.kind == "void" {
		p.failAt(start, "a property cannot be [void]")
	}
	if v.set || len(v.Aliases) > 0 {
		p.failAt(start, "a property has no attribute Parameter or Alias")
	}
	if slices.ContainsFunc(c.properties, func(o *classProperty) bool { return strings.EqualFold(o.Name, v.Name) }) {
		p.failAt(start, "property $%s stands twice", v.Name)
	}
	p.skipBlank()
	if p.peek() == '=' {
		p.at++
		p.skipNewlines()
		v.value = p.expression()
		p.skipBlank()
	}
	if r := p.peek(); r != '\n' && r != ';' && r != '}' {
		p.fail("a property should end here, not go on with %s", p.here())
	}
	c.properties = append(c.properties, &classProperty{*v, static, hidden})
}

// method reads the parameters and the body of a method or constructor.
func (p *parser) method(c *class, m *classMethod) {
	start := p.at
	of := &code{}
	p.parameters(of)
	for _, v := range of.params {
		if v.value != nil || v.set {
			p.failAt(start, "parameters of methods have neither defaults nor the attribute Parameter; write another method of that name")
		}
	}
	m.params = of.params
	p.skipNewlines()
	if p.peek() == ':' {
		p.at++
		p.skipNewlines()
		if p.keyword() != "base" || !strings.EqualFold(m.name, c.name) {
			p.fail("only a constructor goes on with a colon: base(...)")
		}
		p.at += len("base")
		if p.peek() != '(' {
			p.fail("base wants '(' here, not %s", p.here())
		}
		m.chained, m.hasChain = p.callArguments(), true
		p.skipNewlines()
	}
	old := p.inMethod
	p.inMethod = true
	m.body = p.body("a method")
	p.inMethod = old
}

// enumStatement reads enum Name { A; B = 5 } (about_Enum).
func (p *parser) enumStatement(at Position) statement {
	p.at += len("enum")
	c := p.newClass(at)
	c.enum = true
	p.expect('{', "enum")
	next := int64(0)
	for p.skipLines(); p.peek() != '}'; p.skipLines() {
		start := p.at
		v := enumValue{name: p.name(), number: next}
		switch {
		case v.name == "" || !nameStart([]rune(v.name)[0]):
			p.failAt(start, "enum wants a name here, not %s", p.here())
		case c.member(v.name) != nil:
			p.failAt(start, "%s stands twice", v.name)
		case len(c.values) >= maxMembers:
			p.failAt(start, "enum %s has more values than are allowed: %d", c.name, maxMembers)
		}
		if p.skipBlank(); p.peek() == '=' {
			p.at++
			p.skipBlank()
			n, err := Integer(p.constant("enum"))
			if err != nil {
				p.failAt(start, "%s wants a whole number", v.name)
			}
			v.number = n
		}
		c.values = append(c.values, v)
		next = v.number + 1
		p.skipBlank()
		if r := p.peek(); r != '\n' && r != ';' && r != '}' {
			p.fail("a value of an enum should end here, not go on with %s", p.here())
		}
	}
	p.at++
	if len(c.values) == 0 {
		p.fail("enum %s has no values", c.name)
	}
	return &classDefinition{at}
}

// typeUsed is a type that was read before it is known whether there is such a class.
type typeUsed struct {
	at   int
	name string
}

// settleClasses finds the base classes, and refuses types that there are not.
func (p *parser) settleClasses() {
	for _, t := range p.types {
		if p.classes[strings.TrimSuffix(t.name, "[]")] == nil {
			p.failAt(t.at, "type [%s] is not in the part of PowerShell that is understood; allowed: %s, and classes of the script", t.name,
				strings.Join(conversions, ", "))
		}
	}
	for _, c := range p.classes {
		if c.baseName == "" {
			continue
		}
		if c.base = p.classes[c.baseName]; c.base == nil || c.base.enum {
			panic(syntaxFault{&SyntaxError{c.Position, "class " + c.name + ": there is no class " + c.baseName + " in the script to be made from"}})
		}
	}
	for _, c := range p.classes {
		n := 0
		for at := c; at != nil; at = at.base {
			if n++; n > len(p.classes) {
				panic(syntaxFault{&SyntaxError{c.Position, "class " + c.name + " is made from itself"}})
			}
		}
	}
}
