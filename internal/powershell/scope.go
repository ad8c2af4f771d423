package powershell

import (
	"fmt"
	"slices"
	"strings"
)

// scope is where variables are. What runs in it sees those of the scopes around it, too, and sets its own (about_Scopes).
type scope struct {
	around    *scope
	variables map[string]*slot
	functions map[string]*function // by their names in lower case; nil: none
}

// slot is a variable.
type slot struct {
	value   any
	kind    string // values are converted to this type; empty: to none
	private bool   // scopes in it do not see it
}

// newScope returns a scope in another; nil: there is none around it.
func newScope(around *scope) *scope { return &scope{around: around, variables: map[string]*slot{}} }

// find returns a variable of the scope or of those around it; nil: there is none.
func (s *scope) find(name string) *slot {
	for at := s; at != nil; at = at.around {
		if c, ok := at.variables[name]; ok && (at == s || !c.private) {
			return c
		}
	}
	return nil
}

// get returns the value of a variable without a scope in its name, nil if there is none.
func (in *Interpreter) get(name string) any {
	if c := in.scope.find(name); c != nil {
		return c.value
	}
	return nil
}

// put sets a variable in the scope of what runs.
func (in *Interpreter) put(name string, v any) { in.scope.put(name, v) }

func (s *scope) put(name string, v any) {
	if c, ok := s.variables[name]; ok {
		c.value = v
		return
	}
	s.variables[name] = &slot{value: v}
}

// constants are the variables that cannot be set.
var constants = map[string]any{"true": true, "false": false}

// scopes are the prefixes of variables that name a scope, those of functions among them.
const scopes = "global, script, local, private"

// scopeOf returns the scope that a prefix names.
func (in *Interpreter) scopeOf(prefix string) *scope {
	switch prefix {
	case "global":
		return in.global
	case "script":
		return in.script
	}
	return in.scope
}

func (in *Interpreter) lookup(e *variable) (any, error) {
	switch e.scope {
	case "env":
		if v := in.cfg.Host.Getenv(strings.ToUpper(e.name)); v != "" {
			return v, nil
		}
		return nil, nil // there is none
	case "":
		if v, ok := constants[e.name]; ok {
			return v, nil
		}
		c := in.scope.find(e.name)
		switch {
		case e.name == "error":
			return slices.Clone(in.errors), in.spend(len(in.errors) * valueBytes)
		case c == nil && e.name == "?":
			return true, nil
		}
		if c == nil {
			return nil, nil
		}
		return c.value, nil
	}
	if c, ok := in.scopeOf(e.scope).variables[e.name]; ok {
		return c.value, nil
	}
	return nil, nil
}

// setVariable sets a variable, or one of another type if kind says so.
func (in *Interpreter) setVariable(e *variable, kind string, v any) error {
	if e.scope == "env" {
		return in.wrong(e, fmt.Errorf("$env:%s cannot be set: what runs the script has set it", e.name))
	}
	switch e.name {
	case "null":
		return nil
	case "erroractionpreference":
		if i := slices.IndexFunc(actions, func(a string) bool { return strings.EqualFold(a, Text(v)) }); i < 0 {
			return in.wrong(e, fmt.Errorf("$ErrorActionPreference cannot be %q; allowed: %s", Text(v), strings.Join(actions, ", ")))
		}
	case "true", "false", "_", "?", "error":
		return in.wrong(e, fmt.Errorf("$%s cannot be set", e.name))
	}
	s := in.scopeOf(e.scope)
	c, ok := s.variables[e.name]
	if !ok {
		c = &slot{private: e.scope == "private"}
	}
	if kind == "" {
		kind = c.kind
	}
	if kind != "" {
		converted, err := in.convert(kind, v)
		if err != nil {
			return in.wrong(e, err)
		}
		v = converted
	}
	c.value, c.kind = v, kind
	s.variables[e.name] = c
	return in.spend(valueBytes + len(e.name))
}
