package powershell

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the type of a parameter.
type Kind uint8

// The kinds.
const (
	String  Kind = iota // text
	Strings             // one or more texts
	Number              // a whole number
	Numbers             // one or more
	Bool                // $true, $false, 1, 0
	Switch              // given or not
	Any                 // a value as it is
	Code                // a block of statements
)

// String returns the kind as help shows it.
func (k Kind) String() string {
	return [...]string{"string", "string[]", "int", "int[]", "bool", "switch", "object", "scriptblock"}[k]
}

// Param is a parameter of a command.
type Param struct {
	Name    string
	Aliases []string
	Kind    Kind
	// Position from 1; 0: it is only given by name. Rest takes all values that are left.
	Position int
	Rest     bool
	// Mandatory parameters must be given or come from the pipe.
	Mandatory bool
	// Piped parameters are taken from objects that come through the pipe: from the property of their name or of an alias, or, of
	// kind Any, the object itself. Text that comes is the value of a Piped parameter.
	Piped bool
	// Set is the parameter set to which it belongs; parameters of different sets exclude each other. Empty: all.
	Set string
	// Allowed are the words that it takes, and Min and Max the limits of numbers; Max 0: none.
	Allowed  []string
	Min, Max int64
	Help     string
	nullable bool // nothing ($null) is a value
}

// Cmdlet is a command.
type Cmdlet struct {
	Name    string
	Aliases []string
	Module  string
	// Help says what it does here, in a sentence.
	Help string
	// Note says what is different here from Windows; empty: nothing.
	Note string
	// Changes says that it takes -WhatIf and -Confirm.
	Changes bool
	Params  []Param
	Run     func(*Call) error
	// whole, of commands of the language, runs once with all inputs in place of Run.
	whole func(*Call, []any) error
	// bare commands, functions of a script, have only their own parameters, and keep what they do not know.
	bare       bool
	defaultSet string // the parameter set if no parameter says which
}

// actions are what may happen after an error or a warning.
var actions = []string{"Continue", "Stop", "SilentlyContinue", "Ignore"}

// Common are the parameters that every command has; those from WhatIf on only the ones that change something.
var Common = []Param{
	{Name: "Verbose", Aliases: []string{"vb"}, Kind: Switch, Help: "Say what is done."},
	{Name: "ErrorAction", Aliases: []string{"ea"}, Kind: String, Allowed: actions,
		Help: "What happens after an error."},
	{Name: "ErrorVariable", Aliases: []string{"ev"}, Kind: String, Help: "A variable for the errors, besides $Error."},
	{Name: "WarningAction", Aliases: []string{"wa"}, Kind: String, Allowed: actions,
		Help: "What happens to warnings."},
	{Name: "OutVariable", Aliases: []string{"ov"}, Kind: String, Help: "A variable for the results."},
	{Name: "WhatIf", Aliases: []string{"wi"}, Kind: Switch, Help: "Say what would be done, and do nothing."},
	{Name: "Confirm", Aliases: []string{"cf"}, Kind: Switch, Help: "Ask first."},
}

// firstOfChanges is where in Common the parameters begin that only commands have that change something.
const firstOfChanges = 5

// parameters returns the parameters of a command with those that all have.
func (c *Cmdlet) parameters() []Param {
	if c.bare {
		return slices.Clone(c.Params)
	}
	n := firstOfChanges
	if c.Changes {
		n = len(Common)
	}
	out := slices.Clone(c.Params)
	for _, p := range Common[:n] {
		if !slices.ContainsFunc(out, func(q Param) bool { return q.is(p.Name) }) {
			out = append(out, p)
		}
	}
	return out
}

func (p *Param) is(name string) bool {
	return strings.EqualFold(p.Name, name) || slices.ContainsFunc(p.Aliases, func(a string) bool { return strings.EqualFold(a, name) })
}

func (p *Param) begins(prefix string) bool {
	has := func(s string) bool { return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) }
	return has(p.Name) || slices.ContainsFunc(p.Aliases, has)
}

// named returns the parameter of a name, an alias, or the beginning of only one.
func (c *Cmdlet) named(name string) (*Param, error) {
	list := c.parameters()
	for i := range list {
		if list[i].is(name) {
			return &list[i], nil
		}
	}
	var found []*Param
	for i := range list {
		if list[i].begins(name) {
			found = append(found, &list[i])
		}
	}
	if own := slices.DeleteFunc(slices.Clone(found), func(p *Param) bool { return c.common(p.Name) }); len(own) == 1 {
		return own[0], nil
	}
	switch len(found) {
	case 0:
		return nil, &ParameterError{"-" + name, "", c.names()}
	case 1:
		return found[0], nil
	}
	var names []string
	for _, p := range found {
		names = append(names, "-"+p.Name)
	}
	return nil, fmt.Errorf("parameter -%s is short for more than one: %s", name, strings.Join(names, " "))
}

func (c *Cmdlet) common(name string) bool {
	return !slices.ContainsFunc(c.Params, func(p Param) bool { return p.Name == name })
}

func (c *Cmdlet) names() string {
	var names []string
	for _, p := range c.parameters() {
		names = append(names, "-"+p.Name)
	}
	return strings.Join(names, " ")
}

// Syntax returns the command's line with all its parameters as Get-Help shows it.
func (c *Cmdlet) Syntax() string {
	words := []string{c.Name}
	for _, p := range c.Params {
		w := "-" + p.Name
		if p.Position > 0 || p.Rest {
			w = "[" + w + "]"
		}
		if p.Kind != Switch {
			w += " <" + p.Kind.String() + ">"
		}
		if !p.Mandatory {
			w = "[" + w + "]"
		}
		words = append(words, w)
	}
	if c.Changes {
		words = append(words, "[-WhatIf] [-Confirm]")
	}
	return strings.Join(words, " ")
}
