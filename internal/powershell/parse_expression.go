package powershell

import (
	"slices"
	"strings"
	"unicode"
)

// levels are the binary operators written as words, from those that bind least (about_Operator_Precedence).
var levels = [][]string{
	{"and", "or", "xor"},
	{"band", "bor", "bxor", "shl", "shr"},
	comparisons(),
}

// comparisons returns the operators that compare, each with its forms that heed and that ignore letter case.
func comparisons() (out []string) {
	for _, op := range []string{"eq", "ne", "gt", "ge", "lt", "le", "like", "notlike", "match", "notmatch", "contains", "notcontains", "in",
		"notin", "replace", "split"} {
		out = append(out, op, "c"+op, "i"+op)
	}
	return append(out, "join", "is", "isnot", "as")
}

func (p *parser) expression() expression { return p.binary(0) }

func (p *parser) binary(level int) expression {
	defer p.deepen()()
	if level == len(levels) {
		return p.sum()
	}
	left := p.binary(level + 1)
	for {
		p.skipBlank()
		at := p.position()
		op, n := p.operator()
		if !slices.Contains(levels[level], op) {
			return left
		}
		p.at += n
		p.skipNewlines()
		left = &binary{at, op, left, p.binary(level + 1)}
	}
}

// operator returns the operator that begins with a dash here in lower case, and how many characters it has.
func (p *parser) operator() (string, int) {
	if !dash(p.peek()) {
		return "", 0
	}
	n := 1
	for unicode.IsLetter(p.peekAt(n)) {
		n++
	}
	return strings.ToLower(string(p.src[p.at+1 : p.at+n])), n
}

// signs reads operators of one character that are all of one level.
func (p *parser) signs(allowed string, next func() expression) expression {
	left := next()
	for {
		p.skipBlank()
		r := p.peek()
		if dash(r) && !unicode.IsLetter(p.peekAt(1)) {
			r = '-'
		} else if dash(r) {
			return left
		}
		if r == end || !strings.ContainsRune(allowed, r) || p.peekAt(1) == '=' || r == p.peekAt(1) {
			return left
		}
		at := p.position()
		p.at++
		p.skipNewlines()
		left = &binary{at, string(r), left, next()}
	}
}

func (p *parser) sum() expression     { return p.signs("+-", p.product) }
func (p *parser) product() expression { return p.signs("*/%", p.format) }

func (p *parser) format() expression {
	left := p.rangeOf()
	for {
		p.skipBlank()
		at := p.position()
		if op, n := p.operator(); op == "f" {
			p.at += n
			p.skipNewlines()
			left = &binary{at, op, left, p.rangeOf()}
			continue
		}
		return left
	}
}

func (p *parser) rangeOf() expression {
	left := p.list()
	p.skipBlank()
	if p.peek() != '.' || p.peekAt(1) != '.' {
		return left
	}
	at := p.position()
	p.at += 2
	p.skipBlank()
	return &binary{at, "..", left, p.list()}
}

// list reads values with commas between them.
func (p *parser) list() expression { return p.commas(p.unary) }

// commas reads one value, or a list of several with commas between them.
func (p *parser) commas(item func() expression) expression {
	first := item()
	if p.alone {
		return first
	}
	items := []expression{first}
	for {
		back := p.at
		p.skipBlank()
		if p.peek() != ',' {
			p.at = back
			break
		}
		p.at++
		p.skipNewlines()
		items = append(items, item())
	}
	if len(items) == 1 {
		return first
	}
	return &array{first.place(), items}
}

// unaryHere reports whether a dash here begins an expression.
func (p *parser) unaryHere() bool {
	op, n := p.operator()
	return op == "not" || op == "bnot" || op == "join" || op == "split" ||
		n == 1 && (unicode.IsDigit(p.peekAt(1)) || p.peekAt(1) == '$' || p.peekAt(1) == '(')
}

