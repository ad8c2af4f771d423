package powershell

import (
	"slices"
	"strings"
)

// code is what a function or a block consists of (about_Functions, about_Functions_Advanced).
type code struct {
	cmdlet *Cmdlet // how its parameters are given
	params []*parameter
	// advanced functions, which have an attribute CmdletBinding or Parameter, take the parameters of all commands, and refuse what
	// others have in $args.
	advanced    bool
	noPositions bool // parameters are only given by name, unless one says its position
	defaultSet  string
	changes     bool // it takes -WhatIf and -Confirm
	hasProcess  bool
	begin       []statement
	process     []statement // for each object of the pipe
	end         []statement // or all, if none of the words stands there
	plain       bool        // neither param nor one of the words
}

// functionStatement reads function Name($a) { } and filter Name { }.
func (p *parser) functionStatement(at Position, word string) statement {
	p.at += len(word)
	p.skipNewlines()
	start := p.at
	for !wordEnd(p.peek()) {
		p.at++
	}
	name := string(p.src[start:p.at])
	s := &functionStatement{Position: at, name: name}
	if prefix, rest, ok := strings.Cut(name, ":"); ok {
		s.scope, s.name = strings.ToLower(prefix), rest
		if !slices.Contains(strings.Split(scopes, ", "), s.scope) {
			p.failAt(start, "a function's name cannot begin with %s:; allowed: %s", prefix, scopes)
		}
	}
	if s.name == "" {
		p.failAt(start, "%s wants a name here, not %s", word, p.here())
	}
	s.code = &code{}
	p.skipNewlines()
	if p.peek() == '(' {
		p.parameters(s.code)
		p.skipNewlines()
	}
	p.expect('{', word)
	p.code(s.code, '}')
	p.expect('}', word)
	if word == "filter" {
		if s.code.hasProcess {
			p.failAt(start, "a filter is a process block itself; allowed: statements")
		}
		s.code.process, s.code.end, s.code.hasProcess = s.code.end, nil, true
	}
	s.code.complete(s.name)
	return s
}

// block reads { }.
func (p *parser) block() expression {
	at, start := p.position(), p.at
	p.at++
	c := &code{}
	p.code(c, '}')
	if p.peek() != '}' {
		p.failAt(start, "this has no '}'")
	}
	p.at++
	c.complete("block")
	return &block{at, c}
}

// codeParts are the words that divide a function or block.
var codeParts = []string{"begin", "process", "end"}

// code reads what stands in the braces of a function or block, or in a script, up to the closing character, which it leaves.
func (p *parser) code(c *code, close rune) {
	defer p.deepen()()
	defer p.listing(true)()
	defer func(old bool) { p.inMethod = old }(p.inMethod)
	p.inMethod = false
	p.skipLines()
	start := p.at
	attributed := p.codeAttributes(c)
	if p.keyword() == "param" && p.afterWord("param") == '(' {
		if c.params != nil {
			p.fail("a function has parameters behind its name or in param, not both")
		}
		p.at += len("param")
		p.skipNewlines()
		p.parameters(c)
		p.skipLines()
	} else if attributed {
		p.failAt(start, "an attribute of a function wants param behind it")
	}
	if slices.Contains(codeParts, p.keyword()) && p.afterWord(p.keyword()) == '{' {
		p.codeParts(c, close)
		return
	}
	c.plain = c.params == nil && !attributed
	c.end = p.statements(close)
}

func (p *parser) codeParts(c *code, close rune) {
	seen := map[string]bool{}
	for p.skipLines(); p.peek() != close && p.at < len(p.src); p.skipLines() {
		word := p.keyword()
		if !slices.Contains(codeParts, word) {
			p.fail("beside begin, process and end nothing else can stand here, but %s does", p.here())
		}
		if seen[word] {
			p.fail("%s stands twice", word)
		}
		seen[word] = true
		p.at += len(word)
		body := p.body(word)
		switch word {
		case "begin":
			c.begin = body
		case "process":
			c.process, c.hasProcess = body, true
		case "end":
			c.end = body
		}
	}
}

// afterWord is the first character behind a word that is neither blank nor the end of a line.
func (p *parser) afterWord(word string) rune {
	back := p.at
	defer func() { p.at = back }()
	p.at += len(word)
	p.skipNewlines()
	return p.peek()
}

// listing says whether commas make lists in what is read until the result is called; those between parameters do not.
func (p *parser) listing(on bool) func() {
	old := p.alone
	p.alone = !on
	return func() { p.alone = old }
}

// parameters reads ( ) with parameters.
func (p *parser) parameters(c *code) {
	p.expect('(', "param")
	c.params = []*parameter{}
	for p.skipNewlines(); p.peek() != ')'; p.skipNewlines() {
		if len(c.params) > 0 {
			p.expect(',', "param")
			p.skipNewlines()
		}
		v := p.parameterOf(c)
		if slices.ContainsFunc(c.params, func(o *parameter) bool { return strings.EqualFold(o.Name, v.Name) }) {
			p.fail("parameter $%s stands twice", v.Name)
		}
		c.params = append(c.params, v)
	}
	p.at++
}

// parameterOf reads a parameter: attributes and a type in brackets, its name, and its default.
func (p *parser) parameterOf(c *code) *parameter {
	v := &parameter{}
	for p.skipNewlines(); p.peek() == '['; p.skipNewlines() {
		p.parameterAttribute(c, v)
	}
	start := p.at
	if p.peek() != '$' {
		p.fail("param wants a variable here, not %s", p.here())
	}
	p.at++
	if v.Name = p.name(); v.Name == "" {
		p.failAt(start, "param wants a variable, as in $x")
	}
	p.skipNewlines()
	if p.peek() == '=' {
		p.at++
		p.skipNewlines()
		restore := p.listing(false)
		v.value = p.expression()
		restore()
	}
	return v
}

// complete makes of the parameters those of a command.
func (c *code) complete(name string) {
	c.cmdlet = &Cmdlet{Name: name, Changes: c.changes, bare: !c.advanced, defaultSet: c.defaultSet}
	explicit := slices.ContainsFunc(c.params, func(v *parameter) bool { return v.Position > 0 })
	for i, v := range c.params {
		switch {
		case v.kind == "switch" || v.kind == "switchparameter":
			v.Kind = Switch
		case v.kind == "bool" || v.kind == "boolean":
			v.Kind = Bool
		case v.kind == "string" && !v.Rest:
			v.Kind = String
		case v.kind == "string[]" && !v.Rest:
			v.Kind = Strings
		default:
			v.Kind = Any
		}
		if !explicit && !c.noPositions && v.Kind != Switch && !v.Rest {
			v.Position = i + 1
		}
		v.nullable = true
		c.cmdlet.Params = append(c.cmdlet.Params, v.Param)
	}
}
