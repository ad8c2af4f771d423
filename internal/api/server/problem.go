package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
)

// errBusy says that there is no room for a large answer because readers have not taken others yet.
var errBusy = errors.New("too many large answers are under way; ask again in a second")

// problem converts err to an answer: RFC 9457, with the wrong field among its errors.
func problem(err error) error {
	if err == nil {
		return nil
	}
	m := &huma.ErrorModel{Status: http.StatusUnprocessableEntity, Detail: err.Error()}
	var field *api.FieldError
	var event *events.FieldError
	var path *counters.PathError
	var value *catalogue.ValueError
	var file *registry.StoreError
	switch {
	case errors.As(err, &field):
		m.Errors = []*huma.ErrorDetail{{Location: field.Field, Value: field.Value, Message: api.AllowedPrefix + field.Allowed}}
	case errors.As(err, &value):
		m.Errors = []*huma.ErrorDetail{{Location: value.Key, Value: value.Value, Message: api.AllowedPrefix + value.Allowed}}
	case errors.As(err, &event):
		m.Errors = []*huma.ErrorDetail{{Location: event.Field, Value: event.Value, Message: api.AllowedPrefix + event.Allowed}}
	case errors.As(err, &path):
		m.Errors = []*huma.ErrorDetail{{Location: "counter path", Value: path.Path, Message: api.AllowedPrefix +
			strings.Join(path.Allowed, ", ")}}
	case errors.Is(err, registry.ErrNotFound):
		m.Status = http.StatusNotFound
	case errors.Is(err, api.ErrUnsupported):
		m.Status = http.StatusNotImplemented
	case errors.Is(err, errBusy):
		m.Status = http.StatusServiceUnavailable
	case errors.As(err, &file), errors.Is(err, registry.ErrFull):
		m.Status = http.StatusInsufficientStorage
	}
	m.Title = http.StatusText(m.Status)
	return m
}
