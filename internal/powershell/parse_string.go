package powershell

import (
	"slices"
	"strings"
)

// escapes are the characters that a backtick and a letter stand for (about_Special_Characters).
var escapes = map[rune]rune{'0': 0, 'a': '\a', 'b': '\b', 'e': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

func escaped(r rune) rune {
	if e, ok := escapes[r]; ok {
		return e
	}
	return r
}

// quoted reads a string in single quotes, in which only two quotes stand for one.
func (p *parser) quoted() expression {
	at, start := p.position(), p.at
	var b strings.Builder
	for p.at++; ; p.at++ {
		switch r := p.peek(); {
		case p.at >= len(p.src):
			p.failAt(start, "the string has no closing quote")
		case singleQuote(r) && singleQuote(p.peekAt(1)):
			b.WriteRune(r)
			p.at++
		case singleQuote(r):
			p.at++
			return &literal{Position: at, value: b.String()}
		default:
			b.WriteRune(r)
		}
	}
}

// expandable reads a string in double quotes.
func (p *parser) expandable() expression {
	at, start := p.position(), p.at
	p.at++
	return p.parts(at, func() (int, bool) {
		switch {
		case p.at >= len(p.src):
			p.failAt(start, "the string has no closing quote")
		case doubleQuote(p.peek()) && !doubleQuote(p.peekAt(1)):
			return 1, true
		}
		return 0, false
	}, true)
}

// hereString reads @" to "@, or with single quotes.
func (p *parser) hereString() expression {
	at, start := p.position(), p.at
	expands := doubleQuote(p.peekAt(1))
	p.at += 2
	for blank(p.peek()) {
		p.at++
	}
	p.expect('\n', "a here-string")
	closes := func(n int) bool {
		q := p.peekAt(n)
		return (expands && doubleQuote(q) || !expands && singleQuote(q)) && p.peekAt(n+1) == '@'
	}
	if closes(0) {
		p.at += 2
		return &literal{Position: at, value: ""}
	}
	done := func() (int, bool) {
		if p.at >= len(p.src) {
			p.failAt(start, "the here-string has no closing quote with @ at the beginning of a line")
		}
		return 3, p.peek() == '\n' && closes(1)
	}
	if expands {
		return p.parts(at, done, false)
	}
	var b strings.Builder
	for {
		if n, ok := done(); ok {
			p.at += n
			return &literal{Position: at, value: b.String()}
		}
		b.WriteRune(p.peek())
		p.at++
	}
}

// parts reads text with variables in it until done says that it ends, after so many characters.
func (p *parser) parts(at Position, done func() (int, bool), doubled bool) expression {
	defer p.deepen()()
	s := &interpolated{Position: at}
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			s.parts = append(s.parts, &literal{Position: at, value: text.String()})
			text.Reset()
		}
	}
	for {
		if n, ok := done(); ok {
			p.at += n
			flush()
			return s
		}
		r := p.peek()
		switch {
		case doubled && doubleQuote(r): // two stand for one
			text.WriteRune(r)
			p.at += 2
		case r == '`' && p.at+1 < len(p.src):
			text.WriteRune(escaped(p.peekAt(1)))
			p.at += 2
		case r == '$' && p.variableHere():
			flush()
			s.parts = append(s.parts, p.dollar())
		default:
			text.WriteRune(r)
			p.at++
		}
	}
}

// variableHere reports whether a variable or $( ) begins at the $ here.
func (p *parser) variableHere() bool {
	r := p.peekAt(1)
	return nameRune(r) || strings.ContainsRune("({?", r) && r != end || r == '$' && !nameRune(p.peekAt(2))
}

// dollar reads a variable or $( ).
func (p *parser) dollar() expression {
	if p.peekAt(1) == '(' {
		at := p.position()
		return &subexpression{Position: at, body: p.enclosed(2, ')')}
	}
	return p.variable()
}

func (p *parser) variable() expression {
	at, start := p.position(), p.at
	p.at++
	switch r := p.peek(); {
	case r == '{':
		p.at++
		from := p.at
		for p.peek() != '}' {
			if p.at >= len(p.src) || p.peek() == '\n' {
				p.failAt(start, "${ without }")
			}
			p.at++
		}
		p.at++
		return p.scoped(at, start, string(p.src[from:p.at-1]))
	case r == '?' || r == '$':
		p.at++
		return &variable{Position: at, name: string(r)}
	}
	name := p.name()
	if name == "" {
		p.failAt(start, "$ wants the name of a variable behind it")
	}
	if p.peek() == ':' && nameStart(p.peekAt(1)) {
		p.at++
		name += ":" + p.name()
	}
	return p.scoped(at, start, name)
}

// scoped returns the variable of a name with or without a scope.
func (p *parser) scoped(at Position, start int, name string) expression {
	name = strings.ToLower(name)
	prefix, rest, ok := strings.Cut(name, ":")
	switch {
	case !ok:
		prefix, rest = "", name
	case prefix == "variable":
		prefix = ""
	case rest == "" || prefix != "env" && !slices.Contains(strings.Split(scopes, ", "), prefix):
		p.failAt(start, "$%s names no variable that there is; allowed before the colon: env, variable, %s; text behind a name: ${name}:text", name, scopes)
	}
	if rest == "psitem" {
		rest = "_"
	}
	p.sawArgs = p.sawArgs || rest == "args"
	return &variable{at, rest, prefix}
}
