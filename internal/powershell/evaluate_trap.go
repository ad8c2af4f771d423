package powershell

import (
	"errors"
	"slices"
)

// trapping runs statements behind traps: an error in one of them, or in what they run, goes to the trap for it (about_Trap).
func (in *Interpreter) trapping(list []statement, out emit) error {
	var traps []*trapStatement
	for _, s := range list {
		t, ok := s.(*trapStatement)
		if !ok {
			break
		}
		traps = append(traps, t)
	}
	for _, s := range list[len(traps):] {
		in.tries++
		err := in.statement(s, out)
		in.tries--
		if err == nil {
			continue
		}
		if err, taken := in.trap(traps, err, out); taken {
			if err != nil {
				return err
			}
			continue
		}
		return passedOn(err)
	}
	return nil
}

// passedOn is an error that no trap of a block takes: nothing goes on before another trap or a catch has taken it.
func passedOn(err error) error {
	var e *RunError
	if !errors.As(err, &e) {
		return err
	}
	again := *e
	again.final = true
	return &again
}

// trap runs the trap for an error, if there is one: that of the error's type before one of all errors. Behind continue the next statement
// runs, behind break none of the block, and otherwise the next one after a message.
func (in *Interpreter) trap(traps []*trapStatement, err error, out emit) (left error, taken bool) {
	var e *RunError
	if in.ends(err) || !errors.As(err, &e) {
		return err, false
	}
	i := slices.IndexFunc(traps, func(t *trapStatement) bool { return len(t.types) > 0 && t.takes(e) })
	if i < 0 {
		i = slices.IndexFunc(traps, func(t *trapStatement) bool { return len(t.types) == 0 })
	}
	if i < 0 {
		return err, false
	}
	if err := in.remember(e); err != nil {
		return err, true
	}
	in.global.put("?", false)
	err = in.trapBody(traps[i], e, out)
	var j *jumped
	switch {
	case err == nil:
		return in.failed(e, "Continue"), true
	case errors.As(err, &j) && j.word == "continue" && j.label == "":
		return nil, true
	case errors.As(err, &j) && j.word == "break" && j.label == "":
		return passedOn(e), true
	}
	return err, true
}

// trapBody runs what a trap says, in a scope of its own.
func (in *Interpreter) trapBody(t *trapStatement, e *RunError, out emit) error {
	in.caught = append(in.caught, e)
	around := in.scope
	in.scope = newScope(around)
	defer func() { in.caught, in.scope = in.caught[:len(in.caught)-1], around }()
	return in.underscore(e.asRecord(), func() error {
		_, err := in.statements(t.body, out)
		return err
	})
}
