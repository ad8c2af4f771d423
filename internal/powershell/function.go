package powershell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// function is a function of a script.
type function struct {
	name string
	code *code
}

// define is the statement function.
func (in *Interpreter) define(s *functionStatement) error {
	to := in.scopeOf(s.scope)
	if to.functions == nil {
		to.functions = map[string]*function{}
	}
	to.functions[strings.ToLower(s.name)] = &function{s.name, s.code}
	return in.spend(valueBytes + len(s.name))
}

// function returns the function of a name; nil: there is none.
func (in *Interpreter) function(name string) *function {
	name = strings.ToLower(name)
	for s := in.scope; s != nil; s = s.around {
		if f, ok := s.functions[name]; ok {
			return f
		}
	}
	return nil
}

// invocation is one call of a function or block.
type invocation struct {
	in    *Interpreter
	at    Position
	name  string
	code  *code
	bound bound
	out   emit
}

// invoke calls a function or a block: in a scope of its own, or, behind a dot, in that of who calls.
func (in *Interpreter) invoke(e *command, name string, c *code, args []given, input []any, piped bool, out emit) error {
	if in.calls++; in.calls > in.limits.Calls {
		in.calls--
		return fmt.Errorf("%v: %s: %w", e.Position, name, &LimitError{"calls of functions in each other", in.limits.Calls})
	}
	defer func() { in.calls-- }()
	b, rest, err := c.bind(args)
	if err == nil && !piped {
		err = c.cmdlet.complete(b)
	}
	if err != nil {
		return &RunError{Position: e.Position, Command: name, Err: classify(bindingException, err)}
	}
	if v, ok := b["OutVariable"].(string); ok && c.advanced {
		out = in.keeping(v, out)
	}
	if !e.dot {
		around := in.scope
		in.scope = newScope(around)
		defer func() { in.scope = around }()
	}
	i := &invocation{in, e.Position, name, c, b, out}
	if err := i.prepare(rest, input); err != nil {
		return err
	}
	return i.run(input, piped)
}

// bind gives arguments to parameters. What none takes is in the list, if the function has $args.
func (c *code) bind(args []given) (bound, []any, error) {
	b, values, err := bindNames(c.cmdlet, args)
	if err != nil {
		return nil, nil, err
	}
	var rest []any
	if c.cmdlet.bare {
		values, rest = c.divided(b, values)
	}
	if err := bindPositions(c.cmdlet, b, values); err != nil {
		return nil, nil, err
	}
	return b, rest, c.cmdlet.oneSet(b)
}

// divided are the values that parameters take by their positions, and the others: names that are none of a parameter, and what is left.
func (c *code) divided(b bound, values []given) (taken []given, rest []any) {
	open := 0
	for _, p := range c.cmdlet.Params {
		if _, done := b[p.Name]; !done && p.Position > 0 {
			open++
		}
	}
	for _, g := range values {
		switch {
		case g.parameter != "":
			rest = append(rest, "-"+g.parameter)
			if g.colon {
				rest = append(rest, unwords(g.value))
			}
		case len(taken) < open:
			taken = append(taken, g)
		default:
			rest = append(rest, unwords(g.value))
		}
	}
	return taken, rest
}

// prepare sets the variables with which the function begins.
func (i *invocation) prepare(rest, input []any) error {
	in, s := i.in, i.in.scope
	given := &Table{}
	for _, v := range i.code.params {
		x, ok := i.bound[v.Name]
		if !ok {
			continue
		}
		value, err := i.set(v, x)
		if err != nil {
			return err
		}
		given.With(v.Name, value)
	}
	for _, v := range i.code.params {
		if _, ok := i.bound[v.Name]; ok {
			continue
		}
		if err := i.setDefault(v); err != nil {
			return err
		}
	}
	s.put("psboundparameters", given)
	s.put("input", slices.Clone(input))
	s.put("myinvocation", NewObject("System.Management.Automation.InvocationInfo").With("MyCommand",
		NewObject("System.Management.Automation.FunctionInfo", "Name").With("Name", i.name)).With("ScriptLineNumber", int64(i.at.Line)))
	if i.code.advanced {
		i.common()
	} else {
		s.put("args", append([]any{}, rest...))
	}
	return in.spend((len(rest) + len(input) + 16) * valueBytes)
}

