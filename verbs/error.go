package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
)

// Classes of errors, for errors.Is.
var (
	ErrInvalid            = errors.New("invalid value")
	ErrNotFound           = errors.New("no such object")
	ErrBusy               = errors.New("object in use")
	ErrExhausted          = errors.New("limit reached")
	ErrState              = errors.New("not allowed in this state")
	ErrUnsupported        = errors.New("not supported")
	ErrInUse              = errors.New("address in use")
	ErrAddrNotAvailable   = errors.New("not an address of an adapter")
	ErrNetworkUnreachable = errors.New("network unreachable")
	ErrHostUnreachable    = errors.New("host unreachable")
	ErrRefused            = errors.New("connection refused")
	ErrTimedOut           = errors.New("timed out")
	ErrAborted            = errors.New("connection aborted")
	ErrCanceled           = errors.New("canceled")
	ErrRemoved            = errors.New("adapter disabled or removed")
	ErrInternal           = errors.New("internal error")
	ErrAccess             = errors.New("access violation")
	ErrClosed             = errors.New("closed")
	ErrQueueFull          = errors.New("queue full")
	ErrCorrupt            = errors.New("ring corrupt")
	ErrOverflow           = errors.New("completion queue overflow")
	ErrDisconnected       = errors.New("disconnected")
)

var classes = map[command.Code]error{
	command.Invalid:            ErrInvalid,
	command.NotFound:           ErrNotFound,
	command.Busy:               ErrBusy,
	command.Exhausted:          ErrExhausted,
	command.State:              ErrState,
	command.Unsupported:        ErrUnsupported,
	command.InUse:              ErrInUse,
	command.AddrNotAvailable:   ErrAddrNotAvailable,
	command.NetworkUnreachable: ErrNetworkUnreachable,
	command.HostUnreachable:    ErrHostUnreachable,
	command.Refused:            ErrRefused,
	command.TimedOut:           ErrTimedOut,
	command.Aborted:            ErrAborted,
	command.Canceled:           ErrCanceled,
	command.Removed:            ErrRemoved,
	command.Internal:           ErrInternal,
	command.Access:             ErrAccess,
}

// Error is why an operation failed.
type Error struct {
	Op     string         // "create qp", "connect"
	Addr   netip.AddrPort // the peer or local address concerned, if any
	Class  error          // one of the Err values
	Detail string         // the field and its allowed values, in words; may be empty
}

// Error returns "verbs: op address: class: detail".
func (e *Error) Error() string {
	s := "verbs: " + e.Op
	if e.Addr.IsValid() {
		s += " " + e.Addr.String()
	}
	if e.Class != nil {
		s += ": " + e.Class.Error()
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the class.
func (e *Error) Unwrap() error { return e.Class }

func newError(op string, class error, format string, args ...any) *Error {
	return &Error{Op: op, Class: class, Detail: fmt.Sprintf(format, args...)}
}

// RejectReason is why a peer refused a connection (IBA 12.6.7.2).
type RejectReason uint16

// The most common reasons.
const (
	RejectNoQP             RejectReason = 1
	RejectNoResources      RejectReason = 3
	RejectTimeout          RejectReason = 4
	RejectUnsupported      RejectReason = 5
	RejectInvalidServiceID RejectReason = 8 // no program listens there
	RejectStaleConnection  RejectReason = 10
	RejectConsumer         RejectReason = 28 // the listening program rejected the request
)

var reasonNames = map[RejectReason]string{
	RejectNoQP: "no queue pair available", RejectNoResources: "no resources available",
	RejectTimeout: "the peer timed out", RejectUnsupported: "unsupported request",
	RejectInvalidServiceID: "nobody listens on this port", RejectStaleConnection: "stale connection",
	RejectConsumer: "rejected by the program",
}

// String returns the reason in words with its number.
func (r RejectReason) String() string {
	if s, ok := reasonNames[r]; ok {
		return fmt.Sprintf("%s (reject code %d)", s, uint16(r))
	}
	return fmt.Sprintf("reject code %d", uint16(r))
}

// RejectedError reports that the peer rejected a connection, with the private data of the reject. It is an
// ErrRefused.
type RejectedError struct {
	Addr    netip.AddrPort
	Reason  RejectReason
	Private []byte
}

// Error names the address and the reason.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("verbs: connect %s: connection refused: %s", e.Addr, e.Reason)
}

// Unwrap returns ErrRefused.
func (e *RejectedError) Unwrap() error { return ErrRefused }

// wrap adds the operation and class to a command's error; nil stays nil.
func wrap(op string, err error) error { return wrapAddr(op, netip.AddrPort{}, err) }

func wrapAddr(op string, addr netip.AddrPort, err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	var refused *command.Error
	if errors.As(err, &refused) {
		class, ok := classes[refused.Code]
		if !ok {
			class = ErrInternal
		}
		return &Error{Op: op, Addr: addr, Class: class, Detail: refused.Detail}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return canceled(op, addr, err)
	}
	return &Error{Op: op, Addr: addr, Class: err}
}

// wrapCtx is wrap for a command that the end of ctx may have aborted.
func wrapCtx(ctx context.Context, op string, err error) error {
	return wrapCtxAddr(ctx, op, netip.AddrPort{}, err)
}

func wrapCtxAddr(ctx context.Context, op string, addr netip.AddrPort, err error) error {
	if err != nil && ctx.Err() != nil {
		return canceled(op, addr, ctx.Err())
	}
	return wrapAddr(op, addr, err)
}

// canceled returns the error of an operation aborted by its context: both an ErrCanceled and the context's
// error.
func canceled(op string, addr netip.AddrPort, cause error) error {
	return &Error{Op: op, Addr: addr, Class: &canceledError{cause}}
}

type canceledError struct{ cause error }

func (e *canceledError) Error() string   { return "canceled: " + e.cause.Error() }
func (e *canceledError) Unwrap() []error { return []error{ErrCanceled, e.cause} }
