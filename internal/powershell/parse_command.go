package powershell

import (
	"strconv"
	"strings"
	"unicode"
)

// called reads & NAME with its arguments.
func (p *parser) called() element {
	at, dot := p.position(), p.peek() == '.'
	p.at++
	p.skipBlank()
	if p.ends() {
		p.fail("& wants a command here")
	}
	return &command{Position: at, name: p.argumentPrimary(), args: p.arguments(), dot: dot}
}

// command reads a command with its arguments.
func (p *parser) command() element {
	at := p.position()
	name := p.argumentPrimary()
	return &command{Position: at, name: name, args: p.arguments()}
}

// arguments reads parameters and values up to the end of a command.
func (p *parser) arguments() (list []argument) {
	for {
		p.skipBlank()
		if p.ends() || p.redirectionHere() {
			return list
		}
		at := p.position()
		switch r := p.peek(); {
		case dash(r) && (unicode.IsLetter(p.peekAt(1)) || p.peekAt(1) == '_' || p.peekAt(1) == '?'):
			list = append(list, p.parameter(at))
		case r == '@' && nameStart(p.peekAt(1)):
			p.at++
			a := argument{Position: at, splat: p.name()}
			p.sawArgs = p.sawArgs || strings.EqualFold(a.splat, "args")
			list = append(list, a)
		default:
			list = append(list, argument{Position: at, value: p.argumentValue()})
		}
	}
}

func (p *parser) parameter(at Position) argument {
	start := p.at + 1
	for p.at++; nameRune(p.peek()) || dash(p.peek()) || p.peek() == '?'; p.at++ {
	}
	name := strings.Map(func(r rune) rune {
		if dash(r) {
			return '-'
		}
		return r
	}, string(p.src[start:p.at]))
	a := argument{Position: at, parameter: name}
	if p.peek() == ':' {
		p.at++
		p.skipBlank()
		if p.ends() {
			p.fail("parameter -%s: wants a value here", name)
		}
		a.value = p.argumentValue()
	}
	return a
}

// argumentValue reads a value, or several with commas between them.
func (p *parser) argumentValue() expression {
	defer p.deepen()()
	return p.commas(func() expression {
		if p.ends() {
			p.fail("a value is missing behind the comma")
		}
		return p.argumentPrimary()
	})
}

func (p *parser) argumentPrimary() expression {
	r := p.peek()
	switch {
	case r == '$' && p.variableHere(), r == '(':
		return p.behindWord(p.postfix(p.primary()))
	case r == '@' && (p.peekAt(1) == '(' || p.peekAt(1) == '{' || singleQuote(p.peekAt(1)) || doubleQuote(p.peekAt(1))), r == '{':
		return p.primary()
	case singleQuote(r), doubleQuote(r):
		return p.behindWord(p.postfix(p.primary()))
	case r == '<':
		p.fail("%s stands for something that you have to write instead", p.placeholder())
	case r == '@' || r == '&' || r == ',':
		p.fail("%q cannot begin a value; put it into quotes if it is meant as text", r)
	}
	return p.word()
}

// placeholder is the text from < to >, for a message.
func (p *parser) placeholder() string {
	n := 0
	for ; p.peekAt(n) != '>' && p.peekAt(n) != '\n' && p.at+n < len(p.src); n++ {
	}
	if p.peekAt(n) != '>' {
		return "<"
	}
	return string(p.src[p.at : p.at+n+1])
}

// wordEnd reports whether a word without quotes ends before a character.
func wordEnd(r rune) bool {
	return r == end || blank(r) || strings.ContainsRune("\n;|(){},<>&", r)
}

// behindWord reads what stands without a blank behind a value: "a"b is one word, as $dir\file is.
func (p *parser) behindWord(first expression) expression {
	if wordEnd(p.peek()) {
		return first
	}
	rest := p.word()
	return &interpolated{first.place(), []expression{first, rest}}
}

// word reads a word without quotes, in which variables are replaced.
func (p *parser) word() expression {
	at := p.position()
	var parts []expression
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, &literal{Position: at, value: text.String()})
			text.Reset()
		}
	}
	plain := true
	for !wordEnd(p.peek()) {
		r := p.peek()
		switch {
		case r == '`' && p.continued() == 0 && p.at+1 < len(p.src):
			text.WriteRune(escaped(p.peekAt(1)))
			p.at += 2
			plain = false
		case r == '`' && (text.Len() > 0 || len(parts) > 0 || !plain): // a line that goes on ends the word
			return p.joined(at, parts, &text, plain)
		case r == '`':
			p.fail("a value cannot begin with a backtick at the end of a line")
		case r == '$' && p.variableHere():
			flush()
			parts = append(parts, p.postfix(p.primary()))
			plain = false
		case singleQuote(r), doubleQuote(r):
			flush()
			parts = append(parts, p.primary())
			plain = false
		default:
			text.WriteRune(r)
			p.at++
		}
	}
	if text.Len() == 0 && len(parts) == 0 && plain { // nothing was read: the parser would stand still
		p.fail("a value cannot begin with %s", p.here())
	}
	return p.joined(at, parts, &text, plain)
}

func (p *parser) joined(at Position, parts []expression, text *strings.Builder, plain bool) expression {
	if plain {
		return bareword(at, text.String())
	}
	if text.Len() > 0 {
		parts = append(parts, &literal{Position: at, value: text.String()})
	}
	return &interpolated{at, parts}
}

// bareword returns a word as a value: a number if it is one, else text.
func bareword(at Position, s string) expression {
	if n, ok := parseNumber(s); ok {
		return &literal{at, n, s}
	}
	return &literal{at, s, s}
}

// multipliers are the suffixes of numbers (about_Numeric_Literals).
var multipliers = map[string]int64{"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}

// parseNumber reads a number as scripts write it: 10, 0x1F, 1.5, 4KB.
func parseNumber(s string) (any, bool) {
	lower := strings.ToLower(s)
	if lower == "" || strings.ContainsAny(lower, "_pin") { // what Go reads as a number and PowerShell does not
		return nil, false
	}
	factor := int64(1)
	for suffix, f := range multipliers {
		if rest, ok := strings.CutSuffix(lower, suffix); ok && !strings.HasPrefix(lower, "0x") {
			lower, factor = rest, f
		}
	}
	base := 10
	digits := lower
	if rest, ok := strings.CutPrefix(lower, "0x"); ok {
		base, digits = 16, rest
	}
	if n, err := strconv.ParseInt(digits, base, 64); err == nil && (base == 10 || digits[0] != '-' && digits[0] != '+') {
		if factor > 1 && (n > 1<<62/factor || n < -(1<<62)/factor) {
			return nil, false
		}
		return n * factor, true
	}
	if base == 16 {
		return nil, false
	}
	if f, err := strconv.ParseFloat(lower, 64); err == nil {
		return f * float64(factor), true
	}
	return nil, false
}
