package powershell

import (
	"errors"
	"strings"
)

// jumped is how break, continue, return and exit leave statements.
type jumped struct {
	word  string
	label string // of break and continue; empty: the innermost loop
	value any
}

func (j *jumped) Error() string { return j.word + " outside of a loop" }

// leaves reports whether it is break or continue of the loop with a label, or of the innermost one.
func (j *jumped) leaves(label string) bool {
	return (j.word == "break" || j.word == "continue") && (j.label == "" || strings.EqualFold(j.label, label))
}

func (in *Interpreter) jump(s *jump, out emit) error {
	j := &jumped{word: s.word}
	if s.label != nil {
		v, err := in.expression(s.label)
		if err != nil {
			return err
		}
		j.label = Text(v)
	}
	if s.value == nil {
		return j
	}
	v, err := in.value(s.value)
	if err != nil {
		return err
	}
	if j.value = v; s.word == "return" && !s.method {
		if err := emitAll(v, out); err != nil {
			return err
		}
	}
	return j
}

// tick counts a step, and ends a script that has made too many or was interrupted.
func (in *Interpreter) tick() error {
	if in.steps++; in.steps > in.limits.Steps {
		return &LimitError{"steps", in.limits.Steps}
	}
	return in.ctx.Err()
}

// turn runs the body of a loop once; over: the loop ends.
func (in *Interpreter) turn(label string, body []statement, out emit) (over bool, err error) {
	if err := in.tick(); err != nil {
		return true, err
	}
	_, err = in.statements(body, out)
	var j *jumped
	if errors.As(err, &j) && j.leaves(label) {
		return j.word == "break", nil
	}
	return false, err
}

func (in *Interpreter) foreach(s *foreachStatement, out emit) error {
	v, err := in.value(s.list)
	if err != nil {
		return err
	}
	for _, x := range List(v) {
		if err := in.set(s.variable, x); err != nil {
			return err
		}
		if over, err := in.turn(s.label, s.body, out); over || err != nil {
			return err
		}
	}
	return nil
}

// while is while, do while and do until.
func (in *Interpreter) while(s *whileStatement, out emit) error {
	for first := true; ; first = false {
		if !first || !s.after {
			v, err := in.value(s.condition)
			if err != nil || Truth(v) == s.until {
				return err
			}
		}
		if over, err := in.turn(s.label, s.body, out); over || err != nil {
			return err
		}
	}
}

// forLoop is for. What its first and last part return is nobody's.
func (in *Interpreter) forLoop(s *forStatement, out emit) error {
	if s.first != nil {
		if err := in.statement(s.first, discard); err != nil {
			return err
		}
	}
	for {
		if s.condition != nil {
			v, err := in.value(s.condition)
			if err != nil || !Truth(v) {
				return err
			}
		}
		if over, err := in.turn(s.label, s.body, out); over || err != nil {
			return err
		}
		if s.next != nil {
			if err := in.statement(s.next, discard); err != nil {
				return err
			}
		}
	}
}

func discard(any) error { return nil }
