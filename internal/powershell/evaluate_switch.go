package powershell

import "errors"

// switchOn runs the bodies of all conditions that hold, for each element of a list, until break or continue (about_Switch).
func (in *Interpreter) switchOn(s *switchStatement, out emit) error {
	list, err := in.switchValues(s.of)
	if err != nil {
		return err
	}
	for _, v := range list {
		if err := in.tick(); err != nil {
			return err
		}
		err := in.underscore(v, func() error { return in.clauses(s, v, out) })
		var j *jumped
		if errors.As(err, &j) && j.leaves(s.label) {
			if j.word == "break" {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// switchValues returns what a switch is on. A value that is nothing is one, and a command that returns nothing is none.
func (in *Interpreter) switchValues(s statement) ([]any, error) {
	v, err := in.value(s)
	if err != nil || v != nil {
		return List(v), err
	}
	if p, ok := s.(*pipeline); ok && len(p.elements) == 1 {
		if _, isCommand := p.elements[0].(*command); !isCommand {
			return []any{nil}, nil
		}
	}
	return nil, nil
}

func (in *Interpreter) clauses(s *switchStatement, v any, out emit) error {
	some := false
	for _, c := range s.clauses {
		holds, err := in.clauseHolds(s, c.condition, v)
		if err != nil {
			return err
		}
		if !holds {
			continue
		}
		some = true
		if _, err := in.statements(c.body, out); err != nil {
			return err
		}
	}
	if some || !s.hasDefault {
		return nil
	}
	_, err := in.statements(s.otherwise, out)
	return err
}

// clauseHolds reports whether a condition holds for a value: a block that returns something, or one that the value equals or matches.
// Ways that are for text are ignored for conditions that are none.
func (in *Interpreter) clauseHolds(s *switchStatement, condition expression, v any) (bool, error) {
	want, err := in.expression(condition)
	if err != nil {
		return false, err
	}
	if b, ok := want.(*Block); ok {
		list, err := in.collect(func(out emit) error { return in.run(b, v, out) })
		return Truth(unwrap(list)), err
	}
	text, isText := want.(string)
	if !isText || s.way == "exact" {
		return equal(v, want, s.heed), nil
	}
	build := regular
	if s.way == "wildcard" {
		build = wildcard
	}
	re, err := build(text, s.heed)
	if err != nil {
		return false, in.wrong(condition, err)
	}
	if !re.MatchString(Text(v)) {
		return false, nil
	}
	if s.way == "regex" {
		in.match(Text(v), text, s.heed)
	}
	return true, nil
}
