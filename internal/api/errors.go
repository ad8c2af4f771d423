package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

// ErrNotRunning is a driver that does not answer.
var ErrNotRunning = errors.New("no driver is running")

// ErrNotAllowed is a change by somebody who may only read.
var ErrNotAllowed = errors.New("only the driver's user and root may change things")

// A FieldError is a wrong value in a request or a configuration.
type FieldError struct {
	Field   string `json:"field"`
	Value   string `json:"value"`
	Allowed string `json:"allowed"`
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, e.Value, e.Allowed)
}

const allowedPrefix = "allowed: "

// problem is err as an answer: RFC 9457, with the field that was wrong among its errors.
func problem(err error) error {
	if err == nil {
		return nil
	}
	m := &huma.ErrorModel{Status: http.StatusUnprocessableEntity, Title: http.StatusText(http.StatusUnprocessableEntity), Detail: err.Error()}
	var field *FieldError
	var value *catalogue.ValueError
	var file *registry.StoreError
	switch {
	case errors.As(err, &field):
		m.Errors = []*huma.ErrorDetail{{Location: field.Field, Value: field.Value, Message: allowedPrefix + field.Allowed}}
	case errors.As(err, &value):
		m.Errors = []*huma.ErrorDetail{{Location: value.Key, Value: value.Value, Message: allowedPrefix + value.Allowed}}
	case errors.Is(err, registry.ErrNotFound):
		m.Status = http.StatusNotFound
	case errors.As(err, &file), errors.Is(err, registry.ErrFull):
		m.Status = http.StatusInsufficientStorage
	}
	m.Title = http.StatusText(m.Status)
	return m
}

// understand is the error that an answer tells of.
func understand(status int, m *huma.ErrorModel) error {
	switch {
	case status == http.StatusForbidden:
		return ErrNotAllowed
	case status == http.StatusNotFound && m.Detail != "":
		return &answerError{m.Detail, registry.ErrNotFound}
	}
	if len(m.Errors) > 0 {
		d := m.Errors[0]
		if allowed, ok := strings.CutPrefix(d.Message, allowedPrefix); ok && strings.Contains(m.Detail, d.Message) {
			if f := (&FieldError{d.Location, fmt.Sprint(d.Value), allowed}); f.Error() == m.Detail {
				return f
			}
			return errors.New(m.Detail)
		}
		return fmt.Errorf("%s: %s (%s)", m.Detail, d.Message, d.Location)
	}
	if m.Detail != "" {
		return errors.New(m.Detail)
	}
	return fmt.Errorf("the driver answered %d %s", status, http.StatusText(status))
}

// answerError is an error of the other side with what it means here.
type answerError struct {
	text string
	is   error
}

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.is }
