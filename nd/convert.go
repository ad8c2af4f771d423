package nd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/verbs"
)

// classes maps the errors of verbs to statuses; the first match counts.
var classes = []struct {
	class  error
	status Status
}{
	{verbs.ErrRefused, StatusConnectionRefused},
	{verbs.ErrCanceled, StatusCanceled},
	{verbs.ErrTimedOut, StatusIOTimeout},
	{verbs.ErrHostUnreachable, StatusHostUnreachable},
	{verbs.ErrNetworkUnreachable, StatusNetworkUnreachable},
	{verbs.ErrRemoved, StatusDeviceRemoved},
	{verbs.ErrClosed, StatusCanceled},
	{verbs.ErrAborted, StatusConnectionAborted},
	{verbs.ErrDisconnected, StatusConnectionInvalid},
	{verbs.ErrInvalid, StatusInvalidParameter},
	{verbs.ErrNotFound, StatusInvalidHandle},
	{verbs.ErrBusy, StatusDeviceBusy},
	{verbs.ErrExhausted, StatusInsufficientResources},
	{verbs.ErrState, StatusInvalidDeviceState},
	{verbs.ErrUnsupported, StatusNotSupported},
	{verbs.ErrInUse, StatusSharingViolation},
	{verbs.ErrAddrNotAvailable, StatusInvalidAddress},
	{verbs.ErrAccess, StatusAccessViolation},
	{verbs.ErrQueueFull, StatusNoMoreEntries},
	{verbs.ErrOverflow, StatusBufferOverflow},
	{verbs.ErrCorrupt, StatusInternalError},
	{verbs.ErrInternal, StatusInternalError},
}

// fail converts a verbs error to an *Error of op; nil stays nil.
func fail(op string, err error) error { return failAddr(op, netip.AddrPort{}, err) }

func failAddr(op string, addr netip.AddrPort, err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	e := &Error{Op: op, Addr: addr, Status: StatusUnsuccessful, Cause: err, Detail: detail(err)}
	for i := range classes {
		if errors.Is(err, classes[i].class) {
			e.Status = classes[i].status
			break
		}
	}
	if e.Status == StatusDeviceRemoved && e.Detail == "" {
		e.Detail = "the adapter was disabled, or the driver ended"
	}
	return e
}

// detail returns what err says beyond its class, which the status already conveys.
func detail(err error) string {
	var v *verbs.Error
	if errors.As(err, &v) {
		return v.Detail
	}
	var r *verbs.RejectedError
	if errors.As(err, &r) {
		return r.Reason.String()
	}
	return err.Error()
}

// failConnect is failAddr for the calls that set up a connection: exceeding the context's deadline counts
// as a timeout.
func failConnect(op string, addr netip.AddrPort, err error) error {
	err = failAddr(op, addr, err)
	var e *Error
	if errors.As(err, &e) && e.Status == StatusCanceled && errors.Is(err, context.DeadlineExceeded) {
		e.Status = StatusIOTimeout
	}
	return err
}

func refuse(status Status, op, format string, args ...any) error {
	return &Error{Status: status, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// completions gives the status for each verbs status; any other is ND_INTERNAL_ERROR.
var completions = [...]Status{
	verbs.Success:              StatusSuccess,
	verbs.LocalLength:          StatusDataOverrun, // ND_BUFFER_OVERFLOW for receives
	verbs.LocalQPOperation:     StatusInvalidDeviceRequest,
	verbs.LocalProtection:      StatusAccessViolation,
	verbs.WRFlush:              StatusCanceled,
	verbs.MWBind:               StatusInvalidDeviceRequest,
	verbs.BadResponse:          StatusRemoteError,
	verbs.LocalAccess:          StatusAccessViolation,
	verbs.RemoteInvalidRequest: StatusRemoteError,
	verbs.RemoteAccess:         StatusAccessViolation,
	verbs.RemoteOperation:      StatusRemoteError,
	verbs.RetryExceeded:        StatusIOTimeout,
	verbs.RNRRetryExceeded:     StatusIOTimeout,
	verbs.RemoteAborted:        StatusRemoteError,
	verbs.ResponseTimeout:      StatusIOTimeout,
}

func completionStatus(s verbs.Status, receive bool) Status {
	if receive && s == verbs.LocalLength {
		return StatusBufferOverflow
	}
	if int(s) < len(completions) && (s == verbs.Success || completions[s] != 0) {
		return completions[s]
	}
	return StatusInternalError
}
