package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/softvpi/softvpi/internal/registry"
)

// maxProblem limits how many bytes of an answer that says what is wrong a client reads.
const maxProblem = 64 << 10

// problemDocument is what a client reads of an answer that says what is wrong (RFC 9457).
type problemDocument struct {
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
		Value    any    `json:"value"`
	} `json:"errors"`
}

// understand converts an answer back to an error.
func understand(status int, m *problemDocument) error {
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
		if allowed, ok := strings.CutPrefix(d.Message, AllowedPrefix); ok {
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
