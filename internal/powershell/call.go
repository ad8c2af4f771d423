package powershell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Call is one run of a command: with its parameters, and with an object of the pipe, if one came.
type Call struct {
	Context context.Context
	Cmdlet  *Cmdlet
	in      *Interpreter
	args    bound
	out     emit
	// Input is the object that came through the pipe, if HasInput.
	Input    any
	HasInput bool
	err      error
}

// Given reports whether a parameter has a value.
func (c *Call) Given(name string) bool { _, ok := c.args[name]; return ok }

// Text returns a parameter of kind String, "" if it has no value.
func (c *Call) Text(name string) string { s, _ := c.args[name].(string); return s }

// Texts returns a parameter of kind Strings.
func (c *Call) Texts(name string) []string { s, _ := c.args[name].([]string); return s }

// Number returns a parameter of kind Number, 0 if it has no value.
func (c *Call) Number(name string) int64 { n, _ := c.args[name].(int64); return n }

// Numbers returns a parameter of kind Numbers.
func (c *Call) Numbers(name string) []int64 { n, _ := c.args[name].([]int64); return n }

// Bool returns a parameter of kind Bool or Switch.
func (c *Call) Bool(name string) bool { b, _ := c.args[name].(bool); return b }

// Value returns a parameter of kind Any.
func (c *Call) Value(name string) any { return c.args[name] }

// Emit hands a result on.
func (c *Call) Emit(v any) {
	if c.err == nil {
		c.err = c.out(v)
	}
}

// Warn prints a warning.
func (c *Call) Warn(format string, args ...any) {
	if a := c.Text("WarningAction"); a == "SilentlyContinue" || a == "Ignore" {
		return
	}
	c.in.warn(format, args...)
}

func (in *Interpreter) warn(format string, args ...any) {
	if strings.EqualFold(Text(in.get("warningpreference")), "SilentlyContinue") {
		return
	}
	in.sayf(warningRecord, format, args...)
}

// Verbose prints what is done, with -Verbose.
func (c *Call) Verbose(format string, args ...any) {
	if c.Bool("Verbose") || strings.EqualFold(Text(c.in.get("verbosepreference")), "Continue") {
		c.in.sayf(verboseRecord, format, args...)
	}
}

// Should reports whether to do something: not with -WhatIf, which says what would be done, and with -Confirm if the user says so.
func (c *Call) Should(action, target string) bool {
	if c.Bool("WhatIf") || !c.Given("WhatIf") && (c.in.cfg.WhatIf || Truth(c.in.get("whatifpreference"))) {
		c.in.sayf(whatIfRecord, "Performing the operation %q on target %q.", action, target)
		return false
	}
	if c.Bool("Confirm") || !c.Given("Confirm") && strings.EqualFold(Text(c.in.get("confirmpreference")), "Low") {
		yes, err := c.in.cfg.Host.Confirm(fmt.Sprintf("Performing the operation %q on target %q.", action, target))
		if err != nil && c.err == nil {
			c.err = err
		}
		if !yes || err != nil {
			return false
		}
	}
	c.Verbose("Performing the operation %q on target %q.", action, target)
	return true
}

// shouldProcess is $PSCmdlet.ShouldProcess(target) or (target, action).
func (c *Call) shouldProcess(args []any) (any, error) {
	action := c.Cmdlet.Name
	if len(args) == 2 {
		action = Text(args[1])
	}
	yes := c.Should(action, Text(args[0]))
	err := c.err
	c.err = nil
	return yes, err
}

// command runs a command.
func (in *Interpreter) command(e *command, input []any, piped bool, out emit) error {
	end, err := in.deepen()
	if err != nil {
		return err
	}
	defer end()
	if err := in.tick(); err != nil {
		return err
	}
	v, err := in.expression(e.name)
	if err != nil {
		return err
	}
	args, err := in.evaluate(e.args)
	if err != nil {
		return err
	}
	if b, ok := v.(*Block); ok { // & { }
		return in.invoke(e, "block", b.code, args, input, piped, out)
	}
	name := Text(v)
	if f := in.function(name); f != nil {
		return in.invoke(e, f.name, f.code, args, input, piped, out)
	}
	c := in.find(name)
	if c == nil {
		return in.program(e, name, args, input, out)
	}
	b, err := in.bind(c, args)
	if err != nil {
		return &RunError{Position: e.Position, Command: c.Name, Err: classify(bindingException, err)}
	}
	action, ok := b["ErrorAction"].(string)
	if !ok {
		action = in.preference()
	}
	in.global.put("?", true)
	if v, ok := b["OutVariable"].(string); ok {
		out = in.keeping(v, out)
	}
	fail := in.failing(e, c, b, action)
	if err := c.complete(b); err != nil && (c.whole != nil || !piped) { // it ends the statement, as all wrong parameters do
		return &RunError{Position: e.Position, Command: c.Name, Err: classify(bindingException, err)}
	}
	if c.whole != nil {
		if !piped {
			input = inputParameter(b)
		}
		call := in.call(c, b, out)
		return fail(errors.Join(c.whole(call, input), call.err))
	}
	if !piped {
		return fail(in.once(c, b, nil, false, out))
	}
	for _, x := range input {
		if err := fail(in.once(c, b, x, true, out)); err != nil {
			return err
		}
	}
	return nil
}

