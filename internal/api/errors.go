package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
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

// errBusy says that there is no room for a large answer because readers have not taken others yet.
var errBusy = errors.New("too many large answers are under way; ask again in a second")

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

const allowedPrefix = "allowed: "

// problem converts err to an answer: RFC 9457, with the wrong field among its errors.
func problem(err error) error {
	if err == nil {
		return nil
	}
	m := &huma.ErrorModel{Status: http.StatusUnprocessableEntity, Detail: err.Error()}
	var field *FieldError
	var event *events.FieldError
	var path *counters.PathError
	var value *catalogue.ValueError
	var file *registry.StoreError
	switch {
	case errors.As(err, &field):
		m.Errors = []*huma.ErrorDetail{{Location: field.Field, Value: field.Value, Message: allowedPrefix + field.Allowed}}
	case errors.As(err, &value):
		m.Errors = []*huma.ErrorDetail{{Location: value.Key, Value: value.Value, Message: allowedPrefix + value.Allowed}}
	case errors.As(err, &event):
		m.Errors = []*huma.ErrorDetail{{Location: event.Field, Value: event.Value, Message: allowedPrefix + event.Allowed}}
	case errors.As(err, &path):
		m.Errors = []*huma.ErrorDetail{{Location: "counter path", Value: path.Path, Message: allowedPrefix +
			strings.Join(path.Allowed, ", ")}}
	case errors.Is(err, registry.ErrNotFound):
		m.Status = http.StatusNotFound
	case errors.Is(err, ErrUnsupported):
		m.Status = http.StatusNotImplemented
	case errors.Is(err, errBusy):
		m.Status = http.StatusServiceUnavailable
	case errors.As(err, &file), errors.Is(err, registry.ErrFull):
		m.Status = http.StatusInsufficientStorage
	}
	m.Title = http.StatusText(m.Status)
	return m
}

// understand converts an answer back to an error.
func understand(status int, m *huma.ErrorModel) error {
	switch {
	case status == http.StatusForbidden:
		return ErrNotAllowed
	case status == http.StatusNotImplemented && m.Detail != "":
		return &answerError{m.Detail, ErrUnsupported}
	case status == http.StatusNotFound && m.Detail != "":
		return &answerError{m.Detail, registry.ErrNotFound}
	}
	if len(m.Errors) > 0 {
		d := m.Errors[0]
		if allowed, ok := strings.CutPrefix(d.Message, allowedPrefix); ok {
			f := &FieldError{d.Location, fmt.Sprint(d.Value), allowed}
			if f.Error() == m.Detail {
				return f
			}
			return &answerError{m.Detail, f}
		}
		return fmt.Errorf("%s: %s (%s)", m.Detail, d.Message, d.Location)
	}
	if m.Detail != "" {
		return errors.New(m.Detail)
	}
	return fmt.Errorf("the driver answered %d %s", status, http.StatusText(status))
}

// answerError is an error from the other side with its meaning on this side.
type answerError struct {
	text string
	is   error
}

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.is }