func (p *parser) unary() expression {
	defer p.deepen()()
	p.skipBlank()
	at := p.position()
	r := p.peek()
	switch {
	case r == '!':
		p.at++
		return &unary{at, "not", p.unary()}
	case p.stepHere():
		p.at += 2
		p.skipBlank()
		of := p.postfix(p.primary())
		if !assignable(of) {
			p.fail("only a variable, a property or an element can be counted by ++ and --")
		}
		return &step{at, of, stepOf(r), true}
	case r == ',':
		p.at++
		return &array{at, []expression{p.unary()}}
	case dash(r):
		op, n := p.operator()
		if n > 1 && !slices.Contains([]string{"not", "bnot", "join", "split"}, op) {
			p.fail("-%s cannot begin an expression", op)
		}
		p.at += n
		if n == 1 {
			op = "-"
		}
		return &unary{at, op, p.unary()}
	case r == '[':
		return p.cast(at)
	}
	return p.postfix(p.primary())
}

func (p *parser) cast(at Position) expression {
	p.at++
	start := p.at
	for p.peek() != ']' || p.peekAt(1) == ']' {
		if p.ends() {
			p.failAt(start-1, "[ without ]")
		}
		p.at++
	}
	name := strings.ToLower(string(p.src[start:p.at]))
	p.at++
	if p.peek() == ':' && p.peekAt(1) == ':' || p.ends() {
		return p.postfix(&cast{at, name, nil})
	}
	p.skipBlank()
	if r := p.peek(); p.ends() || dash(r) && !p.unaryHere() || r == ',' {
		return &cast{at, name, nil}
	}
	return &cast{at, name, p.unary()}
}

// numberHere reports whether a number begins here.
func (p *parser) numberHere() bool {
	return unicode.IsDigit(p.peek()) || p.peek() == '.' && unicode.IsDigit(p.peekAt(1))
}

func (p *parser) primary() expression {
	at := p.position()
	r := p.peek()
	switch {
	case r == '$':
		return p.dollar()
	case singleQuote(r):
		return p.quoted()
	case doubleQuote(r):
		return p.expandable()
	case r == '(':
		return &subexpression{at, p.enclosed(1, ')'), true}
	case r == '{':
		return p.block()
	case r == '@':
		return p.sign()
	case p.numberHere():
		return p.number()
	}
	p.fail("an expression cannot begin with %s", p.here())
	return nil
}

// enclosed reads statements behind an opening of n characters, up to the closing one.
func (p *parser) enclosed(n int, close rune) []statement {
	start := p.at
	p.at += n
	body := p.statements(close)
	if p.peek() != close {
		p.failAt(start, "this has no %q", close)
	}
	p.at++
	return body
}

func (p *parser) number() expression {
	at, start := p.position(), p.at
	for {
		r := p.peek()
		exponent := p.at > start && strings.ContainsRune("eE", p.src[p.at-1]) && (r == '+' || r == '-') && unicode.IsDigit(p.peekAt(1)) &&
			!strings.HasPrefix(string(p.src[start:p.at]), "0x")
		if !(unicode.IsDigit(r) || unicode.IsLetter(r) || exponent || r == '.' && p.peekAt(1) != '.' && unicode.IsDigit(p.peekAt(1))) {
			break
		}
		p.at++
	}
	text := string(p.src[start:p.at])
	n, ok := parseNumber(text)
	if !ok {
		p.failAt(start, "%q is no number", text)
	}
	return &literal{at, n, text}
}

// sign reads what begins with @: an array, a hash table or a here-string.
func (p *parser) sign() expression {
	at := p.position()
	switch r := p.peekAt(1); {
	case r == '(':
		return &arrayOf{at, p.enclosed(2, ')')}
	case r == '{':
		return p.hash()
	case singleQuote(r), doubleQuote(r):
		return p.hereString()
	}
	p.fail("@ wants (, { or a quote behind it here")
	return nil
}

func (p *parser) hash() expression {
	defer p.deepen()()
	defer p.listing(true)()
	h := &hash{Position: p.position()}
	start := p.at
	for p.at += 2; ; {
		p.skipLines()
		if p.peek() == '}' {
			p.at++
			return h
		}
		if p.at >= len(p.src) {
			p.failAt(start, "this has no '}'")
		}
		var key expression
		if nameStart(p.peek()) {
			at := p.position()
			key = &literal{Position: at, value: p.name()}
		} else {
			key = p.unary()
		}
		p.skipBlank()
		p.expect('=', "a hash table")
		p.skipNewlines()
		h.keys, h.values = append(h.keys, key), append(h.values, p.statement())
		p.skipBlank()
		if r := p.peek(); r != '\n' && r != ';' && r != '}' {
			p.fail("an entry of a hash table should end here, not go on with %s", p.here())
		}
	}
}
