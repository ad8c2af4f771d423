package nd

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Status is a NetworkDirect status, an NTSTATUS number.
type Status uint32

// The statuses.
const (
	StatusSuccess               Status = 0x00000000
	StatusTimeout               Status = 0x00000102
	StatusPending               Status = 0x00000103
	StatusBufferOverflow        Status = 0x80000005
	StatusDeviceBusy            Status = 0x80000011
	StatusNoMoreEntries         Status = 0x8000001A
	StatusUnsuccessful          Status = 0xC0000001
	StatusAccessViolation       Status = 0xC0000005
	StatusInvalidHandle         Status = 0xC0000008
	StatusInvalidParameter      Status = 0xC000000D
	StatusInvalidDeviceRequest  Status = 0xC0000010
	StatusNoMemory              Status = 0xC0000017
	StatusInvalidParameterMix   Status = 0xC0000030
	StatusDataOverrun           Status = 0xC000003C
	StatusSharingViolation      Status = 0xC0000043
	StatusInsufficientResources Status = 0xC000009A
	StatusDeviceNotReady        Status = 0xC00000A3
	StatusIOTimeout             Status = 0xC00000B5
	StatusNotSupported          Status = 0xC00000BB
	StatusInternalError         Status = 0xC00000E5
	StatusInvalidParameter1     Status = 0xC00000EF
	StatusInvalidParameter2     Status = 0xC00000F0
	StatusInvalidParameter3     Status = 0xC00000F1
	StatusInvalidParameter4     Status = 0xC00000F2
	StatusInvalidParameter5     Status = 0xC00000F3
	StatusInvalidParameter6     Status = 0xC00000F4
	StatusInvalidParameter7     Status = 0xC00000F5
	StatusInvalidParameter8     Status = 0xC00000F6
	StatusInvalidParameter9     Status = 0xC00000F7
	StatusInvalidParameter10    Status = 0xC00000F8
	StatusCanceled              Status = 0xC0000120
	StatusRemoteError           Status = 0xC000013D
	StatusInvalidAddress        Status = 0xC0000141
	StatusInvalidDeviceState    Status = 0xC0000184
	StatusInvalidBufferSize     Status = 0xC0000206
	StatusTooManyAddresses      Status = 0xC0000209
	StatusAddressAlreadyExists  Status = 0xC000020A
	StatusConnectionRefused     Status = 0xC0000236
	StatusConnectionInvalid     Status = 0xC000023A
	StatusConnectionActive      Status = 0xC000023B
	StatusNetworkUnreachable    Status = 0xC000023C
	StatusHostUnreachable       Status = 0xC000023D
	StatusConnectionAborted     Status = 0xC0000241
	StatusDeviceRemoved         Status = 0xC00002B6
)

var statusNames = map[Status]string{
	StatusSuccess: "ND_SUCCESS", StatusTimeout: "ND_TIMEOUT", StatusPending: "ND_PENDING",
	StatusBufferOverflow: "ND_BUFFER_OVERFLOW", StatusDeviceBusy: "ND_DEVICE_BUSY", StatusNoMoreEntries: "ND_NO_MORE_ENTRIES",
	StatusUnsuccessful: "ND_UNSUCCESSFUL", StatusAccessViolation: "ND_ACCESS_VIOLATION", StatusInvalidHandle: "ND_INVALID_HANDLE",
	StatusInvalidParameter: "ND_INVALID_PARAMETER", StatusInvalidDeviceRequest: "ND_INVALID_DEVICE_REQUEST",
	StatusNoMemory: "ND_NO_MEMORY", StatusInvalidParameterMix: "ND_INVALID_PARAMETER_MIX", StatusDataOverrun: "ND_DATA_OVERRUN",
	StatusSharingViolation: "ND_SHARING_VIOLATION", StatusInsufficientResources: "ND_INSUFFICIENT_RESOURCES",
	StatusDeviceNotReady: "ND_DEVICE_NOT_READY", StatusIOTimeout: "ND_IO_TIMEOUT", StatusNotSupported: "ND_NOT_SUPPORTED",
	StatusInternalError: "ND_INTERNAL_ERROR", StatusInvalidParameter1: "ND_INVALID_PARAMETER_1",
	StatusInvalidParameter2: "ND_INVALID_PARAMETER_2", StatusInvalidParameter3: "ND_INVALID_PARAMETER_3",
	StatusInvalidParameter4: "ND_INVALID_PARAMETER_4", StatusInvalidParameter5: "ND_INVALID_PARAMETER_5",
	StatusInvalidParameter6: "ND_INVALID_PARAMETER_6", StatusInvalidParameter7: "ND_INVALID_PARAMETER_7",
	StatusInvalidParameter8: "ND_INVALID_PARAMETER_8", StatusInvalidParameter9: "ND_INVALID_PARAMETER_9",
	StatusInvalidParameter10: "ND_INVALID_PARAMETER_10", StatusCanceled: "ND_CANCELED", StatusRemoteError: "ND_REMOTE_ERROR",
	StatusInvalidAddress: "ND_INVALID_ADDRESS", StatusInvalidDeviceState: "ND_INVALID_DEVICE_STATE",
	StatusInvalidBufferSize: "ND_INVALID_BUFFER_SIZE", StatusTooManyAddresses: "ND_TOO_MANY_ADDRESSES",
	StatusAddressAlreadyExists: "ND_ADDRESS_ALREADY_EXISTS", StatusConnectionRefused: "ND_CONNECTION_REFUSED",
	StatusConnectionInvalid: "ND_CONNECTION_INVALID", StatusConnectionActive: "ND_CONNECTION_ACTIVE",
	StatusNetworkUnreachable: "ND_NETWORK_UNREACHABLE", StatusHostUnreachable: "ND_HOST_UNREACHABLE",
	StatusConnectionAborted: "ND_CONNECTION_ABORTED", StatusDeviceRemoved: "ND_DEVICE_REMOVED",
}

