package powershell

import "fmt"

// Position is a place in a script: line and column count from 1, columns in characters.
type Position struct{ Line, Column int }

// String returns "line 3, column 5".
func (p Position) String() string { return fmt.Sprintf("line %d, column %d", p.Line, p.Column) }

// SyntaxError says where a script is not PowerShell, or not of the part that is understood.
type SyntaxError struct {
	Position
	Text string
}

// Error implements error.
func (e *SyntaxError) Error() string { return e.Position.String() + ": " + e.Text }

// RunError is what a command or an operator could not do.
type RunError struct {
	Position
	Command string // its name; empty: an expression
	Err     error

	final      bool    // no statement around it goes on: of throw, or made so by Stop
	thrown     bool    // of throw
	target     any     // what was thrown
	exception  *Object // that was thrown
	remembered bool    // it is in $Error
	record     *Object // as scripts see it
}

// Error implements error.
func (e *RunError) Error() string {
	if e.Command == "" {
		return fmt.Sprintf("%v: %v", e.Position, e.Err)
	}
	return fmt.Sprintf("%v: %s: %v", e.Position, e.Command, e.Err)
}

// Unwrap returns the reason.
func (e *RunError) Unwrap() error { return e.Err }

// LimitError says which limit a script has exceeded.
type LimitError struct {
	What string
	Most int
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the script has more %s than are allowed: %d", e.What, e.Most)
}

// ParameterError says which parameter of a command is wrong, and what is allowed.
type ParameterError struct {
	Parameter string // with its hyphen
	Value     string // empty: it has none
	Allowed   string
}

// Error implements error.
func (e *ParameterError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("parameter %s; allowed: %s", e.Parameter, e.Allowed)
	}
	return fmt.Sprintf("parameter %s is %q; allowed: %s", e.Parameter, e.Value, e.Allowed)
}
