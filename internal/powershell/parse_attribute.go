package powershell

import (
	"slices"
	"strings"
)

// parameter is a parameter of a function.
type parameter struct {
	Param
	kind            string     // its type in lower case; empty: none
	value           expression // what it is by default; nil: nothing
	byValue, byName bool       // objects of the pipe are its value, or their property of its name
	set             bool       // it has an attribute Parameter
	checks          []check
}

// check is an attribute that says which values are allowed.
type check struct {
	name string // in lower case
	args []any
}

// attributeArgument is an argument of an attribute: a value, or Name = Value.
type attributeArgument struct {
	name  string // in lower case; empty: none
	value any
}

// codeAttributes reads the attributes of a function, and reports whether there were any.
func (p *parser) codeAttributes(c *code) bool {
	found := false
	for p.peek() == '[' {
		back := p.at
		p.at++
		p.skipBlank()
		name := strings.ToLower(p.name())
		if name != "cmdletbinding" && name != "outputtype" || p.peek() != '(' {
			p.at = back
			return found
		}
		found = true
		args := p.attributeArguments(name)
		p.skipNewlines()
		p.expect(']', "an attribute")
		p.skipLines()
		if name == "cmdletbinding" {
			c.advanced = true
			p.cmdletBinding(c, args)
		}
	}
	return found
}

func (p *parser) cmdletBinding(c *code, args []attributeArgument) {
	for _, a := range args {
		switch a.name {
		case "supportsshouldprocess":
			c.changes = Truth(a.value)
		case "positionalbinding":
			c.noPositions = !Truth(a.value)
		case "defaultparametersetname":
			c.defaultSet = Text(a.value)
		default:
			p.fail("CmdletBinding has no argument %q here; allowed: SupportsShouldProcess, PositionalBinding, DefaultParameterSetName", a.name)
		}
	}
}

// attributeArguments reads ( ) behind the name of an attribute.
func (p *parser) attributeArguments(attribute string) (out []attributeArgument) {
	defer p.listing(false)()
	p.at++
	for p.skipNewlines(); p.peek() != ')'; p.skipNewlines() {
		if len(out) > 0 {
			p.expect(',', "an attribute")
			p.skipNewlines()
		}
		out = append(out, p.attributeArgument(attribute))
	}
	p.at++
	return out
}

func (p *parser) attributeArgument(attribute string) attributeArgument {
	start := p.at
	if name := p.name(); name != "" && nameStart([]rune(name)[0]) {
		a := attributeArgument{strings.ToLower(name), true}
		p.skipBlank()
		if p.peek() == '=' {
			p.at++
			p.skipNewlines()
			a.value = p.constant(attribute)
		}
		return a
	}
	p.at = start
	return attributeArgument{"", p.constant(attribute)}
}

// constant reads a value that is known before the script runs.
func (p *parser) constant(attribute string) any {
	start := p.at
	switch e := p.expression().(type) {
	case *literal:
		return e.value
	case *interpolated:
		if len(e.parts) == 0 {
			return ""
		}
		if l, ok := e.parts[0].(*literal); ok && len(e.parts) == 1 {
			return l.value
		}
	case *variable:
		if v, ok := constants[e.name]; ok || e.name == "null" {
			return v
		}
	case *unary:
		if l, ok := e.of.(*literal); ok && e.operator == "-" {
			if v, err := arithmetic("-", int64(0), l.value); err == nil {
				return v
			}
		}
	case *block:
		return &Block{e.code}
	case *cast:
		if attribute == "outputtype" {
			return e.name
		}
	}
	p.failAt(start, "an attribute wants a constant here: a number, text in quotes, $true, $false, $null")
	return nil
}

// validations are the attributes that check values, with how many arguments they have at least and at most; most 0: any number.
var validations = map[string]struct{ least, most int }{"validateset": {1, 0}, "validaterange": {2, 2}, "validatelength": {2, 2},
	"validatecount": {2, 2}, "validatepattern": {1, 1}, "validatescript": {1, 1}, "validatenotnull": {}, "validatenotnullorempty": {},
	"allownull": {}, "allowemptystring": {}, "allowemptycollection": {}}

