package command

import (
	"context"
	"errors"
	"fmt"
)

// Code is the class of a refused command.
type Code uint32

// The classes.
const (
	Invalid          Code = iota + 1 // a field has a value that is not allowed
	NotFound                         // no such object
	Busy                             // object in use
	Exhausted                        // a limit, or no memory
	State                            // not allowed in this state
	Unsupported                      // not built, or not on this adapter
	InUse                            // address or port taken
	AddrNotAvailable                 // not an address of an adapter
	NetworkUnreachable
	HostUnreachable
	Refused
	TimedOut
	Aborted
	Canceled
	Removed // the adapter is disabled or gone
	Internal
	Access
)

var codeNames = map[Code]string{
	Invalid: "invalid value", NotFound: "no such object", Busy: "object in use",
	Exhausted: "limit reached", State: "not allowed in this state", Unsupported: "not supported",
	InUse: "in use", AddrNotAvailable: "address not available", NetworkUnreachable: "network unreachable",
	HostUnreachable: "host unreachable", Refused: "connection refused", TimedOut: "timed out",
	Aborted: "connection aborted", Canceled: "canceled", Removed: "adapter removed or disabled",
	Internal: "internal error", Access: "access violation",
}

func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// Error says why a command was refused. Detail names the field and the allowed values.
type Error struct {
	Code   Code
	Detail string
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Code.String()
	}
	return e.Code.String() + ": " + e.Detail
}

// Is makes errors.Is(err, &Error{Code: c}) true for every error of class c.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Detail == "" || t.Detail == e.Detail)
}

// Errorf returns an Error with a formatted detail.
func Errorf(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Detail: fmt.Sprintf(format, args...)}
}

// Ended returns the error of a command aborted by its context: TimedOut if a deadline passed, otherwise
// Canceled.
func Ended(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Errorf(TimedOut, "the deadline of the call has passed")
	}
	return Errorf(Canceled, "the call was canceled")
}
