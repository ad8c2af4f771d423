package powershell

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// scriptName is what a script is called in messages about its arguments.
const scriptName = "the script"

// ArgumentError says what is wrong about the arguments that a script was given.
type ArgumentError struct{ Err error }

// Error implements error.
func (e *ArgumentError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ArgumentError) Unwrap() error { return e.Err }

// runScript runs a script with its arguments, in the scope of scripts.
func (in *Interpreter) runScript(s *Script, words []string) error {
	if s.code.plain && len(words) == 0 {
		_, err := in.statements(s.code.end, in.print)
		return err
	}
	args := commandLine(words)
	b, rest, err := s.code.bind(args)
	if err == nil && len(rest) > 0 && !s.args { // nothing that somebody said may be lost: -WhatIf, for one
		err = fmt.Errorf("the script takes no argument %q and does not use $args; allowed: %s", Text(rest[0]), cmp.Or(s.code.cmdlet.names(), "none"))
	}
	if err == nil {
		s.code.divide(b)
		err = s.code.cmdlet.complete(b)
	}
	if err != nil {
		return &ArgumentError{err}
	}
	i := &invocation{in, Position{1, 1}, scriptName, s.code, b, in.print}
	if err := i.prepare(rest, nil); err != nil {
		var run *RunError
		if errors.As(err, &run) && run.Command == scriptName {
			return &ArgumentError{run.Err}
		}
		return err
	}
	return i.run(nil, false)
}

// commandLine returns the words of a command line as arguments: -Name, -Name:value and values, which are text (about_Pwsh, -File).
func commandLine(words []string) (out []given) {
	for i, w := range words {
		name, value, colon := strings.Cut(strings.TrimPrefix(w, "-"), ":")
		first := []rune(name + " ")[0]
		if !strings.HasPrefix(w, "-") || !nameStart(first) {
			out = append(out, given{value: w, word: w})
			continue
		}
		g := given{parameter: name, colon: colon}
		if colon && value == "" && i+1 < len(words) { // -Name: value
			g.colon = false
		}
		if g.colon {
			g.value, g.word = value, value
		}
		out = append(out, g)
	}
	return out
}

// divide makes lists of the values of parameters that are lists: a command line has them as one word with commas.
func (c *code) divide(b bound) {
	for _, v := range c.params {
		if text, ok := wordOf(b[v.Name]); ok && strings.HasSuffix(v.kind, "[]") {
			list := []any{}
			for _, part := range strings.Split(text, ",") {
				list = append(list, part)
			}
			b[v.Name] = list
		}
	}
}

// wordOf returns a value that is one text.
func wordOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []string:
		if len(v) == 1 {
			return v[0], true
		}
	}
	return "", false
}
