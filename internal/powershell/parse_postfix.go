package powershell

// postfix reads properties, methods, elements and ++ behind a value.
func (p *parser) postfix(e expression) expression {
	defer p.deepen()()
	for n := 0; ; n++ {
		if n > maxNesting {
			p.fail("more properties in a row than are allowed: %d", maxNesting)
		}
		at := p.position()
		switch r := p.peek(); {
		case r == '.' && (nameStart(p.peekAt(1)) || p.peekAt(1) == '$' && nameStart(p.peekAt(2)) || singleQuote(p.peekAt(1)) ||
			doubleQuote(p.peekAt(1))):
			p.at++
			e = p.member(at, e, false)
		case r == '.' && blank(p.peekAt(1)) && isSubexpression(e) && nameStart(p.afterBlanks(1)): // (Get-VmHost). IovSupport
			for p.at++; blank(p.peek()); p.at++ {
			}
			e = p.member(at, e, false)
		case r == ':' && p.peekAt(1) == ':' && nameStart(p.peekAt(2)):
			p.at += 2
			e = p.member(at, e, true)
		case r == '[':
			p.at++
			p.skipNewlines()
			restore := p.listing(true)
			i := p.expression()
			restore()
			p.skipNewlines()
			p.expect(']', "an element")
			e = &index{at, e, i}
		case r == '+' && p.peekAt(1) == '+', r == '-' && p.peekAt(1) == '-':
			if !assignable(e) {
				return e
			}
			p.at += 2
			e = &step{Position: at, of: e, by: stepOf(r)}
		default:
			return e
		}
	}
}

// assignable reports whether something is a variable, a property or an element.
func assignable(e expression) bool {
	switch e := e.(type) {
	case *variable, *index:
		return true
	case *member:
		of, ofType := e.of.(*cast)
		return !e.call && (!e.static || ofType && of.of == nil)
	}
	return false
}

// stepHere reports whether ++$x or --$x stands here.
func (p *parser) stepHere() bool {
	r := p.peek()
	return (r == '+' || r == '-') && p.peekAt(1) == r && p.peekAt(2) == '$'
}

// stepOf is what ++ or -- adds.
func stepOf(sign rune) int64 {
	if sign == '-' {
		return -1
	}
	return 1
}

func isSubexpression(e expression) bool { _, ok := e.(*subexpression); return ok }

// afterBlanks is the first character from the n-th on that is no blank.
func (p *parser) afterBlanks(n int) rune {
	for blank(p.peekAt(n)) {
		n++
	}
	return p.peekAt(n)
}

func (p *parser) member(at Position, of expression, static bool) expression {
	m := &member{Position: at, of: of, static: static}
	if nameStart(p.peek()) {
		m.name = &literal{Position: at, value: p.name()}
	} else {
		m.name = p.primary()
	}
	if p.peek() != '(' {
		return m
	}
	m.call, m.args = true, p.callArguments()
	return m
}

// callArguments reads ( ) with the arguments of a method.
func (p *parser) callArguments() (args []expression) {
	p.at++
	defer p.listing(false)() // commas stand between arguments, which may be sums
	for p.skipNewlines(); p.peek() != ')'; p.skipNewlines() {
		if len(args) > 0 {
			if p.peek() != ',' {
				p.fail("arguments of a method end with ')', not %s", p.here())
			}
			p.at++
			p.skipNewlines()
		}
		args = append(args, p.expression())
	}
	p.at++
	return args
}