// keeping returns what keeps results in a variable, with those that it has if its name begins with +, and hands them on.
func (in *Interpreter) keeping(variable string, to emit) emit {
	name, more := strings.CutPrefix(strings.ToLower(variable), "+")
	s, list := in.scope, []any{}
	if more {
		list = slices.Clone(List(in.get(name)))
	}
	s.put(name, list)
	return func(x any) error {
		list = append(list, x)
		s.put(name, list)
		return to(x)
	}
}

// failing returns what reports errors of a command.
func (in *Interpreter) failing(e *command, c *Cmdlet, b bound, action string) func(error) error {
	host := builtin(c.Name) != c
	variable, _ := b["ErrorVariable"].(string)
	variable, more := strings.CutPrefix(strings.ToLower(variable), "+")
	var list []any
	if more {
		list = slices.Clone(List(in.get(variable)))
	}
	if variable != "" {
		in.put(variable, slices.Clip(list))
	}
	return func(err error) error {
		if err == nil || passes(err) {
			return err
		}
		if host {
			err = classify(cimException, err)
		}
		run := &RunError{Position: e.Position, Command: c.Name, Err: err}
		if variable != "" && !in.ends(run) {
			list = append(list, run.asRecord())
			in.put(variable, slices.Clip(list))
			if err := in.spend(recordBytes); err != nil {
				return err
			}
		}
		return in.failed(run, action)
	}
}

// passes reports whether an error is none of a command, but ends or leaves statements.
func passes(err error) bool {
	var j *jumped
	var limit *LimitError
	var run *RunError
	return errors.As(err, &j) || errors.As(err, &limit) || errors.As(err, &run)
}

func inputParameter(b bound) []any { return List(b["InputObject"]) }

func (in *Interpreter) preference() string { return Text(in.get("erroractionpreference")) }

func (in *Interpreter) find(name string) *Cmdlet {
	if c := builtin(name); c != nil {
		return c
	}
	if i := strings.LastIndexByte(name, '\\'); i >= 0 { // NetQos\Get-NetQosPolicy
		name = name[i+1:]
	}
	return in.cfg.Host.Cmdlet(name)
}

func (in *Interpreter) call(c *Cmdlet, b bound, out emit) *Call {
	return &Call{Context: in.ctx, Cmdlet: c, in: in, args: b, out: out}
}

// once runs a command for one object of the pipe, or for none.
func (in *Interpreter) once(c *Cmdlet, b bound, input any, piped bool, out emit) error {
	args := bound{}
	for k, v := range b {
		args[k] = v
	}
	if piped {
		if err := c.fromPipe(args, input); err != nil {
			return classify(bindingException, err)
		}
	}
	if err := c.complete(args); err != nil {
		return classify(bindingException, err)
	}
	call := in.call(c, args, out)
	call.Input, call.HasInput = input, piped
	return errors.Join(c.Run(call), call.err)
}

// program runs a program of the host; the lines that it prints are its results.
func (in *Interpreter) program(e *command, name string, args []given, input []any, out emit) error {
	words := []string{}
	for _, a := range args {
		words = append(words, argumentWords(a)...)
	}
	var printed, complained bytes.Buffer
	errs := in.cfg.Err
	if in.complaints != nil {
		errs = &limitedWriter{&complained, in.limits.Output, in.limits.Output}
	}
	status, found := in.cfg.Host.Program(in.ctx, name, words, &limitedWriter{&printed, in.limits.Output, in.limits.Output}, errs)
	if !found {
		err := fmt.Errorf("there is no command or tool %q", name)
		if in.cfg.Suggestions != nil {
			if s := in.cfg.Suggestions(name); s != "" {
				err = fmt.Errorf("%w; %s", err, s)
			}
		}
		return &RunError{Position: e.Position, Err: classify(noCommandException, err)}
	}
	in.global.put("lastexitcode", int64(status))
	if err := in.lines(&printed, out); err != nil {
		return err
	}
	if err := in.lines(&complained, in.complaints); err != nil {
		return err
	}
	in.global.put("?", status == 0)
	if status == 0 {
		return nil
	}
	if Truth(in.get("psnativecommanduseerroractionpreference")) {
		return in.failed(&RunError{Position: e.Position, Command: name, Err: classify(programException, fmt.Errorf("exit status %d", status))},
			in.preference())
	}
	in.failures++ // a status is no error, and says nothing (about_Preference_Variables); the script's own status tells of it
	return nil
}

// lines hands on what a program has printed, line by line.
func (in *Interpreter) lines(printed *bytes.Buffer, out emit) error {
	if err := in.spend(printed.Len()); err != nil {
		return err
	}
	for line := range strings.Lines(printed.String()) {
		if err := out(strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
	return nil
}

// argumentWords returns an argument as a program gets it.
func argumentWords(a given) []string {
	if a.parameter != "" && !a.colon {
		return []string{"-" + a.parameter}
	}
	if a.word != "" && a.parameter == "" {
		return []string{a.word}
	}
	var out []string
	list, several := a.value.([]any)
	if !several {
		list = []any{a.value}
	}
	for _, v := range list {
		s := Text(plain(v))
		if w, ok := v.(word); ok {
			s = w.text
		}
		out = append(out, s)
	}
	if a.parameter != "" {
		return []string{"-" + a.parameter + ":" + strings.Join(out, ",")}
	}
	return []string{strings.Join(out, ",")}
}
