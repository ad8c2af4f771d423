package commandline

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Kind is what is wrong with a word.
type Kind uint8

// What may be wrong.
const (
	Unknown   Kind = iota // no option has that name
	Ambiguous             // an abbreviation of several; Value lists two
	Missing               // the option lacks its value
	Surplus               // the option has no value, but is given one
	Twice                 // the option is given again
	Refused               // the option is one that the program lacks
	Invalid               // Option.Set refused the value
	Stray                 // a word that is no option, where none is allowed
)

// Error is a word that is wrong. Its text names the option, or the word, and what is allowed.
type Error struct {
	Kind   Kind
	Name   string  // the option as it was spelled, or the word
	Option *Option // nil if there is none
	Value  string
	Err    error // of Invalid: what Option.Set says

	hint string
}

// Error implements error.
func (e *Error) Error() string {
	switch e.Kind {
	case Ambiguous:
		return fmt.Sprintf("option %s may be %s; allowed: one of them", e.Name, e.Value)
	case Missing:
		return fmt.Sprintf("option %s needs %s; allowed: %s", e.Name, e.Option.Argument, e.Option.Help)
	case Surplus:
		return fmt.Sprintf("option %s takes no argument; it is given %q; allowed: %s", e.Name, e.Value, e.Name)
	case Twice:
		return fmt.Sprintf("option %s is given twice; allowed: once", e.Name)
	case Refused:
		return fmt.Sprintf("option %s %s", e.Name, e.Option.Refused)
	case Invalid:
		return fmt.Sprintf("option %s is %q; %s", e.Name, e.Value, e.Err)
	case Stray:
		return fmt.Sprintf("unexpected argument %q; %s", e.Name, e.hint)
	}
	return fmt.Sprintf("unknown option %s; %s", e.Name, e.hint)
}

// Unwrap returns what Option.Set says.
func (e *Error) Unwrap() error { return e.Err }

// As makes it a *tool.UsageError to errors.As: wrong usage, exit status 2.
func (e *Error) As(target any) bool {
	usage, ok := target.(**tool.UsageError)
	if ok {
		*usage = &tool.UsageError{Text: e.Error()}
	}
	return ok
}
