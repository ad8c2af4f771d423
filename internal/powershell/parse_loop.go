package powershell

import "strings"

// loops read the statements that break and continue end or go on with, by their first word. A label may stand before them (about_Break).
var loops map[string]func(*parser, Position, string) statement

func init() {
	loops = map[string]func(*parser, Position, string) statement{"foreach": (*parser).foreachStatement, "while": (*parser).whileStatement,
		"do": (*parser).doStatement, "for": (*parser).forStatement, "switch": (*parser).switchStatement}
}

// labelled reads :name and the loop behind it.
func (p *parser) labelled(at Position) statement {
	p.at++
	label := strings.ToLower(p.name())
	p.skipNewlines()
	word := p.keyword()
	read, ok := loops[word]
	if !ok {
		p.fail("the label :%s wants a loop behind it; allowed: %s", label, loopWords)
	}
	return read(p, at, label)
}

// loopWords are those words, for messages.
const loopWords = "for, foreach, while, do, switch"

func (p *parser) foreachStatement(at Position, label string) statement {
	p.at += len("foreach")
	p.skipNewlines()
	p.expect('(', "foreach")
	p.skipNewlines()
	if p.peek() != '$' {
		p.fail("foreach wants a variable here, as in foreach ($x in $list)")
	}
	v, ok := p.variable().(*variable)
	if !ok {
		p.fail("foreach wants a variable, as in foreach ($x in $list)")
	}
	p.skipNewlines()
	if p.keyword() != "in" {
		p.fail("foreach wants the word in here, as in foreach ($x in $list)")
	}
	p.at += len("in")
	p.skipNewlines()
	list := p.pipeline()
	p.skipNewlines()
	p.expect(')', "foreach")
	return &foreachStatement{at, label, v, list, p.body("foreach")}
}

func (p *parser) whileStatement(at Position, label string) statement {
	p.at += len("while")
	c := p.condition("while")
	return &whileStatement{Position: at, label: label, condition: c, body: p.body("while")}
}

// doStatement reads do { } while ( ) and do { } until ( ) (about_Do).
func (p *parser) doStatement(at Position, label string) statement {
	p.at += len("do")
	s := &whileStatement{Position: at, label: label, after: true, body: p.body("do")}
	p.skipNewlines()
	word := p.keyword()
	if word != "while" && word != "until" {
		p.fail("do wants while or until behind its block, not %s", p.here())
	}
	p.at += len(word)
	s.until = word == "until"
	s.condition = p.condition(word)
	return s
}

// forStatement reads for (first; condition; next) { }. Each part may be missing, and a new line may stand for a semicolon (about_For).
func (p *parser) forStatement(at Position, label string) statement {
	p.at += len("for")
	p.skipNewlines()
	p.expect('(', "for")
	s := &forStatement{Position: at, label: label}
	for i, part := range []*statement{&s.first, &s.condition, &s.next} {
		p.skipNewlines()
		if r := p.peek(); r != ';' && r != ')' {
			*part = p.pipeline()
		}
		p.skipBlank()
		if r := p.peek(); i < 2 && (r == ';' || r == '\n') {
			p.at++
		}
	}
	p.skipNewlines()
	p.expect(')', "for")
	s.body = p.body("for")
	return s
}

// jump reads break, continue, return or exit. Behind the first two a label may stand, behind the others a value.
func (p *parser) jump(at Position, word string) statement {
	p.at += len(word)
	p.skipBlank()
	j := &jump{Position: at, word: word, method: p.inMethod && word == "return"}
	switch {
	case p.ends():
	case word == "break" || word == "continue":
		j.label = p.argumentPrimary()
	default:
		j.value = p.pipeline()
	}
	return j
}
