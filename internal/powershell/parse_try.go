package powershell

import "strings"

// tryStatement reads try { } catch [Type] { } finally { } (about_Try_Catch_Finally).
func (p *parser) tryStatement(at Position) statement {
	p.at += len("try")
	s := &tryStatement{Position: at, body: p.body("try")}
	for {
		back := p.at
		p.skipNewlines()
		switch p.keyword() {
		case "catch":
			if n := len(s.catches); n > 0 && len(s.catches[n-1].types) == 0 {
				p.fail("the catch before this one catches all; it has to be the last")
			}
			p.at += len("catch")
			types := p.catchTypes()
			s.catches = append(s.catches, catch{types, p.body("catch")})
		case "finally":
			p.at += len("finally")
			s.finally, s.hasFinally = p.body("finally"), true
			return s
		default:
			if len(s.catches) == 0 {
				p.fail("try wants catch or finally behind its block, not %s", p.here())
			}
			p.at = back
			return s
		}
	}
}

// catchTypes reads the types of exceptions of a catch.
func (p *parser) catchTypes() (types []string) {
	for p.skipNewlines(); p.peek() == '['; p.skipNewlines() {
		start := p.at
		for p.at++; p.peek() != ']'; p.at++ {
			if p.ends() {
				p.failAt(start, "[ without ]")
			}
		}
		name := strings.TrimSpace(string(p.src[start+1 : p.at]))
		kind := exceptionNamed(name)
		if kind == "" {
			p.failAt(start, "there are no exceptions of type [%s]; allowed: %s", name, exceptionNames())
		}
		types = append(types, kind)
		p.at++
		p.skipNewlines()
		if p.peek() != ',' {
			return types
		}
		p.at++
	}
	if len(types) > 0 {
		p.fail("catch wants a type in brackets behind the comma, not %s", p.here())
	}
	return nil
}

// trapStatement reads trap [Type] { } (about_Trap).
func (p *parser) trapStatement(at Position) statement {
	p.at += len("trap")
	types := p.catchTypes()
	if len(types) > 1 {
		p.fail("trap takes one type of exceptions; write another trap for %s", types[1])
	}
	return &trapStatement{at, catch{types, p.body("trap")}}
}

func (p *parser) throwStatement(at Position) statement {
	p.at += len("throw")
	p.skipBlank()
	s := &throwStatement{Position: at}
	if !p.ends() {
		s.value = p.pipeline()
	}
	return s
}
