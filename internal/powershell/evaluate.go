package powershell

import (
	"errors"
	"fmt"
)

// emit takes results one by one.
type emit func(any) error

// deepen counts statements in each other; call the result when they end.
func (in *Interpreter) deepen() (func(), error) {
	if in.depth++; in.depth > in.limits.Depth {
		in.depth--
		return nil, &LimitError{"levels of blocks and expressions in each other", in.limits.Depth}
	}
	return func() { in.depth-- }, nil
}

// statements runs statements; results go to out.
func (in *Interpreter) statements(list []statement, out emit) (any, error) {
	end, err := in.deepen()
	if err != nil {
		return nil, err
	}
	defer end()
	if len(list) > 0 {
		if _, traps := list[0].(*trapStatement); traps {
			return nil, in.trapping(list, out)
		}
	}
	for _, s := range list {
		if err := in.goOn(in.statement(s, out)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (in *Interpreter) statement(s statement, out emit) error {
	if err := in.tick(); err != nil {
		return err
	}
	switch s := s.(type) {
	case *pipeline:
		return in.succeeded(s, in.pipeline(s, out))
	case *assignment:
		_, err := in.assign(s)
		if of, ok := s.value.(*pipeline); ok {
			err = in.succeeded(of, err)
		}
		return err
	case *ifStatement:
		return in.ifStatement(s, out)
	case *foreachStatement:
		return in.foreach(s, out)
	case *whileStatement:
		return in.while(s, out)
	case *forStatement:
		return in.forLoop(s, out)
	case *switchStatement:
		return in.switchOn(s, out)
	case *functionStatement:
		return in.define(s)
	case *classDefinition:
		return nil
	case *tryStatement:
		return in.try(s, out)
	case *throwStatement:
		return in.throw(s)
	case *jump:
		return in.jump(s, out)
	}
	return fmt.Errorf("%v: no statement", s.place())
}

// succeeded sets $? behind an expression that has a value; commands have set it (about_Automatic_Variables).
func (in *Interpreter) succeeded(p *pipeline, err error) error {
	if _, isCommand := p.elements[0].(*command); err == nil && !isCommand {
		in.global.put("?", true)
	}
	return err
}

// emitAll emits the elements of a value.
func emitAll(v any, out emit) error {
	for _, x := range List(v) {
		if err := out(x); err != nil {
			return err
		}
	}
	return nil
}

// value runs a statement and returns its results as one value.
func (in *Interpreter) value(s statement) (any, error) {
	if a, ok := s.(*assignment); ok {
		return in.assign(a)
	}
	if p, ok := s.(*pipeline); ok && len(p.elements) == 1 && p.redirects[0] == (redirects{}) {
		if x, ok := p.elements[0].(expression); ok { // an empty or nested array stays what it is
			if _, isCommand := x.(*command); !isCommand {
				return in.expression(x)
			}
		}
	}
	list, err := in.collect(func(out emit) error { return in.statement(s, out) })
	return unwrap(list), err
}

// collect returns what do emits.
func (in *Interpreter) collect(do func(emit) error) (list []any, err error) {
	err = do(func(v any) error {
		list = append(list, v)
		if inner, nested := v.([]any); nested {
			return in.spendList(inner)
		}
		return in.spend(valueBytes)
	})
	return list, err
}

// spendList counts the values of a list with those of lists in it, as what works on a list goes through all of them.
func (in *Interpreter) spendList(list []any) error {
	left := max(0, in.limits.Memory-in.memory) / valueBytes
	n := left
	if !weigh(list, &n, maxNesting) {
		return &LimitError{"bytes of values", in.limits.Memory}
	}
	return in.spend((left - n) * valueBytes)
}

// weigh counts the values of a list down from left; false: there are more, or lists are deeper in each other.
func weigh(list []any, left *int, depth int) bool {
	for _, v := range list {
		inner, nested := v.([]any)
		if *left--; *left < 0 || nested && (depth == 0 || !weigh(inner, left, depth-1)) {
			return false
		}
	}
	return true
}

// holds reports whether a list is another one, or has it in it.
func holds(list, other []any) bool {
	if len(list) > 0 && len(other) > 0 && &list[0] == &other[0] {
		return true
	}
	for _, v := range list {
		if inner, nested := v.([]any); nested && holds(inner, other) {
			return true
		}
	}
	return false
}

// valueBytes is what a value in a list costs, roughly.
const valueBytes = 16

func (in *Interpreter) ifStatement(s *ifStatement, out emit) error {
	for i, c := range s.conditions {
		v, err := in.value(c)
		if err != nil {
			return err
		}
		if Truth(v) {
			_, err := in.statements(s.bodies[i], out)
			return err
		}
	}
	if len(s.bodies) > len(s.conditions) {
		_, err := in.statements(s.bodies[len(s.bodies)-1], out)
		return err
	}
	return nil
}

func (in *Interpreter) wrong(at interface{ place() Position }, err error) error {
	if passes(err) {
		return err
	}
	return &RunError{Position: at.place(), Err: err}
}

// pipeline runs the elements of a pipeline one after the other, each with all that the one before has emitted.
func (in *Interpreter) pipeline(s *pipeline, out emit) error {
	var input []any
	for i, e := range s.elements {
		to := out
		var collected []any
		if i < len(s.elements)-1 {
			to = func(v any) error {
				collected = append(collected, v)
				return in.spend(valueBytes)
			}
		}
		if err := in.redirected(&s.redirects[i], e, input, i > 0, to); err != nil {
			return err
		}
		input = collected
	}
	return nil
}

func (in *Interpreter) element(e element, input []any, piped bool, out emit) error {
	if c, ok := e.(*command); ok {
		return in.command(c, input, piped, out)
	}
	x := e.(expression)
	if piped {
		return in.wrong(x, errors.New("an expression can only stand first in a pipe; allowed behind |: commands"))
	}
	v, err := in.expression(x)
	if err != nil {
		return err
	}
	if _, counts := x.(*step); counts {
		return nil
	}
	return emitAll(v, out)
}

func (in *Interpreter) wrongIf(at interface{ place() Position }, err error) error {
	if err == nil {
		return nil
	}
	return in.wrong(at, err)
}
