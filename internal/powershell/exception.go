package powershell

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// The types of exceptions that errors of scripts have.
const (
	anyException        = "System.Exception"
	runtimeException    = "System.Management.Automation.RuntimeException"
	divisionException   = "System.DivideByZeroException"
	castException       = "System.Management.Automation.PSInvalidCastException"
	methodException     = "System.Management.Automation.MethodInvocationException"
	bindingException    = "System.Management.Automation.ParameterBindingException"
	noCommandException  = "System.Management.Automation.CommandNotFoundException"
	programException    = "System.Management.Automation.NativeCommandExitException"
	writeErrorException = "Microsoft.PowerShell.Commands.WriteErrorException"
	cimException        = "Microsoft.Management.Infrastructure.CimException" // of the commands of network modules
	ioException         = "System.IO.IOException"
	noFileException     = "System.IO.FileNotFoundException"
	accessException     = "System.UnauthorizedAccessException"
)

// exceptions are the types that scripts may catch and throw, each with the one that it is a special case of.
var exceptions = []struct{ name, of string }{
	{anyException, ""},
	{"System.ArithmeticException", anyException}, {divisionException, "System.ArithmeticException"},
	{"System.ArgumentException", anyException}, {"System.ArgumentNullException", "System.ArgumentException"},
	{"System.ArgumentOutOfRangeException", "System.ArgumentException"}, {"System.FormatException", anyException},
	{"System.InvalidOperationException", anyException}, {"System.NotSupportedException", anyException},
	{"System.NotImplementedException", anyException}, {"System.TimeoutException", anyException},
	{"System.InvalidCastException", anyException}, {castException, "System.InvalidCastException"},
	{accessException, anyException}, {ioException, anyException}, {noFileException, ioException},
	{runtimeException, anyException}, {methodException, runtimeException}, {bindingException, runtimeException},
	{noCommandException, runtimeException}, {programException, runtimeException},
	{writeErrorException, anyException}, {cimException, anyException},
}

// exceptionNamed returns the full name of a type of exceptions, which may be written without System.; empty: there is none.
func exceptionNamed(name string) string {
	for _, e := range exceptions {
		if strings.EqualFold(e.name, name) || strings.EqualFold(e.name, "System."+name) {
			return e.name
		}
	}
	return ""
}

// exceptionNames lists the types, for messages.
func exceptionNames() string {
	names := make([]string, len(exceptions))
	for i, e := range exceptions {
		names[i] = e.name
	}
	return strings.Join(names, ", ")
}

// isException reports whether a type is another one or a special case of it.
func isException(name, of string) bool {
	for name != "" && name != of {
		i := slices.IndexFunc(exceptions, func(e struct{ name, of string }) bool { return e.name == name })
		if i < 0 {
			return of == anyException
		}
		name = exceptions[i].of
	}
	return name == of
}

// classified is an error with its type of exception.
type classified struct {
	kind string
	error
}

func (c *classified) Unwrap() error { return c.error }

// classify gives an error a type, unless it has one or ends the script.
func classify(kind string, err error) error {
	var have *classified
	if err == nil || passes(err) || errors.As(err, &have) {
		return err
	}
	return &classified{kind, err}
}

// errDivision is a division by zero.
var errDivision = &classified{divisionException, theirs("Attempted to divide by zero.")}

// theirs is an error with the text that PowerShell has for it: scripts compare it.
type theirs string

// Error implements error.
func (t theirs) Error() string { return string(t) }

// exceptionOf returns the type of an error's exception.
func exceptionOf(e *RunError) string {
	var c *classified
	switch {
	case e.exception != nil:
		return e.exception.Type
	case errors.As(e.Err, &c):
		return c.kind
	case errors.Is(e.Err, fs.ErrNotExist):
		return noFileException
	case errors.Is(e.Err, fs.ErrPermission):
		return accessException
	}
	var path *fs.PathError
	if errors.As(e.Err, &path) {
		return ioException
	}
	return runtimeException
}

// newException returns an exception that a script makes.
func newException(kind, message string) *Object {
	o := NewObject(kind, "Message").With("Message", message)
	o.text = kind + ": " + message
	return o
}