// common makes of the parameters that all commands have what holds for those that the function runs.
func (i *invocation) common() {
	s := i.in.scope
	for name, variable := range map[string]string{"ErrorAction": "erroractionpreference", "WarningAction": "warningpreference"} {
		if v, ok := i.bound[name].(string); ok {
			s.put(variable, v)
		}
	}
	for name, values := range map[string][3]any{"Verbose": {"verbosepreference", "Continue", "SilentlyContinue"},
		"WhatIf": {"whatifpreference", true, false}, "Confirm": {"confirmpreference", "Low", "None"}} {
		if on, ok := i.bound[name].(bool); ok {
			s.put(values[0].(string), map[bool]any{true: values[1], false: values[2]}[on])
		}
	}
	o := NewObject("System.Management.Automation.PSScriptCmdlet").With("ParameterSetName", i.code.cmdlet.set(i.bound))
	o.call = i.in.call(i.code.cmdlet, i.bound, i.out)
	s.put("pscmdlet", o)
}

// set gives a parameter its value, and returns it as the function sees it.
func (i *invocation) set(v *parameter, x any) (any, error) {
	value, err := v.checked(i.in, x)
	if err != nil {
		return nil, i.wrong(err)
	}
	i.in.scope.variables[strings.ToLower(v.Name)] = &slot{value: value, kind: v.kind}
	return value, i.in.spend(valueBytes + len(v.Name))
}

// setDefault gives a parameter that was not given its default, or what its type has for nothing.
func (i *invocation) setDefault(v *parameter) error {
	var x any
	if v.value != nil {
		var err error
		if x, err = i.in.expression(v.value); err != nil {
			return err
		}
	}
	if v.value != nil || slices.Contains(zeroed, v.kind) {
		var err error
		if x, err = i.in.convertTo(v.kind, x); err != nil {
			return i.wrong(&ParameterError{"-" + v.Name, Text(x), "[" + v.kind + "]"})
		}
	}
	i.in.scope.variables[strings.ToLower(v.Name)] = &slot{value: x, kind: v.kind}
	return nil
}

func (i *invocation) wrong(err error) error {
	if passes(err) {
		return err
	}
	return &RunError{Position: i.at, Command: i.name, Err: classify(bindingException, err)}
}

// run runs the parts of the function: the process part for each object of the pipe, or once if there is no pipe.
func (i *invocation) run(input []any, piped bool) error {
	if err := i.part(i.code.begin); err != nil {
		return err
	}
	for _, x := range input {
		if err := i.take(x); err != nil {
			return err
		}
	}
	if !piped && i.code.hasProcess {
		if err := i.part(i.code.process); err != nil {
			return err
		}
	}
	return i.part(i.code.end)
}

func (i *invocation) part(body []statement) error {
	if body == nil {
		return nil
	}
	_, err := i.in.statements(body, i.out)
	return returned(err)
}

// take gives an object of the pipe to the parameters that take it, and runs the process part.
func (i *invocation) take(x any) error {
	if err := i.in.tick(); err != nil {
		return err
	}
	if err := i.fromPipe(x); err != nil {
		var run *RunError
		if errors.As(err, &run) && run.Command == i.name && !run.final {
			return i.in.failed(run, i.in.preference())
		}
		return err
	}
	if !i.code.hasProcess {
		return nil
	}
	return i.in.underscore(x, func() error { return i.part(i.code.process) })
}

// fromPipe sets the parameters that take an object of the pipe, or a property of it (about_Pipelines).
func (i *invocation) fromPipe(x any) error {
	if !i.code.advanced {
		return nil
	}
	taken, now := false, bound{}
	for k, v := range i.bound {
		now[k] = v
	}
	for _, v := range i.code.params {
		if _, given := i.bound[v.Name]; given {
			continue
		}
		from, ok := v.of(i.in, x)
		if !ok {
			continue
		}
		if _, err := i.set(v, from); err != nil {
			return err
		}
		now[v.Name], taken = from, true
	}
	if !taken {
		return i.wrong(fmt.Errorf("takes nothing of a value of %s from the pipe", typeName(x)))
	}
	if err := i.code.cmdlet.complete(now); err != nil {
		return i.wrong(err)
	}
	return nil
}

// of returns what a parameter takes of an object of the pipe.
func (v *parameter) of(in *Interpreter, x any) (any, bool) {
	if v.byName {
		for _, name := range append([]string{v.Name}, v.Aliases...) {
			if p := in.property(x, name); p != nil {
				return p, true
			}
		}
	}
	if !v.byValue {
		return nil, false
	}
	_, err := in.convertTo(v.kind, x)
	return x, err == nil
}
