package api

import (
	"errors"
	"fmt"
)

// ErrNotRunning says that no driver answers.
var ErrNotRunning = errors.New("no driver is running")

// ErrNoManagement says that a driver serves programs at a socket which is not its own, but a container's or a virtual function's, and has
// no management beside it.
var ErrNoManagement = errors.New("the driver serves programs at this socket, but is not managed by it")

// ErrNotAllowed says that a client that may only read requested a change.
var ErrNotAllowed = errors.New("only the driver's user and root may change things")

// ErrUnsupported says that an adapter does not support what was asked for.
var ErrUnsupported = errors.New("not supported by this adapter")

// A FieldError says that a value in a request or a configuration is wrong.
type FieldError struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Allowed string `json:"allowed"`
}

// Wrong returns the error of a field whose value is not allowed.
func Wrong(field, value, allowed string) *FieldError {
	return &FieldError{Field: field, Value: value, Allowed: allowed}
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, e.Value, e.Allowed)
}

// AllowedPrefix begins the message about a field in an answer (RFC 9457) if the field's value is not among the allowed ones, which follow.
const AllowedPrefix = "allowed: "
