package powershell

import (
	"slices"
	"strings"
)

// switchWays are the parameters of switch (about_Switch).
var switchWays = []string{"exact", "wildcard", "regex", "casesensitive"}

// switchStatement reads switch -Way (value) { condition { } default { } }.
func (p *parser) switchStatement(at Position, label string) statement {
	p.at += len("switch")
	s := &switchStatement{Position: at, label: label, way: "exact"}
	for p.skipNewlines(); dash(p.peek()); p.skipNewlines() {
		switch way := p.switchWay(); way {
		case "casesensitive":
			s.heed = true
		default:
			s.way = way
		}
	}
	s.of = p.condition("switch")
	p.skipNewlines()
	p.expect('{', "switch")
	for p.skipLines(); p.peek() != '}'; p.skipLines() {
		p.clause(s)
	}
	if len(s.clauses) == 0 && !s.hasDefault {
		p.fail("switch wants a condition and a block here, not %s", p.here())
	}
	p.at++
	return s
}

// switchWay reads a parameter of switch, which may be short.
func (p *parser) switchWay() string {
	word, n := p.operator()
	if word != "" && strings.HasPrefix("file", word) {
		p.fail("switch -File is not in the part of PowerShell that is understood; allowed: a value in parentheses")
	}
	i := slices.IndexFunc(switchWays, func(w string) bool { return strings.HasPrefix(w, word) })
	if word == "" || i < 0 {
		p.fail("switch has no parameter -%s; allowed: -Exact, -Wildcard, -Regex, -CaseSensitive", word)
	}
	p.at += n
	return switchWays[i]
}

// clause reads a condition and its block.
func (p *parser) clause(s *switchStatement) {
	if p.ends() {
		p.fail("switch wants a condition and a block here, not %s", p.here())
	}
	start := p.at
	condition := p.argumentPrimary()
	body := p.body("a condition of switch")
	if l, ok := condition.(*literal); !ok || !strings.EqualFold(l.word, "default") {
		s.clauses = append(s.clauses, clause{condition, body})
		return
	}
	if s.hasDefault {
		p.failAt(start, "switch has default twice")
	}
	s.hasDefault, s.otherwise = true, body
}