// Name returns the ND_ name of the status.
func (s Status) Name() string {
	if n, ok := statusNames[s]; ok {
		return n
	}
	return fmt.Sprintf("ND_STATUS_%08X", uint32(s))
}

// String returns the name.
func (s Status) String() string { return s.Name() }

// Err returns nil for StatusSuccess and otherwise the Err value of the status.
func (s Status) Err() error {
	if s == StatusSuccess {
		return nil
	}
	return &Error{Status: s}
}

// Error describes a failed call. errors.Is matches it against the Err values by its Status, and against
// its cause, such as context.Canceled.
type Error struct {
	Status Status
	Op     string         // the interface and method: "Connector.Connect"
	Addr   netip.AddrPort // the address concerned, if any
	Detail string         // the field and its allowed values, in words
	Cause  error          // may be nil
}

// Name returns the ND_ name of the status.
func (e *Error) Name() string { return e.Status.Name() }

// Error returns the operation, address, status name and detail.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("nd: ")
	if e.Op != "" {
		b.WriteString(e.Op)
		if e.Addr.IsValid() {
			b.WriteString(" " + e.Addr.String())
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Name())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is matches errors of the same status.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Op == "" && t.Status == e.Status
}

// StatusOf returns the status of err: StatusSuccess for nil, StatusUnsuccessful for an error of another
// package.
func StatusOf(err error) Status {
	if err == nil {
		return StatusSuccess
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return StatusUnsuccessful
}

// The errors to compare with, one for each status.
var (
	ErrTimeout               error = &Error{Status: StatusTimeout}
	ErrBufferOverflow        error = &Error{Status: StatusBufferOverflow}
	ErrDeviceBusy            error = &Error{Status: StatusDeviceBusy}
	ErrNoMoreEntries         error = &Error{Status: StatusNoMoreEntries}
	ErrUnsuccessful          error = &Error{Status: StatusUnsuccessful}
	ErrAccessViolation       error = &Error{Status: StatusAccessViolation}
	ErrInvalidHandle         error = &Error{Status: StatusInvalidHandle}
	ErrInvalidParameter      error = &Error{Status: StatusInvalidParameter}
	ErrInvalidDeviceRequest  error = &Error{Status: StatusInvalidDeviceRequest}
	ErrNoMemory              error = &Error{Status: StatusNoMemory}
	ErrInvalidParameterMix   error = &Error{Status: StatusInvalidParameterMix}
	ErrDataOverrun           error = &Error{Status: StatusDataOverrun}
	ErrSharingViolation      error = &Error{Status: StatusSharingViolation}
	ErrInsufficientResources error = &Error{Status: StatusInsufficientResources}
	ErrDeviceNotReady        error = &Error{Status: StatusDeviceNotReady}
	ErrIOTimeout             error = &Error{Status: StatusIOTimeout}
	ErrNotSupported          error = &Error{Status: StatusNotSupported}
	ErrInternalError         error = &Error{Status: StatusInternalError}
	ErrInvalidParameter1     error = &Error{Status: StatusInvalidParameter1}
	ErrInvalidParameter2     error = &Error{Status: StatusInvalidParameter2}
	ErrInvalidParameter3     error = &Error{Status: StatusInvalidParameter3}
	ErrInvalidParameter4     error = &Error{Status: StatusInvalidParameter4}
	ErrInvalidParameter5     error = &Error{Status: StatusInvalidParameter5}
	ErrInvalidParameter6     error = &Error{Status: StatusInvalidParameter6}
	ErrInvalidParameter7     error = &Error{Status: StatusInvalidParameter7}
	ErrInvalidParameter8     error = &Error{Status: StatusInvalidParameter8}
	ErrInvalidParameter9     error = &Error{Status: StatusInvalidParameter9}
	ErrInvalidParameter10    error = &Error{Status: StatusInvalidParameter10}
	ErrCanceled              error = &Error{Status: StatusCanceled}
	ErrRemoteError           error = &Error{Status: StatusRemoteError}
	ErrInvalidAddress        error = &Error{Status: StatusInvalidAddress}
	ErrInvalidDeviceState    error = &Error{Status: StatusInvalidDeviceState}
	ErrInvalidBufferSize     error = &Error{Status: StatusInvalidBufferSize}
	ErrTooManyAddresses      error = &Error{Status: StatusTooManyAddresses}
	ErrAddressAlreadyExists  error = &Error{Status: StatusAddressAlreadyExists}
	ErrConnectionRefused     error = &Error{Status: StatusConnectionRefused}
	ErrConnectionInvalid     error = &Error{Status: StatusConnectionInvalid}
	ErrConnectionActive      error = &Error{Status: StatusConnectionActive}
	ErrNetworkUnreachable    error = &Error{Status: StatusNetworkUnreachable}
	ErrHostUnreachable       error = &Error{Status: StatusHostUnreachable}
	ErrConnectionAborted     error = &Error{Status: StatusConnectionAborted}
	ErrDeviceRemoved         error = &Error{Status: StatusDeviceRemoved}
)