// parameterAttribute reads [Type] or [Attribute()] of a parameter.
func (p *parser) parameterAttribute(c *code, v *parameter) {
	start := p.at
	p.at++
	p.skipBlank()
	from := p.at
	for nameRune(p.peek()) || p.peek() == '.' || p.peek() == '[' && p.peekAt(1) == ']' || p.peek() == ']' && p.src[p.at-1] == '[' {
		p.at++
	}
	name := strings.ToLower(string(p.src[from:p.at]))
	p.skipBlank()
	if p.peek() != '(' {
		p.expect(']', "a type")
		p.parameterType(start, v, name)
		return
	}
	args := p.attributeArguments(name)
	p.skipNewlines()
	p.expect(']', "an attribute")
	switch rule, validates := validations[name]; {
	case name == "parameter":
		c.advanced = true
		p.parameterArguments(start, v, args)
	case name == "alias":
		for _, a := range args {
			v.Aliases = append(v.Aliases, Text(a.value))
		}
	case validates:
		v.checks = append(v.checks, p.validation(start, name, rule.least, rule.most, args))
	default:
		p.failAt(start, "attribute [%s()] is not in the part of PowerShell that is understood; allowed: Parameter, Alias, ValidateSet, "+
			"ValidateRange, ValidateLength, ValidateCount, ValidatePattern, ValidateScript, ValidateNotNull, ValidateNotNullOrEmpty, AllowNull, "+
			"AllowEmptyString, AllowEmptyCollection", name)
	}
}

func (p *parser) parameterType(start int, v *parameter, name string) {
	if v.kind != "" {
		p.failAt(start, "parameter has a type twice: [%s], [%s]", v.kind, name)
	}
	v.kind = strings.TrimPrefix(strings.TrimPrefix(name, "system."), "management.automation.")
	base := strings.TrimSuffix(v.kind, "[]")
	if !slices.Contains(conversions, base) && exceptionNamed(base) == "" && !(p.returns && v.kind == "void") {
		p.types = append(p.types, typeUsed{start, v.kind})
	}
}

func (p *parser) validation(start int, name string, least, most int, args []attributeArgument) check {
	out := check{name: name}
	for _, a := range args {
		if a.name != "" {
			p.failAt(start, "attribute [%s()] has no argument %q here", name, a.name)
		}
		out.args = append(out.args, a.value)
	}
	block := false
	if name == "validatescript" && len(args) == 1 {
		_, block = out.args[0].(*Block)
	}
	numbers := true
	for _, a := range out.args {
		_, err := number(a)
		numbers = numbers && err == nil
	}
	counts := name == "validatelength" || name == "validatecount"
	switch {
	case len(args) < least || len(args) > most && most > 0 || most == 0 && least == 0 && len(args) > 0:
		p.failAt(start, "attribute [%s()] has %d arguments; allowed: %d to %d", name, len(args), least, max(least, most))
	case name == "validatescript" && !block:
		p.failAt(start, "attribute [ValidateScript()] wants a block in braces")
	case counts && !numbers:
		p.failAt(start, "attribute [%s()] wants two numbers", name)
	}
	if name == "validatepattern" {
		if _, err := regular(Text(out.args[0]), false); err != nil {
			p.failAt(start, "%v", err)
		}
	}
	return out
}

// parameterArguments takes over what Parameter() says.
func (p *parser) parameterArguments(start int, v *parameter, args []attributeArgument) {
	if v.set {
		p.failAt(start, "a parameter with more than one attribute Parameter is not in the part of PowerShell that is understood")
	}
	v.set = true
	for _, a := range args {
		switch a.name {
		case "mandatory":
			v.Mandatory = Truth(a.value)
		case "position":
			n, err := Integer(a.value)
			if err != nil || n < 0 || n > maxNesting {
				p.failAt(start, "Position is %q; allowed: 0 to %d", Text(a.value), maxNesting)
			}
			v.Position = int(n) + 1
		case "valuefrompipeline":
			v.byValue = Truth(a.value)
		case "valuefrompipelinebypropertyname":
			v.byName = Truth(a.value)
		case "valuefromremainingarguments":
			v.Rest = Truth(a.value)
		case "parametersetname":
			v.Set = Text(a.value)
		case "helpmessage":
			v.Help = Text(a.value)
		case "dontshow":
		default:
			p.failAt(start, "Parameter has no argument %q here; allowed: Mandatory, Position, ValueFromPipeline, "+
				"ValueFromPipelineByPropertyName, ValueFromRemainingArguments, ParameterSetName, HelpMessage, DontShow", a.name)
		}
	}
}
