package cm

import (
	"errors"
	"fmt"
)

// Errors of the engine's methods, for errors.Is.
var (
	ErrNoID        = errors.New("cm: no such id")
	ErrState       = errors.New("cm: not allowed in this state")
	ErrPortInUse   = errors.New("cm: address and port in use")
	ErrNoPorts     = errors.New("cm: no ephemeral port left")
	ErrTooManyIDs  = errors.New("cm: too many ids")
	errPrivateData = errors.New("cm: too much private data")
)

// FieldError reports a value that is not allowed. For private data that is too long it wraps
// errPrivateData.
type FieldError struct {
	Field   string
	Value   any
	Allowed string
	cause   error
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("cm: %s is %v: must be %s", e.Field, e.Value, e.Allowed)
}

// Unwrap returns errPrivateData or nil.
func (e *FieldError) Unwrap() error { return e.cause }

func fieldError(field string, value any, allowed string) error {
	return &FieldError{Field: field, Value: value, Allowed: allowed}
}

// stateError reports a call that is not allowed in the state of its id. It wraps ErrState.
type stateError struct {
	Call  string
	State string
}

func (e *stateError) Error() string {
	return fmt.Sprintf("cm: %s: not allowed while %s", e.Call, e.State)
}

// Unwrap returns ErrState.
func (e *stateError) Unwrap() error { return ErrState }

// checkPrivate reports private data that the message cannot carry.
func checkPrivate(data []byte, message string, limit int) error {
	if len(data) <= limit {
		return nil
	}
	return &FieldError{
		Field: "length of Private", Value: len(data),
		Allowed: fmt.Sprintf("at most %d bytes in %s", limit, message), cause: errPrivateData,
	}
}
