package powershell

import (
	"slices"
	"strings"
)

// The limits of a script's text.
const (
	maxNesting = 1000    // a parenthesis counts about ten
	maxSource  = 4 << 20 // bytes
)

// Parse parses a script. Errors are *SyntaxError.
func Parse(source string) (s *Script, err error) {
	if len(source) > maxSource {
		return nil, &SyntaxError{Position{1, 1}, (&LimitError{"bytes", maxSource}).Error()}
	}
	source = strings.ReplaceAll(strings.TrimPrefix(source, "\ufeff"), "\r\n", "\n")
	p := &parser{src: []rune(source), lines: []int{0}}
	for i, r := range p.src {
		if r == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	defer func() {
		switch x := recover().(type) {
		case nil:
		case syntaxFault:
			s, err = nil, x.err
		default:
			panic(x)
		}
	}()
	if i := slices.Index(p.src, end); i >= 0 {
		p.failAt(i, "a zero character")
	}
	s = &Script{code: &code{}}
	p.code(s.code, end)
	if p.at < len(p.src) {
		p.fail("a command or an expression is missing before %s", p.here())
	}
	s.code.complete(scriptName)
	p.settleClasses()
	s.args, s.classes = p.sawArgs, p.classes
	return s, nil
}

// statements reads statements up to a closing character, which it leaves.
func (p *parser) statements(close rune) []statement {
	defer p.deepen()()
	defer p.listing(true)()
	list, traps := []statement{}, 0
	for {
		p.skipLines()
		if p.at >= len(p.src) || p.peek() == close {
			return list
		}
		s := p.statement()
		if _, trap := s.(*trapStatement); trap {
			list, traps = slices.Insert(list, traps, s), traps+1
		} else {
			list = append(list, s)
		}
		if p.skipBlank(); closed(s) {
			continue
		}
		if r := p.peek(); p.at < len(p.src) && r != '\n' && r != ';' && r != close {
			p.fail("the statement should end here, not go on with %s", p.here())
		}
	}
}

// closed reports whether a statement ends with its block, so that the next one may follow on the same line.
func closed(s statement) bool {
	switch s.(type) {
	case *pipeline, *assignment, *jump, *throwStatement:
		return false
	}
	return true
}

// unsupported are statements of the language that are not understood.
var unsupported = []string{"until", "dynamicparam",
	"workflow", "configuration", "data", "using"}

func (p *parser) statement() statement {
	at := p.position()
	if p.peek() == ':' && nameStart(p.peekAt(1)) {
		return p.labelled(at)
	}
	word := p.keyword()
	if read, ok := loops[word]; ok {
		return read(p, at, "")
	}
	switch word {
	case "if":
		return p.ifStatement(at)
	case "function", "filter":
		return p.functionStatement(at, word)
	case "param", "begin", "process", "end":
		if next := p.afterWord(word); (word == "param") == (next == '(') && (word == "param" || next == '{') {
			p.fail("%s stands at the beginning of a script, a function or a block only", word)
		}
	case "try":
		return p.tryStatement(at)
	case "class":
		return p.classStatement(at)
	case "enum":
		return p.enumStatement(at)
	case "trap":
		return p.trapStatement(at)
	case "throw":
		return p.throwStatement(at)
	case "break", "continue", "return", "exit":
		return p.jump(at, word)
	}
	if slices.Contains(unsupported, word) {
		p.fail("%s is not in the part of PowerShell that is understood; allowed: commands, pipes, assignments, if, try, trap, throw, function, filter, class, enum, %s", word, loopWords)
	}
	return p.pipeline()
}

// ends reports whether a statement ends here.
func (p *parser) ends() bool {
	return p.at >= len(p.src) || strings.ContainsRune("\n;)}|", p.peek())
}

func (p *parser) condition(what string) statement {
	p.skipNewlines()
	p.expect('(', what)
	p.skipNewlines()
	c := p.pipeline()
	p.skipNewlines()
	p.expect(')', what)
	return c
}

func (p *parser) body(what string) []statement {
	p.skipNewlines()
	p.expect('{', what)
	list := p.statements('}')
	p.expect('}', what)
	return list
}

func (p *parser) ifStatement(at Position) statement {
	s := &ifStatement{Position: at}
	p.at += len("if")
	for {
		s.conditions = append(s.conditions, p.condition("if"))
		s.bodies = append(s.bodies, p.body("if"))
		back := p.at
		p.skipNewlines()
		switch p.keyword() {
		case "elseif":
			p.at += len("elseif")
		case "else":
			p.at += len("else")
			s.bodies = append(s.bodies, p.body("else"))
			return s
		default:
			p.at = back
			return s
		}
	}
}

// pipeline reads a pipeline, or an assignment.
func (p *parser) pipeline() statement {
	defer p.deepen()()
	s := &pipeline{Position: p.position()}
	for {
		e := p.element()
		if x, ok := e.(expression); ok && len(s.elements) == 0 {
			if a := p.assignment(x); a != nil {
				return a
			}
		}
		s.elements = append(s.elements, e)
		p.skipBlank()
		s.redirects = append(s.redirects, p.redirections())
		if p.peek() != '|' {
			return s
		}
		if p.peekAt(1) == '|' {
			p.fail("|| is not in the part of PowerShell that is understood; allowed: |")
		}
		p.at++
		p.skipNewlines()
	}
}

// assignment reads the operator and value of an assignment; nil: there is none.
func (p *parser) assignment(target expression) statement {
	p.skipBlank()
	operator := ""
	switch r := p.peek(); {
	case r == '=':
		operator = "="
	case (strings.ContainsRune("+*/%", r) && r != end || dash(r)) && p.peekAt(1) == '=':
		operator = string(r) + "="
		if dash(r) {
			operator = "-="
		}
	default:
		return nil
	}
	if !settable(target) || operator != "=" && !assignable(target) {
		p.fail("only a variable, a property or an element can be set by %s", operator)
	}
	p.at += len(operator)
	p.skipNewlines()
	return &assignment{target.place(), target, operator, p.statement()}
}

// settable reports whether = can set something: what is assignable, with a type before it, or several with commas.
func settable(e expression) bool {
	switch e := e.(type) {
	case *cast:
		return e.of != nil && settable(e.of)
	case *array:
		return !slices.ContainsFunc(e.items, func(x expression) bool { return !settable(x) })
	}
	return assignable(e)
}

// element reads a command or an expression.
func (p *parser) element() element {
	p.skipBlank()
	r := p.peek()
	switch {
	case p.ends():
		p.fail("a command or an expression is missing before %s", p.here())
	case r == '&' || r == '.' && blank(p.peekAt(1)):
		return p.called()
	case p.stepHere():
		return p.expression()
	case dash(r) && !p.unaryHere():
		p.fail("a command cannot begin with a dash")
	case r == '$' || singleQuote(r) || doubleQuote(r) || strings.ContainsRune("(@[{!,", r) || dash(r) || p.numberHere():
		return p.expression()
	}
	return p.command()
}
