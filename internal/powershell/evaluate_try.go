package powershell

import (
	"context"
	"errors"
	"slices"
)

// try runs a body up to its first error, the catch that takes this, and in any case what finally says.
func (in *Interpreter) try(s *tryStatement, out emit) error {
	err := in.tryBody(s, out)
	if err != nil {
		err = in.catch(s, err, out)
	}
	if !s.hasFinally {
		return err
	}
	if e := in.finally(s, err, out); e != nil {
		return e
	}
	return err
}

func (in *Interpreter) tryBody(s *tryStatement, out emit) error {
	if len(s.catches) > 0 {
		in.tries++
		defer func() { in.tries-- }()
	}
	_, err := in.statements(s.body, out)
	return err
}

// catch runs the first catch for an error; the error as it is if there is none, or if it ends the script.
func (in *Interpreter) catch(s *tryStatement, err error, out emit) error {
	var e *RunError
	if in.ends(err) || !errors.As(err, &e) {
		return err
	}
	i := slices.IndexFunc(s.catches, func(c catch) bool { return c.takes(e) })
	if i < 0 {
		return err
	}
	if err := in.remember(e); err != nil {
		return err
	}
	in.global.put("?", false)
	in.caught = append(in.caught, e)
	defer func() { in.caught = in.caught[:len(in.caught)-1] }()
	return in.underscore(e.asRecord(), func() error {
		_, err := in.statements(s.catches[i].body, out)
		return err
	})
}

// takes reports whether a catch is for an error: for all, or for its type of exception or one that this is a special case of.
func (c *catch) takes(e *RunError) bool {
	kind := exceptionOf(e)
	return len(c.types) == 0 || slices.ContainsFunc(c.types, func(t string) bool {
		return isException(kind, t) || kind == divisionException && t == runtimeException
	})
}

// finally runs the statements of finally, which an interrupted script has some time for. Behind a limit nothing runs any more.
func (in *Interpreter) finally(s *tryStatement, because error, out emit) error {
	var limit *LimitError
	if errors.As(because, &limit) {
		return nil
	}
	if in.ctx.Err() != nil {
		interrupted := in.ctx
		ctx, cancel := context.WithTimeout(context.WithoutCancel(interrupted), in.limits.Cleanup)
		defer cancel()
		in.ctx = ctx
		defer func() { in.ctx = interrupted }()
	}
	_, err := in.statements(s.finally, out)
	return err
}

// throw fails with a value; without one with the error that was caught.
func (in *Interpreter) throw(s *throwStatement) error {
	switch {
	case s.value != nil:
	case len(in.caught) > 0:
		return thrown(s.Position, in.caught[len(in.caught)-1].asRecord())
	default:
		return thrown(s.Position, "ScriptHalted")
	}
	v, err := in.value(s.value)
	if err != nil {
		return err
	}
	return thrown(s.Position, v)
}
